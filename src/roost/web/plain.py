"""Plain requests: whole, short and ordinary, and read without aiohttp.

Nearly everything that a gateway is asked is a few lines of headers and a small JSON body that arrive in one
piece. aiohttp builds a request, a stream, a response and a task for each, which costs more than most handlers
do. Read here is only what every reader of HTTP reads in the same way: whatever is rare, large, incomplete or
odd is left to aiohttp, byte for byte as it came.
"""

from __future__ import annotations

import re
from asyncio import BaseProtocol
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple

from aiohttp import web
from aiohttp.helpers import rfc822_formatted_time
from aiohttp.http import SERVER_SOFTWARE
from multidict import CIMultiDict, MultiDict

MAX_HEAD_BYTES = 4096
JSON = "application/json"

_HEAD = re.compile(
    rb"(GET|POST|PUT|DELETE) ((?:/[\w~-][\w.~-]*)+)(?:\?([\w.~*:,=&-]+))? HTTP/1\.1\r\n"
    rb"((?:[A-Za-z][A-Za-z0-9-]*: ?[\x21-\x7e][\x20-\x7e]*\r\n)*)\r\n"
)
"""No percent signs, no dots to normalise, no folded lines, nothing but ASCII."""
_FIELD = re.compile(r"([^:]+): ?([^\r]+)\r\n")
_LEFT_TO_AIOHTTP = frozenset(
    {
        *("content-encoding", "cookie", "expect", "keep-alive", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade"),
    }
)
"""Headers that say how a request is to be read, or what becomes of its connection; and cookies."""
_LENGTH = re.compile(r"[0-9]{1,9}")
_NO_QUERY: MultiDict[str] = MultiDict()
_NO_COOKIES: Mapping[str, str] = {}


class PlainRequest(NamedTuple):
    """A request as aiohttp would show it, as far as handlers look. They change nothing of it."""

    method: str
    path: str
    match_info: Mapping[str, str]
    query: MultiDict[str]
    headers: CIMultiDict[str]
    body: bytes
    protocol: BaseProtocol
    remote: str

    @property
    def cookies(self) -> Mapping[str, str]:
        return _NO_COOKIES


Asked = web.Request | PlainRequest


class Reply(NamedTuple):
    """An answer in JSON; without a body 204."""

    status: int
    body: bytes
    request_id: str
    headers: Mapping[str, str]
    closes: bool = False
    """Whether the connection ends with it."""


Answer = Callable[[Asked], Awaitable[Reply | web.StreamResponse]]
"""What is around a handler, and the handler."""


class Head(NamedTuple):
    """The lines before a body."""

    raw: bytes
    method: str
    path: str
    query: MultiDict[str]
    headers: CIMultiDict[str]
    length: int
    """Of the body."""


class Known(NamedTuple):
    """A head, and what is to be done with requests that begin with it."""

    head: Head
    answer: Answer
    match_info: Mapping[str, str]
    end: int
    """Of its request, in bytes."""


class PlainRoutes:
    """Which requests are answered here, and by whom."""

    def __init__(self, body_limit_bytes: int) -> None:
        self._limit = body_limit_bytes
        self._exact: dict[tuple[str, str], Answer] = {}
        self._patterns: list[tuple[str, re.Pattern[str], Answer]] = []

    def add(self, method: str, path: str, answer: Answer) -> None:
        if "{" in path:
            pattern = re.compile(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", path))
            self._patterns.append((method, pattern, answer))
        else:
            self._exact[method, path] = answer

    def known(self, unread: bytes, last: Known | None) -> Known | None:
        """What the bytes begin with, if all of it is there and it is for us.

        `last` is what they began with before: clients repeat themselves, above all those that beat or poll.
        """
        if last is None or not unread.startswith(last.head.raw):
            last = self._read(unread)
        return last if last is not None and len(unread) >= last.end else None

    def _read(self, unread: bytes) -> Known | None:
        head = head_of(unread)
        if head is None or head.length > self._limit:
            return None
        found = self._find(head.method, head.path)
        return Known(head, *found, len(head.raw) + head.length) if found is not None else None

    def _find(self, method: str, path: str) -> tuple[Answer, Mapping[str, str]] | None:
        answer = self._exact.get((method, path))
        if answer is not None:
            return answer, {}
        for wanted, pattern, one in self._patterns:
            if wanted == method and (found := pattern.fullmatch(path)) is not None:
                return one, found.groupdict()
        return None


PLAIN: web.AppKey[PlainRoutes] = web.AppKey("plain", PlainRoutes)


def head_of(unread: bytes) -> Head | None:
    """The head that the bytes begin with; None unless it is whole and plain."""
    found = _HEAD.match(unread, 0, MAX_HEAD_BYTES)
    if found is None:
        return None
    method, path, query, fields = found.groups()
    pairs = [(name, value.rstrip(" ")) for name, value in _FIELD.findall(fields.decode("ascii"))]
    names = [name.lower() for name, _ in pairs]
    if not _LEFT_TO_AIOHTTP.isdisjoint(names):
        return None
    headers = CIMultiDict(pairs)
    length = _length(method, headers.getall("Content-Length", ()))
    asked = _query(query)
    if length is None or asked is None or names.count("host") != 1:
        return None
    if not _stays_open(headers.getall("Connection", ())):
        return None
    return Head(found.group(), method.decode(), path.decode(), asked, headers, length)


def _length(method: bytes, given: Sequence[str]) -> int | None:
    """Of the body; None where it is said in an odd way."""
    if not given:
        return 0
    if len(given) > 1 or method == b"GET" or not _LENGTH.fullmatch(given[0]):
        return None
    return int(given[0])


def _stays_open(connection: Sequence[str]) -> bool:
    return not connection or [word.lower() for word in connection] == ["keep-alive"]


def _query(query: bytes | None) -> MultiDict[str] | None:
    if query is None:
        return _NO_QUERY
    pairs = [pair.split("=") for pair in query.decode().split("&")]
    if any(len(pair) != 2 or not pair[0] for pair in pairs):
        return None
    return MultiDict([(name, value) for name, value in pairs])


def rendered(reply: Reply) -> bytes:
    """The bytes of an answer, as aiohttp would write them."""
    more = "".join([f"{name}: {value}\r\n" for name, value in reply.headers.items()])
    if not more.count("\r") == more.count("\n") == len(reply.headers):
        raise ValueError("a header holds a line break")
    is_empty = reply.status == HTTPStatus.NO_CONTENT
    kind, length = ("", "") if is_empty else (_KIND, f"Content-Length: {len(reply.body)}\r\n")
    head = (
        f"{_STATUS_LINES[reply.status]}{more}{kind}X-Request-Id: {reply.request_id}\r\n{length}"
        f"Date: {rfc822_formatted_time()}\r\nServer: {SERVER_SOFTWARE}\r\n"
        f"{_CLOSES if reply.closes else ''}\r\n"
    )
    return head.encode() + reply.body


_KIND = f"Content-Type: {JSON}\r\n"
_CLOSES = "Connection: close\r\n"
_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
