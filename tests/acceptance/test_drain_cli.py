"""`roost drain` and `roost entity_hotfix` beside a running Roost whose entity servers answer nobody."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest

from roost.binding.scripts import Beaten
from roost.binding.service import Bindings
from roost.core.owner import Owner
from roost.testing import eventually
from tests.acceptance.conftest import ROOST, Home
from tests.acceptance.test_bindings_http import on_the_store
from tests.acceptance.test_discovery_http import Api

pytestmark = pytest.mark.slow

VERSIONS = {"501": "1.0", "502": "1.0", "503": "2.0"}


@pytest.fixture
def api(home: Home) -> Api:
    """501 to 503 are registered and beat in the map; 501 holds whoever came before the others."""
    up = home.up()
    api = Api(home, up.url, home.token())
    lives = {
        server_id: api.register(
            type="entity",
            serverId=server_id,
            capacity=10,
            version=version,
            privateIp="127.0.0.1",
            ports={"wire": 1},
            ttlSeconds=600,
        )["life"]
        for server_id, version in VERSIONS.items()
    }

    async def place(bindings: Bindings) -> None:
        for server_id, version in VERSIONS.items():
            owner = Owner(server_id, lives[server_id])

            async def is_known(owner: Owner = owner, version: str = version) -> bool:
                return isinstance(await bindings.beat("entity", owner, capacity=10, version=version), Beaten)

            await eventually(is_known, "the manager to write the server")
        for user in ("ann", "bob", "cyd"):
            await bindings.resolve("entity", user)

    on_the_store(home, place)
    return api


def shown(home: Home, *args: str, **env: str) -> Any:
    done = home.run("drain", *args, "--json", **env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_plan_is_shown_and_nothing_is_started(api: Api) -> None:
    done = api.home.run("drain", "start", "501", "--to", "503", "--plan", COLUMNS="80")
    assert done.returncode == 0, done.stderr
    assert "nothing was started" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    plan = shown(api.home, "start", "501", "--version", "2.0", "--plan")
    assert [one["serverId"] for one in plan["targets"]] == ["503"]
    assert shown(api.home, "status") == {"jobs": []}


def test_an_operator_starts_looks_pauses_resumes_and_cancels(api: Api) -> None:
    home = api.home
    job = shown(home, "start", "501,502", "--rate", "50", "--to", "503", "--canary", "5%")
    assert (job["servers"], job["to"], job["rate"], job["canary"]) == (["501", "502"], ["503"], 50, 5)

    again = shown(home, "start", "501")
    assert again["id"] == job["id"]
    hotfix = home.run("entity_hotfix", "501,502", "--json")
    assert json.loads(hotfix.stdout)["id"] == job["id"]

    assert job["id"] in home.run("drain", "status").stdout
    picture = home.run("drain", "status", job["id"], COLUMNS="80").stdout
    assert "501, 502 → 503" in picture
    assert max(map(len, picture.splitlines())) <= 80
    assert shown(home, "pause", job["id"])["state"] == "paused"
    followed = home.run("drain", "status", job["id"], "--follow")
    assert (followed.returncode, followed.stdout.split()[0]) == (1, "paused")
    assert f"roost drain resume {job['id']}" in followed.stderr
    assert shown(home, "resume", job["id"])["state"] == "running"
    assert home.run("drain", "cancel", job["id"]).returncode == 0

    refused = home.run("drain", "resume", job["id"])
    assert refused.returncode == 1
    assert "JOB_STATE" in refused.stderr


def test_an_operator_evens_out_and_takes_out_the_emptiest(api: Api) -> None:
    lives = {one["serverId"]: one["life"] for one in api.ask("GET", "/sd/v1/instances").json["instances"]}

    async def crowd(bindings: Bindings) -> None:
        for number in range(6):
            await bindings.bind("entity", f"u{number}", Owner("501", lives["501"]))

    on_the_store(api.home, crowd)
    plan = shown(api.home, "start", "--emptiest", "1", "--plan")
    assert plan["sources"][0]["serverId"] in ("502", "503")
    job = shown(api.home, "rebalance", "--users", "2")
    assert (job["kind"], job["servers"], job["to"]) == ("rebalance", ["501"], ["502"])
    shown(api.home, "cancel", job["id"])
    scaled_in = shown(api.home, "start", "--emptiest", "1", "--no-follow")
    assert (scaled_in["kind"], scaled_in["servers"]) == ("drain", [plan["sources"][0]["serverId"]])


def _heeds_ctrl_c() -> None:
    """Also where these tests run in the background of a shell, whose children ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_the_picture_and_not_the_job(api: Api) -> None:
    home = api.home
    with subprocess.Popen(
        [*ROOST, "drain", "start", "501"],
        env=home.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home.folder,
        preexec_fn=_heeds_ctrl_c,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("running")
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=20)
    (job,) = shown(home, "status")["jobs"]
    assert process.returncode == 130
    assert f"job {job['id']} goes on without you" in said
    assert "Traceback" not in said
    assert job["state"] == "running"


WRONG = (
    (("status", "nobody"), "UNKNOWN_JOB"),
    (("pause", "nobody"), "UNKNOWN_JOB"),
    (("rollback", "nobody"), "UNKNOWN_JOB"),
    (("report", "nobody"), "UNKNOWN_JOB"),
    (("start",), "no server is named"),
    (("start", "501", "--emptiest", "1"), "give one of the two"),
    (("start", "999"), "UNKNOWN_HOLDER"),
    (("start", "501", "--version", "9.9"), "NOWHERE_TO_MOVE"),
    (("start", "5{01"), "INVALID_ID"),
    (("start", "501", "--canary", "many"), "no share of the users"),
    (("status", "--follow"), "needs a job"),
)


def test_what_is_wrong_is_said_in_a_line(api: Api) -> None:
    for args, code in WRONG:
        done = api.home.run("drain", *args)
        assert done.returncode == 1, done.stdout
        assert code in done.stderr
        assert "Traceback" not in done.stderr


def test_a_token_without_the_scope_may_look_only(api: Api) -> None:
    made = api.ask("POST", "/auth/v1/tokens", {"name": "reader", "scopes": ["read"]})
    reader = {"ROOST_API_TOKEN": made.json["token"]}
    assert shown(api.home, "status", **reader) == {"jobs": []}
    for args in (("drain", "start", "501"), ("drain", "rebalance"), ("entity_hotfix", "501")):
        done = api.home.run(*args, **reader)
        assert done.returncode == 1
        assert "FORBIDDEN" in done.stderr


@pytest.mark.parametrize(
    "verb", ["start", "status", "pause", "resume", "cancel", "rollback", "report", "rebalance"]
)
def test_every_verb_has_help_with_an_example_at_80_columns(home: Home, verb: str) -> None:
    done = home.run("drain", verb, "--help", COLUMNS="80")
    assert done.returncode == 0
    assert f"roost drain {verb}" in done.stdout
    assert "Example" in done.stdout
    assert "--json" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
