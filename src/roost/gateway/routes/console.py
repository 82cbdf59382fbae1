"""The console: static files of our own, read once, over nothing but the public API.

The page at `/` and its modules hold no secret and need no token: whoever opens them logs in, and sees what
their token may see. No script or style but ours runs there, and no other page may frame it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

from aiohttp import web

from roost.core.errors import NotFound
from roost.gateway.context import Gateway
from roost.web.route import Handler, Header, Request, Route

FOLDER = files("roost") / "console"
INDEX = "index.html"
TYPES = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "json": "application/json",
    "svg": "image/svg+xml",
}
"""Ending of a file → its content type; files with another ending are not served."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class File(NamedTuple):
    body: bytes
    type: str
    etag: str


def read_files(folder: Traversable = FOLDER) -> dict[str, File]:
    """Every file of the console by its path below the folder. A path that is not in here is not served, so
    none leads out of the folder."""
    return dict(_files_in(folder, ""))


def _files_in(folder: Traversable, prefix: str) -> Iterator[tuple[str, File]]:
    for entry in folder.iterdir():
        path = prefix + entry.name
        kind = TYPES.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            yield from _files_in(entry, f"{path}/")
        elif kind is not None:
            body = entry.read_bytes()
            yield path, File(body, kind, hashlib.sha256(body).hexdigest()[:32])


def languages(found: dict[str, File]) -> list[str]:
    """The languages that have a file."""
    names = (re.fullmatch(r"lang/([a-z]{2})\.json", path) for path in found)
    return sorted(name[1] for name in names if name is not None)


class ConsoleRoutes:
    def __init__(self) -> None:
        self._files = read_files()
        index = self._files[INDEX]
        filled = index.body.replace(b"{{languages}}", " ".join(languages(self._files)).encode())
        self._files[INDEX] = File(filled, index.type, hashlib.sha256(filled).hexdigest()[:32])

    async def get_console(self, request: Request) -> web.Response:
        return _answer(request, self._files[INDEX])

    async def get_console_file(self, request: Request) -> web.Response:
        return self._at(request, request.path["file"])

    async def get_console_subfile(self, request: Request) -> web.Response:
        return self._at(request, f"{request.path['folder']}/{request.path['file']}")

    def _at(self, request: Request, path: str) -> web.Response:
        found = self._files.get(path)
        if found is None or path == INDEX:
            raise NotFound(f"the console has no file {path[:80]!r}", hint="it is served at /")
        return _answer(request, found)


def _answer(request: Request, file: File) -> web.Response:
    tag = f'"{file.etag}"'
    headers = {**_HEADERS, "ETag": tag}
    if tag in request.http.headers.get("If-None-Match", ""):
        return web.Response(status=304, headers=headers)
    return web.Response(body=file.body, content_type=file.type, charset="utf-8", headers=headers)


def routes(gateway: Gateway) -> list[Route]:
    on = ConsoleRoutes()
    return [
        _route("/", on.get_console, "The console", "text/html"),
        _route("/console/{file}", on.get_console_file, "A module or style of the console", TYPES["js"]),
        _route("/console/{folder}/{file}", on.get_console_subfile, "A page or language of it", TYPES["js"]),
    ]


def _route(path: str, handler: Handler, summary: str, content_type: str) -> Route:
    return Route(
        "GET",
        path,
        handler,
        summary,
        errors=(NotFound,),
        touches_store=False,
        content_type=content_type,
        headers=(Header("If-None-Match", "The ETag of what you have: the same is answered by 304."),),
    )
