"""`roost health` and `GET /sd/v1/health`: who is well, who is not, and what the checkers say of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from roost.testing import Answer, free_port, wait_until
from tests.acceptance.conftest import Home, http

HEALTH = "/sd/v1/health"


class Well(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """The tests' output is not a log."""


@pytest.fixture
def answering() -> Iterator[int]:
    """A port where a game server answers its health check."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Well) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield server.server_port
        server.shutdown()


class Town:
    """A running Roost with servers to check."""

    def __init__(self, home: Home) -> None:
        self.home, self.url = home, home.up().url

    def ask(self, path: str, token: str | None = None, body: Any = None) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        method = "GET" if body is None else "POST"
        token = self.home.token() if token is None else token
        return http(self.url + path, method=method, token=token, body=data)

    def register(self, server_id: str, port: int | None = None, **fields: Any) -> str:
        given = {"type": "game", "group": "kr-1", "serverId": server_id, "ttlSeconds": 600, **fields}
        if port is not None:
            given |= {"privateIp": "127.0.0.1", "ports": {"main": port}}
            given |= {"health": {"kind": "http", "port": "main"}}
        answer = self.ask("/sd/v1/instances", body=given)
        assert answer.status == 201, answer.body
        return str(answer.json["instanceId"])

    def report(self, query: str = "") -> Any:
        return self.ask(HEALTH + query).json

    def wait_for(self, what: str, **wanted: tuple[bool, bool]) -> None:
        """Until this Roost votes, and each named server was asked and is (healthy, its last probe well)."""

        def holds() -> bool:
            report = self.report()
            rows = {row["serverId"]: row for row in report["servers"]}
            return bool(report["checkers"]) and all(
                (row := rows.get(server_id)) is not None
                and row["probe"] is not None
                and (row["healthy"], row["probe"]["ok"]) == state
                for server_id, state in wanted.items()
            )

        wait_until(holds, what, lambda: str(self.report()))


@pytest.fixture
def town(home: Home) -> Town:
    return Town(home)


def test_where_everybody_is_well_the_command_says_so_and_succeeds(town: Town, answering: int) -> None:
    asked, starting = town.register("s501", answering), town.register("s502", status="initializing")
    town.wait_for("the first answer", s501=(True, True))

    shown = town.home.run("health")
    assert shown.returncode == 0, shown.stderr
    rows = {line.split()[0]: line for line in shown.stdout.splitlines() if line.split()}
    assert " healthy " in rows["s501"]
    assert " ms" in rows["s501"]
    assert "starting" in rows["s502"]
    assert "2 servers" in shown.stdout
    assert "1 checker" in shown.stdout

    printed = town.home.run("health", "--json")
    assert printed.returncode == 0
    found = json.loads(printed.stdout)
    assert (found["checkers"], found["fell"], found["rose"]) == (1, 0, 0)
    by_id = {row["instanceId"]: row for row in found["servers"]}
    assert (by_id[asked]["healthy"], by_id[asked]["accepting"], by_id[asked]["votes"]) == (True, True, 0)
    assert by_id[asked]["probe"]["ok"] is True
    assert (by_id[starting]["healthy"], by_id[starting]["probe"]) == (False, None)


def test_an_unhealthy_server_comes_first_and_makes_the_command_fail(town: Town, answering: int) -> None:
    town.register("s501", answering)
    ill = town.register("s502", free_port())
    town.register("c1", type="chat", group="us-1")
    town.wait_for("the votes", s501=(True, True), s502=(False, False))

    shown = town.home.run("health")
    assert shown.returncode == 1
    row = next(line for line in shown.stdout.splitlines() if "s502" in line)
    for word in ("UNHEALTHY", "suspect", "no", "connection refused", "1/1"):
        assert word in row
    assert "3 servers, 1 unhealthy, 1 checker" in shown.stdout
    assert "Traceback" not in shown.stderr

    printed = town.home.run("health", "--json")
    assert printed.returncode == 1
    found = json.loads(printed.stdout)
    assert (found["servers"][0]["serverId"], found["servers"][0]["votes"]) == ("s502", 1)
    assert (found["checkers"], found["fell"], found["rose"]) == (1, 1, 0)
    assert town.home.run("health", "--type", "chat").returncode == 0
    assert town.home.run("health", "--group", "kr-1").returncode == 1

    instance = town.ask(f"/sd/v1/instances/{ill}").json
    assert (instance["status"], instance["instance"]["unhealthy"]) == ("suspect", True)
    assert instance["instance"]["accepting"] is False
    assert [line["event"] for line in instance["history"]] == ["added", "unhealthy"]


def test_the_report_over_http_is_for_those_who_may_read_and_of_what_they_ask_for(town: Town) -> None:
    town.register("s501")
    town.register("c1", type="chat", group="us-1")
    wait_until(lambda: len(town.report()["servers"]) == 2, "both to be seen")

    def named(query: str) -> list[str]:
        return [row["serverId"] for row in town.report(query)["servers"]]

    assert named("?type=chat") == ["c1"]
    assert named("?group=kr-1") == ["s501"]
    assert named("?type=chat&group=kr-1") == []
    assert town.ask(HEALTH, token="").status == 401
    made = town.ask("/auth/v1/tokens", body={"name": "x", "scopes": ["register"]})
    assert town.ask(HEALTH, token=made.json["token"]).status == 403


def test_without_a_roost_the_command_says_how_to_start_one(home: Home) -> None:
    result = home.run("health", "--url", f"http://127.0.0.1:{free_port()}")
    assert result.returncode == 1
    assert "roost up" in result.stderr
