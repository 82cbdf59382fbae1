"""`roost drill`: a launch on a running Roost and its verdict, and a short soak on processes of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import Home, open_home

EVENING = ("drill", "launch", "--users", "60", "--arrive", "2", "--session", "0.5", "--capacity", "30")


@pytest.fixture(scope="module")
def roost(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with open_home(tmp_path_factory.mktemp("drill")) as home:
        home.up(ROOST_QUEUE__TICK_MS="100", ROOST_QUEUE__TICKET_SECONDS="2")
        yield home


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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_short_soak_measures_every_process_and_loses_nobody(home: Home) -> None:
    folder = home.folder / "soak"
    played = (
        "--fault",
        "none",
        "--fault",
        "gateway-killed",
        "--fault",
        "game-killed",
        "--fault",
        "store-frozen",
    )
    done = home.run_for(
        240,
        *("drill", "soak", "--minutes", "0", "--users", "40", "--capacity", "20"),
        *("--folder", str(folder), "--quiet", "1", "--json", *played),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert [one["fault"] for one in report["evenings"]] == list(played[1::2])
    assert {one["finished"] for one in report["evenings"]} == {40}
    assert all(one["held"] for one in report["verdicts"])
    measured = {one["what"] for one in report["samples"]}
    assert {"database", "store-owner", "gateway-1", "manager-1", "manager-2", "game-1"} <= measured
    assert {"gateway-2", "gateway-2 (life 2)", "game-2 (life 2)"} <= measured
    assert all(one["memoryMb"] > 1 and one["files"] > 3 for one in report["samples"])
    assert all(one["flat"] is None for one in report["courses"]), "four evenings prove nothing"
    assert all(0 < one["lastingKeys"] <= one["keys"] for one in report["store"])
    assert processes_in(folder) == [], "it ends what it started"


def processes_in(folder: Path) -> list[str]:
    return [path.name for path in Path("/proc").glob("[0-9]*") if str(folder) in command_of(path)]


def command_of(process: Path) -> str:
    try:
        return process.joinpath("cmdline").read_text(errors="replace")
    except OSError:
        return ""


def test_a_fault_that_nobody_knows_is_refused_before_anything_starts(home: Home) -> None:
    done = home.run("drill", "soak", "--fault", "earthquake", "--folder", str(home.folder / "soak"))
    assert done.returncode == 1
    assert "no fault earthquake" in done.stderr
    assert not (home.folder / "soak").exists()


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.parametrize("kill", ["", "source", "target", "controller", "gate", "store"])
def test_a_hot_update_goes_unnoticed_by_those_who_play(home: Home, kill: str) -> None:
    folder = home.folder / "hotfix"
    size = ("--clients", "4", "--users", "60", "--rate", "20", *(("--kill", kill) if kill else ()))
    done = home.run_for(180, "drill", "hotfix", *size, "--folder", str(folder), "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["kill"] == kill
    assert [one["guarantee"] for one in report["verdicts"] if not one["held"]] == []
    assert all(one["versions"] == ["1.0", "2.0"] for one in report["clients"])
    assert report["certificate"]["isComplete"] is (kill != "gate")
    assert [line.split(maxsplit=2)[2] for line in done.stderr.splitlines()] == [
        event["what"] for event in report["timeline"]
    ], "the timeline is told as it happens"
    assert processes_in(folder) == [], "it ends what it started"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--kill", "everybody"), "nobody can kill 'everybody'"),
        (("--clients", "10", "--users", "5"), "no more of them than users"),
    ],
)
def test_a_hot_update_that_cannot_be_is_refused_before_anything_starts(
    home: Home, args: tuple[str, ...], said: str
) -> None:
    done = home.run("drill", "hotfix", *args, "--folder", str(home.folder / "hotfix"))
    assert done.returncode == 1
    assert said in done.stderr
    assert not (home.folder / "hotfix").exists()
