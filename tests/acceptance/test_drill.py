"""`roost drill launch` on a running Roost: its verdict, and what stops it before it begins."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.acceptance.conftest import Home

EVENING = ("drill", "launch", "--users", "60", "--arrive", "2", "--session", "0.5", "--capacity", "30")


@pytest.fixture(scope="module")
def roost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    home = Home(tmp_path_factory.mktemp("drill"))
    up = home.up(ROOST_QUEUE__TICK_MS="100", ROOST_QUEUE__TICKET_SECONDS="2")
    yield home
    up.interrupt()


def test_everybody_gets_in_and_out_and_the_report_says_so(roost: Home) -> None:
    done = roost.run(*EVENING, "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["users"], report["finished"], report["overadmit"]) == (60, 60, 0)
    assert [(one["guarantee"], one["held"]) for one in report["guarantees"]] == [
        ("G10", True),
        ("G11", True),
        ("G12", True),
    ]
    assert report["counts"]["let in"] >= 60
    assert 0 < report["mostInside"] <= 30


def test_people_read_the_verdict(roost: Home) -> None:
    done = roost.run(*EVENING)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "60 of 60 people got in and out" in done.stdout
    for guarantee in ("G10", "G11", "G12"):
        assert any(line.split()[:2] == [guarantee, "held"] for line in done.stdout.splitlines())


def test_somebody_who_never_gets_in_breaks_the_verdict(roost: Home) -> None:
    assert roost.run("queue", "hold").returncode == 0
    done = roost.run("drill", "launch", "--users", "3", "--arrive", "0.1", "--patience", "1", "--servers")
    assert roost.run("queue", "resume").returncode == 0
    assert done.returncode == 1
    assert "G12        BROKEN  3 of 3 people never got in and out" in done.stdout


@pytest.mark.parametrize(
    ("args", "env", "said"),
    [
        (("--url", "http://127.0.0.1:9"), {}, "no gateway shows the world main"),
        (("--url", "127.0.0.1:8400"), {}, "must begin with http://"),
        (("--world", "nowhere"), {}, "there is no world 'nowhere'"),
        (("--no-servers",), {}, "the servers of main take nobody"),
        ((), {"ROOST_API_TOKEN": "wrong-token-of-nobody"}, "this API token is not known here"),
    ],
)
def test_what_stops_it_is_said_in_a_line(
    roost: Home, args: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    done = roost.run("drill", "launch", "--users", "3", *args, **env)
    assert done.returncode == 1
    assert done.stderr.startswith("roost: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
