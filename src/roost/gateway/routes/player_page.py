"""The page on which players wait: one file, no asset of anybody else's, and nothing in it that is secret."""

from __future__ import annotations

import base64
import hashlib
import re
from importlib.resources import files

from aiohttp import web

from roost.core.errors import UnknownWorld
from roost.gateway.context import Gateway
from roost.web.route import Request, Route

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


class PlayerPageRoutes:
    def __init__(self, gateway: Gateway) -> None:
        self._worlds = gateway.platform.worlds
        hold = f"{max(1, gateway.platform.settings.queue.gone_seconds // 60)} min".encode()
        self._body = _PAGE.replace(b"5 minutes</span>", hold + b"</span>")

    async def get_queue_page(self, request: Request) -> web.Response:
        self._worlds.of(request.path["world"])
        return web.Response(body=self._body, content_type="text/html", charset="utf-8", headers=_HEADERS)


def routes(gateway: Gateway) -> list[Route]:
    return [
        Route(
            "GET",
            "/queue/{world}",
            PlayerPageRoutes(gateway).get_queue_page,
            "The page on which players wait; who they are comes in the fragment",
            errors=(UnknownWorld,),
            touches_store=False,
            content_type="text/html",
        )
    ]
