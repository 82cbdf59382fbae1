"""`roost openapi`: the HTTP API as a document."""

from __future__ import annotations

import json

import typer

app = typer.Typer(add_completion=False)


@app.command(epilog="Example:  roost openapi > roost.json   (a running gateway serves it at /openapi.json)")
def openapi() -> None:
    """Print the HTTP API as OpenAPI 3.1, without a server: for generators of clients."""
    from roost.gateway.offline import offline_document

    print(json.dumps(offline_document(), indent=1, ensure_ascii=False))
