"""Drains as operators and admin pages see them: over HTTP, with jobs that nobody runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.api.drain import MAX_SERVERS
from roost.app import Platform
from roost.binding.drain.certificate import GateReport, reconcile
from roost.binding.drain.records import Saved, Turn
from roost.binding.settings import BindingSettings
from roost.core.lease import Tenure
from roost.core.owner import Owner
from roost.settings import Settings
from roost.store.scopes import drain
from roost.testing import Gateway, RunningServer, open_gateway, open_store
from roost.testing.bindings import BindingLeader
from tests.acceptance.role_users import in_process

TOKEN = "secret-secret-secret"
JOBS = "/drain/v1/jobs"
HOTFIX = "/admin/v1/hotfix"
SERVERS = {"501": "1.0", "502": "1.0", "503": "2.0"}


@dataclass(kw_only=True)
class DrainGateway(Gateway):
    """A gateway, and what a manager does on the same store."""

    manager: Platform


@pytest.fixture
async def gateway(server: RunningServer, tmp_path: Path) -> AsyncIterator[DrainGateway]:
    """A gateway without a manager: 501 and 502 hold users, 503 of the next version takes some."""
    settings = Settings(data=tmp_path, api_token=TOKEN, profile="lan", binding=BindingSettings(partitions=2))
    with in_process(server) as store:
        async with (
            open_gateway(store.url("gateway"), settings) as opened,
            open_store(store.url("manager")) as leading,
            open_store(store.url("entity")) as serving,
        ):
            store.note_users()
            manager = Platform(settings, leading)
            gateway = DrainGateway(
                session=opened.session, platform=opened.platform, address=opened.address, manager=manager
            )
            await inhabit(gateway, Platform(settings, serving))
            yield gateway


async def inhabit(gateway: DrainGateway, entity: Platform) -> None:
    leader = await BindingLeader.of(gateway.manager.store, gateway.manager.bindings)
    for server_id, version in SERVERS.items():
        life = await registered(gateway, server_id, version)
        await leader.shows(server_id, life)
        for number in range(2):
            owner = Owner(server_id, life)
            await entity.bindings.beat("entity", owner, capacity=40, version=version, partition=number)
    for user in ("ann", "bob", "cyd"):
        await gateway.platform.bindings.resolve("entity", user)


async def registered(gateway: Gateway, server_id: str, version: str) -> str:
    """Its life. Nothing listens at its address."""
    record = {"type": "entity", "group": "main", "serverId": server_id, "version": version, "capacity": 80}
    record |= {"privateIp": "127.0.0.1", "ports": {"wire": 1}, "ttlSeconds": 600}
    made = await gateway.ask("POST", "/sd/v1/instances", record, token=TOKEN)
    assert made.status == 201, made.body
    return str(made.json["life"])


async def ask(gateway: Gateway, method: str, path: str, body: Any = None) -> Any:
    answer = await gateway.ask(method, path, body, token=TOKEN)
    assert answer.status == 200, answer.body
    return answer.json


async def started(gateway: Gateway, *servers: str, **more: Any) -> Any:
    return (await ask(gateway, "POST", JOBS, {"servers": list(servers), **more}))["job"]


async def token_of(gateway: Gateway, **wanted: Any) -> str:
    made = await gateway.ask("POST", "/auth/v1/tokens", {"name": "somebody", **wanted}, token=TOKEN)
    assert made.status == 201, made.body
    return str(made.json["token"])


async def test_a_job_is_started_and_found(gateway: Gateway) -> None:
    job = await started(gateway, "501", rate=50, to=["503"], by="ann")

    assert (job["state"], job["kind"], job["type"]) == ("running", "drain", "entity")
    assert (job["servers"], job["to"], job["rate"], job["by"]) == (["501"], ["503"], 50, "ann")
    assert job["madeAt"].endswith("Z")
    assert (job["endedAt"], job["certificate"]) == ("", None)
    assert (await ask(gateway, "GET", f"{JOBS}/{job['id']}"))["id"] == job["id"]
    assert [one["id"] for one in (await ask(gateway, "GET", JOBS))["jobs"]] == [job["id"]]


async def test_a_second_request_answers_with_the_running_job(gateway: Gateway) -> None:
    job = await started(gateway, "501", "502")
    for again in (("502", "501"), ("502",)):
        assert (await started(gateway, *again))["id"] == job["id"]
    assert len((await ask(gateway, "GET", JOBS))["jobs"]) == 1


async def refused_everywhere(gateway: Gateway, job: str, *servers: str) -> None:
    """An order to empty these names the job that is in its way, whoever sends it."""
    nodes = "&".join(f"nodes[]={server}" for server in servers)
    for answer in (
        await gateway.ask("POST", JOBS, {"servers": list(servers)}, token=TOKEN),
        await gateway.ask("POST", f"{JOBS}?plan=1", {"servers": list(servers)}, token=TOKEN),
        await gateway.ask("GET", f"{HOTFIX}?{nodes}", token=TOKEN),
        await gateway.ask("POST", f"{HOTFIX}?{nodes}", token=TOKEN),
    ):
        assert answer.refusal == (409, "JOB_STATE")
        assert job in answer.json["error"]["message"]
        assert answer.json["error"]["hint"]


async def test_a_rebalance_is_no_answer_to_who_wants_its_server_empty(gateway: Gateway) -> None:
    await settled(gateway, "501", 20)
    job = (await ask(gateway, "POST", JOBS, {"kind": "rebalance", "users": 6}))["job"]
    assert job["servers"] == ["501"]

    await refused_everywhere(gateway, job["id"], "501")


async def test_a_rollback_is_no_answer_to_who_wants_its_server_empty(gateway: Gateway) -> None:
    job = await started(gateway, "501")
    await ask(gateway, "POST", f"{JOBS}/{job['id']}/rollback")

    await refused_everywhere(gateway, job["id"], "501")
    for wanted in ({"emptiest": 1}, {"kind": "rebalance", "servers": ["501"]}):
        assert (await gateway.ask("POST", JOBS, wanted, token=TOKEN)).refusal == (409, "JOB_STATE")


async def test_a_drain_of_some_is_no_answer_to_who_wants_more_of_them_empty(gateway: Gateway) -> None:
    job = await started(gateway, "502")

    await refused_everywhere(gateway, job["id"], "501", "502")
    other = await started(gateway, "501")
    assert other["id"] != job["id"]
    await refused_everywhere(gateway, other["id"], "501", "502")


async def test_more_of_the_emptiest_than_are_drained_are_not_answered_with_these(gateway: Gateway) -> None:
    job = (await ask(gateway, "POST", JOBS, {"emptiest": 1}))["job"]

    answer = await gateway.ask("POST", JOBS, {"emptiest": 2}, token=TOKEN)

    assert answer.refusal == (409, "JOB_STATE")
    assert job["id"] in answer.json["error"]["message"]


@pytest.mark.parametrize(("query", "field"), [("?plan=1", False), ("", True)])
async def test_a_plan_starts_nothing(gateway: Gateway, query: str, field: bool) -> None:
    body = {"servers": ["501"], "plan": field}
    answer = await ask(gateway, "POST", JOBS + query, body)

    assert answer["job"] is None
    plan = answer["plan"]
    assert [one["serverId"] for one in plan["sources"]] == ["501"]
    assert plan["users"] == plan["sources"][0]["moves"]
    assert sorted(one["serverId"] for one in plan["targets"]) == ["502", "503"]
    assert (await ask(gateway, "GET", JOBS))["jobs"] == []


async def settled(gateway: Gateway, server_id: str, count: int) -> None:
    """So many more live there."""
    rows = await gateway.platform.bindings.servers("entity")
    [owner] = [Owner(row.server_id, row.life) for row in rows if row.server_id == server_id]
    for number in range(count):
        await gateway.platform.bindings.bind("entity", f"{server_id}-{number}", owner)


async def test_crowded_servers_give_to_empty_ones(gateway: Gateway) -> None:
    await settled(gateway, "501", 20)
    wanted = {"kind": "rebalance", "users": 6}

    plan = (await ask(gateway, "POST", f"{JOBS}?plan=1", wanted))["plan"]
    assert [(one["serverId"], one["moves"]) for one in plan["sources"]] == [("501", 6)]
    assert [(one["serverId"], one["moves"]) for one in plan["targets"]] == [("502", 6)]

    job = (await ask(gateway, "POST", JOBS, wanted))["job"]
    assert (job["kind"], job["servers"], job["to"]) == ("rebalance", ["501"], ["502"])


async def test_the_emptiest_are_drained_when_fewer_are_needed(gateway: Gateway) -> None:
    await settled(gateway, "501", 5)
    await settled(gateway, "503", 9)

    plan = (await ask(gateway, "POST", f"{JOBS}?plan=1", {"emptiest": 1}))["plan"]
    assert [one["serverId"] for one in plan["sources"]] == ["502"]
    assert plan["rollbackUntil"].startswith("until the end of 502")

    job = (await ask(gateway, "POST", JOBS, {"emptiest": 1}))["job"]
    assert (job["kind"], job["servers"]) == ("drain", ["502"])
    assert (await ask(gateway, "POST", JOBS, {"emptiest": 1}))["job"]["id"] == job["id"]


async def test_an_operator_pauses_resumes_and_cancels(gateway: Gateway) -> None:
    job = await started(gateway, "501")
    path = f"{JOBS}/{job['id']}"

    assert (await ask(gateway, "POST", f"{path}/pause"))["state"] == "paused"
    assert (await gateway.ask("GET", f"{path}/report", token=TOKEN)).refusal == (409, "JOB_STATE")
    assert (await ask(gateway, "POST", f"{path}/resume"))["state"] == "running"
    await ask(gateway, "POST", f"{path}/cancel")
    for verb in ("pause", "resume"):
        assert (await gateway.ask("POST", f"{path}/{verb}", token=TOKEN)).refusal == (409, "JOB_STATE")


@pytest.mark.parametrize("is_final", [True, False])
async def test_the_certificate_of_a_job_that_is_done(gateway: DrainGateway, is_final: bool) -> None:
    job = await started(gateway, "501")
    await done(gateway, job["id"], GateReport(gate="gate-1@7", taken=9, answered=9, is_final=is_final))

    report = await ask(gateway, "GET", f"{JOBS}/{job['id']}/report")
    assert (report["holds"], report["isComplete"]) == (is_final, is_final)
    assert report["lost"] == (0 if is_final else None)  # never zero where a gate is missing
    assert report["missing"] == ([] if is_final else ["gate-1@7"])
    kept = await ask(gateway, "GET", f"{JOBS}/{job['id']}")
    assert (kept["state"], kept["certificate"], kept["etaSeconds"]) == ("done", report, None)
    assert kept["endedAt"].endswith("Z")


async def done(gateway: DrainGateway, job_id: str, report: GateReport) -> None:
    """What the controller does at the end, when this gate alone was there."""
    store, drains = gateway.manager.store, gateway.manager.drains
    kept = await drains.records.get(job_id)
    kept.progress.certificate = msgspec.to_builtins(reconcile(kept.job, {report.gate: report}, {report.gate}))
    tenure = await store.leader(drain(), "manager").campaign()
    assert isinstance(tenure, Tenure)
    turn = Turn("running", "done", free=True, ended=True)
    assert isinstance(await drains.records.save(tenure, job_id, kept.progress, turn), Saved)


@pytest.mark.parametrize(
    ("body", "refusal"),
    [
        ({"servers": ["999"]}, (404, "UNKNOWN_HOLDER")),
        ({"servers": ["501"], "type": "room"}, (404, "UNKNOWN_HOLDER")),
        ({"servers": ["5{01"]}, (400, "INVALID_ID")),
        ({"servers": ["501"], "to": ["5 03"]}, (400, "INVALID_ID")),
        ({"servers": ["501"], "type": "en:tity"}, (400, "INVALID_ID")),
        ({"servers": []}, (400, "INVALID_INPUT")),
        ({"servers": [f"s-{number}" for number in range(MAX_SERVERS + 1)]}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "rate": -1}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "rate": 10**9}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "rate": "fast"}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "canary": 101}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "canary": -1}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "maxBlockMs": -1}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "deadlineSeconds": 10**9}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "users": -1}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "emptiest": 1}, (400, "INVALID_INPUT")),
        ({"emptiest": MAX_SERVERS + 1}, (400, "INVALID_INPUT")),
        ({"emptiest": 3}, (409, "NOWHERE_TO_MOVE")),
        ({"emptiest": 4}, (409, "NOWHERE_TO_MOVE")),
        ({"servers": ["501"], "kind": "magic"}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "by": "x" * 256}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "version": "x" * 256}, (400, "INVALID_INPUT")),
        ({"servers": ["501"], "version": "9.9"}, (409, "NOWHERE_TO_MOVE")),
        ({"servers": ["501", "502", "503"]}, (409, "NOWHERE_TO_MOVE")),
    ],
)
async def test_bad_orders_get_a_clear_refusal_and_start_nothing(
    gateway: Gateway, body: dict[str, Any], refusal: tuple[int, str]
) -> None:
    assert (await gateway.ask("POST", JOBS, body, token=TOKEN)).refusal == refusal
    assert (await gateway.ask("POST", f"{JOBS}?plan=1", body, token=TOKEN)).refusal == refusal
    assert (await ask(gateway, "GET", JOBS))["jobs"] == []


@pytest.mark.parametrize(
    ("method", "path", "refusal"),
    [
        ("GET", f"{JOBS}/nobody", (404, "UNKNOWN_JOB")),
        ("GET", f"{JOBS}/nobody/report", (404, "UNKNOWN_JOB")),
        ("POST", f"{JOBS}/nobody/pause", (404, "UNKNOWN_JOB")),
        ("POST", f"{JOBS}/nobody/rollback", (404, "UNKNOWN_JOB")),
        ("GET", f"{JOBS}/a%20b", (400, "INVALID_ID")),
        ("POST", f"{JOBS}/{'x' * 129}/cancel", (400, "INVALID_ID")),
        ("GET", f"{JOBS}?limit=0", (400, "INVALID_INPUT")),
        ("GET", f"{JOBS}?limit=101", (400, "INVALID_INPUT")),
        ("DELETE", f"{JOBS}/nobody", (405, "METHOD_NOT_ALLOWED")),
    ],
)
async def test_bad_requests_get_a_clear_refusal(
    gateway: Gateway, method: str, path: str, refusal: tuple[int, str]
) -> None:
    assert (await gateway.ask(method, path, token=TOKEN)).refusal == refusal


async def test_who_may_look_may_not_order(gateway: Gateway) -> None:
    reader = await token_of(gateway, scopes=["read"])
    job = await started(gateway, "501")
    path = f"{JOBS}/{job['id']}"
    for look in (JOBS, path):
        assert (await gateway.ask("GET", look)).status == 401
        assert (await gateway.ask("GET", look, token=reader)).status == 200
    for order in (f"{path}/pause", f"{path}/cancel", f"{path}/rollback", f"{path}/resume"):
        assert (await gateway.ask("POST", order, token=reader)).status == 403
    body = {"servers": ["502"]}
    assert (await gateway.ask("POST", JOBS, body, token=reader)).status == 403
    assert (await gateway.ask("POST", f"{JOBS}?plan=1", body, token=reader)).status == 403
    assert (await ask(gateway, "GET", path))["state"] == "running"


# -- the admin page of document 001


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_the_documented_request_gets_the_documented_answer(gateway: Gateway, method: str) -> None:
    answer = await ask(gateway, method, f"{HOTFIX}?nodes[]=501&nodes[]=502")

    job = answer.pop("job")
    assert answer == {"status": "success", "message": "Received nodes", "nodes": ["501", "502"]}
    kept = await ask(gateway, "GET", f"{JOBS}/{job}")
    assert (kept["servers"], kept["rate"], kept["by"]) == (["501", "502"], 100, "hotfix")


async def test_a_second_call_answers_with_the_running_job(gateway: Gateway) -> None:
    job = await started(gateway, "501")
    for method in ("GET", "POST"):
        answer = await ask(gateway, method, f"{HOTFIX}?nodes%5B%5D=501")
        assert (answer["status"], answer["job"]) == ("success", job["id"])
    assert len((await ask(gateway, "GET", JOBS))["jobs"]) == 1


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?nodes[]=",
        "?nodes[]=abc",
        "?nodes[]=501&nodes[]=five",
        "?nodes[]=501,502",
        "?nodes[]=-1",
        "?nodes[]=4294967296",
        "?nodes[]=5%7B01",
        "?nodes[]=999",
        f"?nodes[]={'9' * 400}",
        "?" + "&".join(f"nodes[]={number}" for number in range(MAX_SERVERS + 1)),
    ],
)
async def test_a_bad_list_of_servers_is_refused_in_the_documented_words(gateway: Gateway, query: str) -> None:
    for method in ("GET", "POST"):
        answer = await gateway.ask(method, HOTFIX + query, token=TOKEN)
        assert answer.refusal == (400, "INVALID_SERVER_LIST")
        assert answer.json["error"]["message"] == "invalid server list"
    assert (await ask(gateway, "GET", JOBS))["jobs"] == []


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("name", ["token", "X-API-Token", "x-api-token", "roost_token", "Authorization"])
async def test_a_token_in_a_cookie_counts_for_nothing(gateway: Gateway, method: str, name: str) -> None:
    for value in (TOKEN, f"Bearer {TOKEN}"):
        cookie = {"Cookie": f"{name}={value}"}
        answer = await gateway.ask(method, f"{HOTFIX}?nodes[]=501", headers=cookie)
        assert answer.refusal == (401, "UNAUTHENTICATED")
    assert (await gateway.ask(method, f"{HOTFIX}?nodes[]=501&token={TOKEN}")).status == 401
    assert (await ask(gateway, "GET", JOBS))["jobs"] == []


async def test_only_an_admin_may_and_a_header_of_either_kind_does(gateway: Gateway) -> None:
    reader = await token_of(gateway, scopes=["read", "register"])
    assert (await gateway.ask("POST", f"{HOTFIX}?nodes[]=501", token=reader)).status == 403
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert (await gateway.ask("POST", f"{HOTFIX}?nodes[]=501", headers=bearer)).status == 200


async def test_a_head_request_starts_nothing(gateway: Gateway) -> None:
    answer = await gateway.ask("HEAD", f"{HOTFIX}?nodes[]=501", token=TOKEN)
    assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
    assert (await ask(gateway, "GET", JOBS))["jobs"] == []
