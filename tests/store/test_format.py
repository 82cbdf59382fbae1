"""The format key: what wrote this store, and may we read it?"""

from __future__ import annotations

import pytest

from roost.core.errors import FormatMismatch
from roost.store.keys import FORMAT as FORMAT_KEY
from roost.store.keys import Keys
from roost.store.store import FORMAT, Store
from roost.store.url import parse_store_url
from roost.testing import RunningServer, open_store


async def test_an_empty_store_is_marked_with_our_format(any_store: Store) -> None:
    key = any_store.keys.plain(FORMAT_KEY)
    assert await any_store.call("GET", key, key=key) == str(FORMAT).encode()


async def test_a_store_of_our_format_is_opened_again(server: RunningServer) -> None:
    for _ in range(2):
        async with open_store(server.url):
            pass
    assert server.command_reply("GET", "roost:format") == str(FORMAT).encode()


@pytest.mark.parametrize("found", ["1", "2", "4", "0", "", "03", "banana", b"\xff" * 100])
async def test_a_store_of_another_format_is_refused_and_left_as_it_is(
    server: RunningServer, found: str | bytes
) -> None:
    server.command_reply("SET", "roost:format", found)

    with pytest.raises(FormatMismatch, match=f"this version reads format {FORMAT}") as caught:
        await Store.open(parse_store_url(server.url))

    assert "ROOST_NAMESPACE" in caught.value.hint
    assert len(caught.value.message) < 120
    kept = server.command_reply("GET", "roost:format")
    assert kept == (found.encode() if isinstance(found, str) else found)


async def test_each_namespace_has_a_format_of_its_own(server: RunningServer) -> None:
    server.command_reply("SET", "roost:format", "99")

    async with open_store(server.url, keys=Keys("blue")):
        pass

    assert server.command_reply("GET", "blue:roost:format") == str(FORMAT).encode()
