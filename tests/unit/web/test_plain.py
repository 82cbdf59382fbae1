"""What is read without aiohttp, aiohttp reads in the same way."""

from __future__ import annotations

import asyncio
from unittest.mock import Mock

import pytest
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from hypothesis import example, given
from hypothesis import strategies as st

from roost.web.plain import MAX_HEAD_BYTES, Head, Reply, head_of, rendered

PLAIN = b"POST /sd/v1/instances?type=game&group=* HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"


def by_aiohttp(raw: bytes) -> RawRequestMessage | None:
    """The first message that aiohttp reads there; None where it refuses."""
    loop = asyncio.new_event_loop()
    try:
        parser = HttpRequestParser(Mock(), loop, 2**16, max_line_size=8190, max_field_size=8190)
        messages, _, _ = parser.feed_data(raw)
    except HttpProcessingError:
        return None
    finally:
        loop.close()
    return messages[0][0] if messages else None


def check_alike(head: Head, read: RawRequestMessage | None) -> None:
    assert read is not None
    assert (head.method, head.path) == (read.method, read.url.path)
    assert list(head.query.items()) == list(read.url.query.items())
    assert list(head.headers.items()) == list(read.headers.items())
    assert not read.should_close
    assert not read.chunked
    assert not read.upgrade
    assert read.compression is None
    assert head.length == int(read.headers.get("Content-Length", "0"))


def test_a_plain_head_is_read_whole() -> None:
    head = head_of(PLAIN + b"{}and more")
    assert head is not None
    assert (head.raw, head.method, head.path, head.length) == (PLAIN, "POST", "/sd/v1/instances", 2)
    assert head.query == {"type": "game", "group": "*"}
    assert head.headers["content-length"] == "2"
    check_alike(head, by_aiohttp(PLAIN + b"{}"))


@pytest.mark.parametrize("cut", range(len(PLAIN)))
def test_a_head_that_is_not_whole_is_left(cut: int) -> None:
    assert head_of(PLAIN[:cut]) is None


ODD = [
    b"GET /a HTTP/1.0\r\nHost: x\r\n\r\n",
    b"GET /a HTTP/1.1\r\n\r\n",
    b"GET /a HTTP/1.1\nHost: x\n\n",
    b"HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"get /a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET  /a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET http://x/a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a%2fb HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a/../b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET //a HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a/ HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a#b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a?b=c=d HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a?b=c+d HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a?b=%41 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a?=c HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nA: b\r\n folded\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nA:\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nA: \xff\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nCookie: a=b\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\nContent-Length: 3\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3, 3\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: -3\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
    b"GET /a HTTP/1.1\r\nHost: x\r\nA: " + b"b" * MAX_HEAD_BYTES + b"\r\n\r\n",
]


@pytest.mark.parametrize("raw", ODD)
def test_what_is_odd_is_left(raw: bytes) -> None:
    assert head_of(raw) is None


_words = st.sampled_from(
    [
        *(
            b"GET",
            b"POST",
            b" ",
            b"/",
            b"a",
            b"/a",
            b"?",
            b"=",
            b"&",
            b"b=c",
            b" HTTP/1.1",
            b"\r\n",
            b"\n",
            b":",
        ),
        *(
            b": ",
            b"Host: x",
            b"Content-Length",
            b": 3",
            b"Connection: keep-alive",
            b"Connection: Keep-Alive , x",
        ),
        *(
            b"Transfer-Encoding: chunked",
            b"A: b ",
            b"a:b",
            b"..",
            b"%41",
            b"+",
            b";",
            b"#",
            b"*",
            b"\t",
            b"\x00",
        ),
        *(b"\xe4", b"~", b",", b"@"),
    ]
)


@st.composite
def _requests(draw: st.DrawFn) -> bytes:
    """A plain request, into which a few words are put somewhere in place of something."""
    raw = PLAIN
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + draw(_words) + raw[at + draw(st.integers(0, 3)) :]
    return raw


@given(_requests())
@example(b"GET /a.b-c~d_e?x=1&x=2&y= HTTP/1.1\r\nHost: x \r\nConnection: keep-alive\r\nx-y:z\r\n\r\n")
def test_whatever_is_read_here_aiohttp_reads_alike(raw: bytes) -> None:
    head = head_of(raw)
    if head is not None:
        check_alike(head, by_aiohttp(head.raw + b" " * head.length))


def test_a_line_break_in_a_header_is_not_written() -> None:
    with pytest.raises(ValueError, match="line break"):
        rendered(Reply(200, b"{}", "id", {"A": "b\r\nSet-Cookie: c"}))
