"""A client that knows several gateways: one dies or hangs, and nobody loses a lease, a list or a watch."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

import roost
from roost.api.discovery import Change
from roost.core.errors import InvalidInput, OutcomeUnknown
from roost.discovery.service import Discovery
from roost.sdk.http.gateways import gateway_urls
from roost.testing import RunningServer, eventually, free_port, open_store

from .conftest import Home, Started

TOKEN = "a-token-for-the-tests"


@pytest.fixture
def gateways(home: Home, valkey: RunningServer) -> Iterator[list[Started]]:
    """Two on one store."""
    common = ("--store", valkey.url, "--profile", "lan")
    pair = [
        home.start("gateway", *common, "--port", str(free_port()), ROOST_API_TOKEN=TOKEN) for _ in range(2)
    ]
    yield pair
    for one in pair:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one.process.pid, signal.SIGCONT)


def both(pair: list[Started]) -> str:
    return ",".join(one.url for one in pair)


@contextlib.asynccontextmanager
async def history_of(valkey: RunningServer, instance_id: str) -> AsyncIterator[Callable[[], list[str]]]:
    """What discovery tells of the instance meanwhile."""
    told: list[str] = []
    async with open_store(valkey.url) as store:

        async def listen() -> None:
            async for change in Discovery(store).watch("game"):
                if change.instance_id == instance_id:
                    state = change.instance.status if change.instance else change.status
                    told.append(f"{change.event} {state}")

        task = asyncio.create_task(listen())
        try:
            yield lambda: told
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.slow
async def test_a_gateway_that_dies_or_hangs_costs_no_lease_and_no_watch(
    gateways: list[Started], valkey: RunningServer, tmp_path: Path, number: signal.Signals
) -> None:
    ttl_s = 20.0  # half of it makes suspect: a beat, its timeout and a second try leave a tenth of it
    options = {"token": TOKEN, "ttl_seconds": ttl_s, "cache_folder": tmp_path}
    async with roost.connect(both(gateways), **options) as client:  # type: ignore[arg-type]
        seen: list[Change] = []
        changes = client.watch("other")

        async def watch() -> None:
            async for change in changes:
                seen.append(change)

        watching = asyncio.create_task(watch())
        async with client.registered(type="game", group="kr-1", server_id="s-1") as me:
            await eventually(lambda: me.last_beat_at is not None and bool(seen), "a beat and a snapshot")
            async with history_of(valkey, me.instance_id) as told:
                first = me.last_beat_at
                os.kill(gateways[0].process.pid, number)
                lease_ends = asyncio.get_running_loop().time() + 1.25 * ttl_s
                await eventually(lambda: me.last_beat_at != first, "a beat through the other gateway", ttl_s)
                with contextlib.suppress(OutcomeUnknown):  # a life is not asked for twice without being told
                    await client.register(type="other", group="kr-1")
                await client.register(type="other", group="kr-1")
                await eventually(lambda: len(seen) > 1, "the watch goes on")
                await eventually(
                    lambda: asyncio.get_running_loop().time() > lease_ends, "the lease of then", 2 * ttl_s
                )
                assert [one for one in told() if "suspect" in one or "removed" in one] == []
            assert me.ended is None
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await changes.aclose()


def test_the_command_line_asks_the_next_gateway(gateways: list[Started], home: Home) -> None:
    urls = both(gateways)
    gateways[0].process.kill()
    gateways[0].process.wait()
    done = home.run("status", "--json", "--url", urls, ROOST_API_TOKEN=TOKEN)
    assert done.returncode == 0, done.stderr
    assert f'"pid": {gateways[1].process.pid}' in done.stdout


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("http://a:1", ("http://a:1",)),
        ("http://a:1/, http://b:2", ("http://a:1", "http://b:2")),
        ("https://a,b:2", ("https://a", "https://b:2")),
        ("http://a,http://a", ("http://a",)),
    ],
)
def test_a_comma_list_of_gateways(text: str, urls: tuple[str, ...]) -> None:
    assert gateway_urls(text) == urls


@pytest.mark.parametrize("text", ["", ",", "http://", "http://a,redis://b", "http://a:99999", "a:1"])
def test_what_is_no_list_of_gateways_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        gateway_urls(text)
