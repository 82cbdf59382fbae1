"""The demo of a first start: alive, apart from everything else, and gone without a trace."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import START_S, wait_until
from tests.acceptance.conftest import Home, Started, http

ACT_S = 60.0
FEEDS = (b"roost:feed:",)
"""What happened stays told in the feeds of all, which are bounded."""


class Demo:
    """A `roost up` with its demo, as an operator sees it."""

    def __init__(self, home: Home, up: Started) -> None:
        self.home = home
        self.up = up

    def ask(self, path: str, method: str = "GET") -> Any:
        answer = http(f"{self.up.url}{path}", method=method, token=self.home.token())
        return answer.json | {"httpStatus": answer.status}

    def servers(self, type_: str) -> list[dict[str, Any]]:
        return list(self.ask(f"/sd/v1/instances?type={type_}&group=*")["instances"])

    def homes(self) -> dict[str, int]:
        """Entity server → its users."""
        return {
            one["serverId"]: one["users"] for one in self.ask("/bind/v1/servers?type=demo-entity")["servers"]
        }

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, what, lambda: self.up.text[-2000:], ACT_S)


def start(home: Home) -> Demo:
    return Demo(home, home.up_with_demo())


def keys_of(home: Home) -> dict[bytes, bytes]:
    """Every key of the store and what it holds, but the feeds."""
    return asyncio.run(_keys_of(home.data / "store"))


async def _keys_of(folder: Path) -> dict[bytes, bytes]:
    store = await Store.open(parse_store_url("embedded:"), folder=folder, attach=True)
    try:
        names = await store.call("KEYS", "*")
        kept = sorted(name for name in names if not name.startswith(FEEDS))
        return {name: bytes(await store.call("DUMP", name)) for name in kept}
    finally:
        await store.close()


def is_alive(demo: Demo) -> bool:
    worlds = {world["world"]: world for world in demo.ask("/queue/v1/worlds")["worlds"]}
    return (
        sum(demo.homes().values()) >= 10
        and worlds["demo"]["inside"] > 0
        and bool(demo.servers("demo-orders"))
        and len(demo.homes()) == 2
    )


@pytest.fixture
def demo(home: Home) -> Demo:
    started = start(home)
    started.wait(lambda: started.ask("/demo/v1")["httpStatus"] == 200, "the demo to be there")
    started.wait(lambda: "demo" in str(started.ask("/queue/v1/worlds")), "its world")
    started.wait(lambda: is_alive(started), "players everywhere")
    return started


@pytest.mark.slow
def test_a_first_start_shows_a_fleet_that_is_apart_from_everything_else_and_leaves_no_trace(
    home: Home,
) -> None:
    before = start_and_stop(home)
    demo = start(home)
    assert "demo" in demo.up.text
    demo.wait(lambda: "demo" in str(demo.ask("/queue/v1/worlds")), "its world")
    demo.wait(lambda: is_alive(demo), "players everywhere")

    versions = {one["version"] for one in demo.servers("demo-entity")}
    assert versions == {"1.0", "1.1"}
    for type_ in ("game", "gate", "entity", "orders"):
        assert demo.servers(type_) == []
    main = next(one for one in demo.ask("/queue/v1/worlds")["worlds"] if one["world"] == "main")
    assert (main["inside"], main["capacity"], main["counters"]["entries"]) == (0, 0, 0)
    shown = demo.ask("/demo/v1")
    assert [step["id"] for step in shown["steps"]] == ["hot-update", "flood", "kill"]
    assert not any(step["done"] for step in shown["steps"])

    assert demo.ask("/demo/v1/stop", "POST")["httpStatus"] == 202
    assert demo.ask("/demo/v1")["running"] is False
    assert demo.ask("/demo/v1/kill", "POST")["httpStatus"] == 404
    after = keys_of(home)
    assert sorted(after.keys() - before) == []
    assert [key for key, held in after.items() if b"demo" in held] == []
    assert not (home.data / "demo").exists()
    page = http(f"{demo.up.url}/metrics").body.decode()
    assert [line for line in page.splitlines() if "demo" in line and "route=" not in line] == []
    assert demo.up.interrupt() == 0


def start_and_stop(home: Home) -> set[bytes]:
    """The keys of a `roost up` that never had a demo."""
    up = home.up()
    exported = {b"server:status", b"server:status:main"}
    wait_until(lambda: exported <= keys_of(home).keys(), "the first exports", timeout_s=START_S)
    before = keys_of(home)
    up.interrupt()
    return set(before)


@pytest.mark.slow
def test_the_acts_of_the_tour_work_again_and_again(demo: Demo) -> None:
    for old, new in (("demo-501", "demo-502"), ("demo-502", "demo-503")):
        demo.wait(lambda new=new: new in demo.homes(), f"{new} to be there")  # type: ignore[misc]
        demo.wait(
            lambda old=old: old in demo.ask("/demo/v1/hot-update", "POST").get("message", ""),  # type: ignore[misc]
            f"an update of {old}",
        )
        demo.wait(lambda old=old: old not in demo.homes(), f"{old} to have left")  # type: ignore[misc]
    assert demo.homes()["demo-503"] >= 10
    jobs = demo.ask("/drain/v1/jobs")["jobs"]
    assert [job["state"] for job in jobs] == ["done", "done"]

    assert "120" in demo.ask("/demo/v1/flood", "POST")["message"]
    demo.wait(lambda: "demo" in str(demo.ask("/queue/v1/worlds/demo")["world"]), "the world")
    demo.wait(lambda: demo.ask("/queue/v1/worlds/demo")["waiting"] > 50, "a long line")
    assert all(step["done"] for step in demo.ask("/demo/v1")["steps"] if step["id"] != "kill")


@pytest.mark.slow
def test_a_killed_server_loses_its_users_to_the_other_and_comes_back_to_be_updated_to(demo: Demo) -> None:
    victim = demo.ask("/demo/v1/kill", "POST")["message"].split()[0]
    demo.wait(lambda: victim not in demo.homes(), "its end")
    demo.wait(lambda: sum(demo.homes().values()) >= 10, "its users to be elsewhere")
    assert demo.ask("/demo/v1/kill", "POST")["httpStatus"] == 409
    demo.wait(lambda: victim in demo.homes(), "its return")
    demo.wait(lambda: demo.ask("/demo/v1/hot-update", "POST")["httpStatus"] == 202, "an update to it")
    demo.wait(lambda: demo.homes().get(victim, 0) >= 10, "everybody to be there")


@pytest.mark.slow
def test_ctrl_c_ends_all_its_processes_and_takes_it_out(demo: Demo) -> None:
    children = _children(demo.up.process.pid)
    assert len(children) == 4  # the store, two entity servers, the rest
    assert demo.up.interrupt(signal.SIGINT) == 0
    assert not [pid for pid in children if _runs(pid)]
    assert not (demo.home.data / "demo").exists()
    assert "Traceback" not in demo.up.text


@pytest.mark.slow
def test_what_a_killed_demo_left_is_taken_out_by_a_start_without_one(demo: Demo) -> None:
    children = [pid for pid in _children(demo.up.process.pid) if pid != demo.home.store_pid()]
    demo.up.process.kill()
    demo.up.process.wait()
    wait_until(lambda: not any(map(_runs, children)), "its processes to notice", timeout_s=START_S)
    assert b"queue:world:{demo}" in keys_of(demo.home)

    demo.home.up()
    held = keys_of(demo.home)
    assert [key for key, value in held.items() if b"demo" in key or b"demo" in value] == []
    assert not (demo.home.data / "demo").exists()


@pytest.mark.slow
def test_the_demo_trades_no_more_once_somebody_serves_orders(demo: Demo) -> None:
    def owners() -> set[str]:
        return {shard["owner"] for shard in demo.ask("/orders/v1/shards")["shards"]}

    demo.wait(lambda: "demo-orders" in owners(), "the demo's own order server at work")
    demo.home.start("orders", "serve", "--id", "901")
    demo.wait(lambda: owners() == {"901"}, "all shards to be the developer's")
    assert demo.ask("/demo/v1")["symbols"] == []
    logs = [key for key, held in keys_of(demo.home).items() if b"orders:" in key and b"demo-" in held]
    assert logs == []


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
