"""`roost events`, `roost audit` and `roost top` against a running Roost."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from roost.testing import wait_until
from tests.acceptance.conftest import Home, Started, http, open_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with open_home(tmp_path_factory.mktemp("looking")) as home:
        home.up()
        yield home


@pytest.mark.parametrize("command", ["events", "audit", "top"])
def test_each_has_help_with_an_example(home: Home, command: str) -> None:
    shown = home.run(command, "--help")
    assert shown.returncode == 0
    assert "Example" in shown.stdout


def test_events_are_told_as_they_happen(home: Home) -> None:
    home.run("queue", "message", "welcome")
    following = home.start("events", "--follow", "--json", "--scope", "queue", until="its message")
    home.run("queue", "hold")
    wait_until(lambda: "mode hold" in following.text, "the event", lambda: following.text)
    lines = [json.loads(line) for line in following.text.splitlines()]
    assert {line["scope"] for line in lines} == {"queue"}
    assert lines[-1]["text"] == "an operator changed main: mode hold"
    following.interrupt()
    assert "an operator changed main: mode hold" in home.run("events").stdout
    refused = home.run("events", "--scope", "nothing")
    assert refused.returncode != 0
    assert "discovery" in refused.stderr


def test_acts_of_the_command_line_are_in_the_audit_log(home: Home) -> None:
    made = home.run("token", "create", "ann", "--scope", "read")
    token = made.stdout.strip()
    assert home.run("queue", "cap", "5", ROOST_API_TOKEN=token).returncode != 0
    page = json.loads(home.run("audit", "--json", "--limit", "2").stdout)
    refused, created = page["entries"]
    assert (created["action"], created["name"], created["via"]) == ("token.create", "root", "cli")
    assert (refused["action"], refused["name"], refused["code"]) == ("world.govern", "ann", "FORBIDDEN")
    table = home.run("audit", "--action", "token").stdout
    assert "token.create" in table
    assert "world.govern" not in table
    exported = [json.loads(line) for line in home.run("audit", "--export").stdout.splitlines()]
    assert [exported[-2]["id"], exported[-1]["id"]] == [created["id"], refused["id"]]
    assert token not in home.run("audit", "--export").stdout


def test_acts_are_followed(home: Home) -> None:
    home.run("queue", "cap", "6")
    following = home.start("audit", "--follow", "--action", "world", until="world.govern")
    before = following.text.count("world.govern")
    home.run("queue", "cap", "7")
    wait_until(lambda: following.text.count("world.govern") > before, "the act", lambda: following.text)
    assert "token.create" not in following.text
    following.interrupt()


@pytest.mark.parametrize("columns", ["80", "200"])
def test_top_shows_everything_once(home: Home, columns: str) -> None:
    shown = home.run("top", "--once", COLUMNS=columns)
    assert shown.returncode == 0, shown.stderr
    assert "store ok" in shown.stdout
    assert "main" in shown.stdout
    found = json.loads(home.run("top", "--once", "--json").stdout)
    assert found["worlds"][0]["world"] == "main"


def test_top_goes_on_as_json_lines(home: Home) -> None:
    following = home.start("top", "--json", until='"at"')
    wait_until(lambda: len(following.text.splitlines()) >= 2, "another look", lambda: following.text)
    assert all(json.loads(line)["health"]["store"] == "ok" for line in following.text.splitlines()[:2])
    following.interrupt()


def test_g17_the_log_names_the_request_and_no_secret(home: Home) -> None:
    (up,) = (Started(process, home.folder / "out-0.log") for process in home.processes[:1])
    url = up.url
    http(f"{url}/queue/v1/worlds/main", method="PATCH", token=home.token(), body=b'{"mode": "auto"}')
    session = http(f"{url}/auth/v1/session", method="POST", body=json.dumps({"token": home.token()}).encode())
    lines = [json.loads(line) for line in up.text.splitlines() if line.startswith("{")]
    (*_, act) = (line for line in lines if line["message"] == "act")
    assert act["request_id"]
    assert (act["action"], act["token"]) == ("world.govern", "root")
    assert home.token() not in up.text
    assert session.headers["Set-Cookie"].partition("=")[2].partition(";")[0] not in up.text
