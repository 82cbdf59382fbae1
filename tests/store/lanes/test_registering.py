"""An order server and discovery: its shards do not wait for the id that a dead predecessor still bears."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from socket import gethostname
from time import time

import pytest

from roost.core.errors import StartFailed, Unavailable
from roost.lanes.ids import SHARDS
from roost.lanes.owner import Failing
from roost.sdk.connect import connect
from roost.sdk.direct.trade_words import address_of
from roost.sdk.trade import OrderAccepted
from roost.servers.orders import serving
from roost.servers.orders.registering import OrdersIdentity
from roost.servers.orders.serving import Running, order_server
from roost.settings import Loaded, Settings
from roost.testing import RunningServer, eventually, free_port

TTL_S = 4.0


def settings_on(store: RunningServer, folder: Path, **more: str) -> Settings:
    environment = {
        "ROOST_PROFILE": "lan",
        "ROOST_STORE": store.url,
        "ROOST_DATA": str(folder),
        "ROOST_DATABASE": f"sqlite:///{folder}/orders.db",
        "ROOST_API_TOKEN": "a-secret-of-this-test",
        "ROOST_WIRE_SECRET": "a-secret-of-this-test",
        "ROOST_ORDERS__PORT": str(free_port()),
        "ROOST_LANES__DURABILITY": "memory",
    }
    return Loaded.load(environ=environment | more).settings


async def test_a_server_whose_id_is_still_taken_serves_and_is_registered_when_it_is_free(
    valkey: RunningServer, tmp_path: Path
) -> None:
    """What ends the dead one's lease is a client here, else a gateway."""
    ended: list[bool] = []
    async with connect(valkey.url, ttl_seconds=TTL_S, cache_folder=tmp_path) as dead:
        await dead.register(type="orders", group="main", server_id="901", ports={"wire": 1})
        identity = OrdersIdentity("901", ttl_seconds=TTL_S)
        starting = order_server(
            settings_on(valkey, tmp_path), identity, on_end=lambda: ended.append(True), wait_s=5
        )
        async with starting as server:
            assert server.ownership is not None
            assert server.registering is not None
            owned = server.ownership.owned

            await eventually(lambda: len(owned) == SHARDS, "its shards")
            assert server.registering.me is None

            await eventually(lambda: server.registering.me is not None, "its entry", timeout_s=30)  # type: ignore[union-attr]
            assert (await dead.discover("orders"))[0].server_id == "901"
        assert not await dead.discover("orders")
    assert not ended


async def test_a_server_on_ipv6_is_found_by_discovery_and_by_the_leases_of_its_shards(
    valkey: RunningServer, tmp_path: Path
) -> None:
    """Both name it in one way: who follows fills at an address hears when its connection is lost."""
    settings = settings_on(valkey, tmp_path, ROOST_ORDERS__HOST="::1")
    address = f"::1:{settings.orders.port}"
    starting = order_server(settings, OrdersIdentity("901"), on_end=lambda: None, wait_s=5)
    async with starting as server, connect(valkey.url) as client:
        assert server.ownership is not None
        owned = server.ownership.owned
        await eventually(lambda: len(owned) == SHARDS, "its shards")

        by_discovery: tuple[str, ...] = ()
        for servers in (by_discovery, (f"[::1]:{settings.orders.port}",)):
            async with client.trader("ann", servers=servers, timeout_s=5.0, settings=settings) as trader:
                answer = await trader.new("ACME", "buy", price=10, quantity=5)
                assert isinstance(answer, OrderAccepted)
        assert server.platform is not None
        leases = await server.platform.lanes.shards()
        assert {one.address for one in leases.shards} == {address}
        assert [address_of(one) for one in await client.discover("orders")] == [address]


@pytest.mark.parametrize(("host", "named"), [("0.0.0.0", gethostname()), ("localhost", "127.0.0.1")])
async def test_a_server_is_named_alike_in_discovery_and_leases(
    valkey: RunningServer, tmp_path: Path, host: str, named: str
) -> None:
    """Where it listens everywhere, by its host: 0.0.0.0 is another machine for everybody else."""
    settings = settings_on(valkey, tmp_path, ROOST_ORDERS__HOST=host)
    starting = order_server(settings, OrdersIdentity("901"), on_end=lambda: None, wait_s=5)
    async with starting as server, connect(valkey.url) as client:
        assert server.ownership is not None
        owned = server.ownership.owned
        await eventually(lambda: len(owned) == SHARDS, "its shards")
        [known] = await client.discover("orders")

        assert server.platform is not None
        leases = await server.platform.lanes.shards()
        assert {one.address for one in leases.shards} == {address_of(known)}
        assert address_of(known) == f"{named}:{settings.orders.port}"


async def test_a_server_that_is_fixed_to_shards_gets_them_from_one_that_has_all(
    valkey: RunningServer, tmp_path: Path
) -> None:
    def starting(name: str, **more: str) -> AbstractAsyncContextManager[Running]:
        folder = tmp_path / name
        folder.mkdir()
        settings = settings_on(valkey, folder, **more)
        return order_server(settings, OrdersIdentity(name), on_end=lambda: None, wait_s=5)

    async with starting("902") as auto:
        assert auto.ownership is not None
        others = auto.ownership.owned
        await eventually(lambda: len(others) == SHARDS, "all shards")

        async with starting("901", ROOST_ORDERS__SHARDS="0-2,7") as fixed:
            assert fixed.ownership is not None
            own = fixed.ownership.owned
            await eventually(lambda: sorted(own) == [0, 1, 2, 7], "its list", timeout_s=20)
            assert sorted(others) == [number for number in range(SHARDS) if number not in own]


async def test_a_server_that_fails_at_takeovers_is_not_ready_and_says_of_which_shards(
    valkey: RunningServer, tmp_path: Path
) -> None:
    starting = order_server(
        settings_on(valkey, tmp_path), OrdersIdentity("901"), on_end=lambda: None, wait_s=5
    )
    async with starting as server:
        assert server.ownership is not None
        await server.ready()

        server.ownership.failing[3] = Failing("the database is away")
        with pytest.raises(Unavailable, match=r"shards 3 cannot be taken over: the database is away"):
            await server.ready()


async def test_g15_a_store_whose_clock_is_a_year_ahead_is_not_believed_at_a_start_unless_that_is_said(
    valkey: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ids of next year would stand in log and snapshot, and nothing below them could follow for a year."""
    monkeypatch.setattr(serving, "host_ms", lambda: int(time() * 1000) - 365 * 86_400_000)

    def starting(**more: str) -> AbstractAsyncContextManager[Running]:
        settings = settings_on(valkey, tmp_path, **more)
        return order_server(settings, OrdersIdentity("901"), on_end=lambda: None, wait_s=5)

    with pytest.raises(StartFailed, match="one of them is wrong"):
        async with starting():
            pass
    async with connect(valkey.url) as client:
        assert not await client.discover("orders")

    async with starting(ROOST_ORDERS__CLOCK="store") as server:
        assert server.ownership is not None
        owned = server.ownership.owned
        await eventually(lambda: len(owned) == SHARDS, "its shards")
