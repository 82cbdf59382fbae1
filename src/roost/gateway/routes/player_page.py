"""The page on which players wait: one file, no asset of anybody else's, and nothing in it that is secret."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from aiohttp import web

from roost.app import Platform
from roost.core.errors import UnknownWorld
from roost.gateway.route import Request, Route

_PAGE = (files("roost.gateway") / "pages" / "queue.html").read_bytes()


def _hash_of(tag: bytes) -> str:
    """The one inline script (or style) of the page, as a content security policy names it."""
    inner = re.search(b"<" + tag + b">(.*?)</" + tag + b">", _PAGE, re.DOTALL)
    assert inner is not None
    return "'sha256-" + base64.b64encode(hashlib.sha256(inner.group(1)).digest()).decode() + "'"


_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_hash_of(b'script')}; style-src 'unsafe-inline'; "
        "connect-src 'self' ws: wss:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
}


def player_page_routes(platform: Platform) -> list[Route]:
    hold = f"{max(1, platform.settings.queue.gone_seconds // 60)} min".encode()
    body = _PAGE.replace(b"5 minutes</span>", hold + b"</span>")

    async def page(request: Request) -> web.Response:
        platform.worlds.of(request.path["world"])
        return web.Response(body=body, content_type="text/html", charset="utf-8", headers=_HEADERS)

    return [
        Route(
            "GET",
            "/queue/{world}",
            page,
            "The page on which players wait; who they are comes in the fragment",
            errors=(UnknownWorld,),
            content_type="text/html",
        )
    ]
