"""What an operator sees of a running Roost in a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from roost.testing import wait_until
from tests.acceptance.conftest import Home
from tests.acceptance.test_discovery_http import Api

COMMANDS = (
    ("health",),
    ("instances", "list"),
    ("instances", "list", "--verify"),
    ("instances", "show", "seoul-501"),
    ("drain", "status"),
    ("queue", "status"),
    ("ring", "show", "--type", "game"),
    ("status",),
    ("config",),
    ("doctor",),
    ("token", "list"),
    ("audit",),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    home = Home(tmp_path_factory.mktemp("columns"))
    up = home.up(ROOST_QUEUE__WORLDS="main,kr-seoul-1")
    api = Api(home, up.url, home.token())
    server = {"type": "game", "group": "kr-seoul-1", "serverId": "seoul-501", "ttlSeconds": 600}
    server |= {"privateIp": "127.0.0.1", "ports": {"main": 7777, "health": 8080}, "capacity": 2000}
    assert (
        api.ask("POST", "/sd/v1/instances", {**server, "health": {"kind": "tcp", "port": "main"}}).status
        == 201
    )
    report = {
        "life": "7",
        "number": 1,
        "capacity": 3,
        "users": 3,
        "counted": 0,
        "url": "wss://game.example/501",
    }
    assert api.ask("POST", "/queue/v1/worlds/kr-seoul-1/servers/seoul-501/report", report).status == 200
    wait_until(
        lambda: [row["votes"] for row in api.ask("GET", "/sd/v1/health").json["servers"]] == [1],
        "the health check",
    )
    yield api
    up.interrupt()


def words(shown: str) -> set[str]:
    """Every word that does not change by itself from one second to the next."""
    lines = [line for line in shown.splitlines() if not line.startswith("not shown at this width: ")]
    return {
        word for line in lines for word in line.split() if not word.strip("+-").replace(".", "").isdecimal()
    }


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_word_is_broken_at_80_columns(api: Api, command: tuple[str, ...]) -> None:
    wide = words(api.home.run(*command, COLUMNS="400").stdout)
    narrow = words(api.home.run(*command, COLUMNS="80").stdout)
    assert len(narrow) > 3
    assert {word for word in narrow - wide if not word.startswith("…/")} == set()


def test_into_a_pipe_nothing_is_left_out(api: Api) -> None:
    shown = api.home.run("instances", "list", COLUMNS="").stdout
    assert shown.splitlines()[0].split() == [
        *("instance", "server", "type", "group", "status", "takes", "users", "load", "beat", "address")
    ]
