"""The OpenAPI document says what the code does: names, bounds, headers, and every status of every route."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
import pytest
from yarl import URL

from roost.api import limits
from roost.api.discovery import Override, RegisterInput
from roost.balancing.balancer import STRATEGIES
from roost.core.errors import InvalidId, InvalidInput
from roost.core.ids import MAX_ID_BYTES, check_id, check_name
from roost.discovery import rules
from roost.gateway.offline import offline_document
from roost.gateway.openapi import PATH_PARAMETERS
from roost.settings import Settings
from roost.testing import Answer, Gateway, RunningServer, open_gateway

TOKEN = "a-token-for-the-tests"
FITS = {"file": "main.js", "folder": "pages"} | {
    "id": "i-1",
    "serverId": "501",
    "symbol": "ACME",
    "userId": "u-1",
    "world": "main",
}
BAD_IDS = ("x" * 1000, "a{b", "a}b", "a%00b", "a%0ab", "a%20b", "a%7Bb", "%ff%fe", "%ed%a0%80")
"""As they stand in an address: too long, braces, control characters, a space, no UTF-8, half a pair."""
WRONG = ("", "\x00", "{", "a b", "-1", "1e400", "9" * 400, "null", "[]", "true", "\u2028", "x" * 1000)
BODIES: tuple[bytes, ...] = (
    *(b"", b"[]", b"null", b"{}", b'"text"', b"1", b"{", b"\xff", b'{"a": 1e999}', b'{"type": "\\ud800"}'),
    b"[" * 2000,
    b'{"userId":"u-1","life":"1","number":1,"capacity":1,"users":1,"counted":1,"connection":"\\u0000"}',
)
HEADER_VALUES = ("", "\xff\xfe", "v1.a.b.c", "x" * 3000, "9" * 39, "0-0", "\u00b2-\u00b2")


VERBS = frozenset(
    {
        "cancel",
        "check",
        "consume",
        "create",
        "enter",
        "explain",
        "get",
        "halt",
        "leave",
        "list",
        "move",
        "override",
        "pause",
        "preview",
        "register",
    }
    | {"release", "remove", "report", "resume", "revoke", "rollback", "select", "send", "start", "update"}
    | {"replay", "unpin", "watch"}
)


class Operation(NamedTuple):
    method: str
    path: str
    told: dict[str, Any]

    def parameters(self, where: str) -> list[dict[str, Any]]:
        return [parameter for parameter in self.told["parameters"] if parameter["in"] == where]

    def address(self, given: dict[str, str] | None = None) -> str:
        return re.sub(r"{(\w+)}", lambda found: {**FITS, **(given or {})}[found[1]], self.path)


@pytest.fixture
async def gateway(server: RunningServer, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway(server.url, Settings(data=tmp_path, api_token=TOKEN)) as gateway:
        yield gateway


@pytest.fixture
async def operations(gateway: Gateway) -> list[Operation]:
    document = (await gateway.ask("GET", "/openapi.json")).json
    return [
        Operation(method.upper(), path, told)
        for path, item in document["paths"].items()
        for method, told in item.items()
        if method != "parameters"
    ]


async def test_without_a_server_the_document_is_the_one_that_a_gateway_serves(gateway: Gateway) -> None:
    served = (await gateway.ask("GET", "/openapi.json")).json
    printed = msgspec.json.encode(await asyncio.to_thread(offline_document))
    assert msgspec.json.decode(printed) == served


async def ask(
    gateway: Gateway,
    operation: Operation,
    target: str,
    body: bytes = b"",
    headers: dict[str, str] | None = None,
) -> str:
    """What is wrong with the answer; empty if it is as the document says."""
    sent = {"X-API-Token": TOKEN, **(headers or {})}
    url = URL(gateway.url + target, encoded=True)
    async with gateway.session.request(operation.method, url, data=body or None, headers=sent) as response:
        status = response.status
        answer = Answer(status, response.headers, b"" if status == 200 else await response.read())
    asked = f"{operation.method} {target[:80]} {body[:40]!r} {headers or ''}"
    told = operation.told["responses"].get(str(status))
    nobody_serves = status == 503 and answer.json["error"]["code"] == "SHARD_UNOWNED"  # no order server here
    if told is None or (status >= 500 and not nobody_serves):
        return f"{asked}: {status} {answer.body[:200]!r}"
    required = [name for name, header in told["headers"].items() if header.get("required")]
    lacking = [name for name in required if name not in answer.headers]
    return f"{asked}: {status} without {lacking}" if lacking else ""


async def test_operation_ids_are_unique_function_names(operations: list[Operation]) -> None:
    ids = [operation.told["operationId"] for operation in operations]
    assert len(set(ids)) == len(ids)
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+)+", name)] == []
    assert {name.partition("_")[0] for name in ids} <= VERBS


async def test_every_path_parameter_says_what_it_may_hold(operations: list[Operation]) -> None:
    declared = [p for operation in operations for p in operation.parameters("path")]
    assert {parameter["name"] for parameter in declared} == PATH_PARAMETERS.keys()
    assert all("pattern" in parameter["schema"] for parameter in declared)


async def test_a_bad_id_in_an_address_is_refused_as_documented(
    gateway: Gateway, operations: list[Operation]
) -> None:
    faults = [
        await ask(gateway, operation, operation.address({parameter["name"]: bad}))
        for operation in operations
        for parameter in operation.parameters("path")
        for bad in BAD_IDS
    ]
    assert [fault for fault in faults if fault] == []


async def test_wrong_values_of_query_parameters_are_refused_as_documented(
    gateway: Gateway, operations: list[Operation]
) -> None:
    faults = []
    for operation in operations:
        parameters = operation.parameters("query")
        needed = {p["name"]: "main" for p in parameters if p["required"]}
        for name in [*(p["name"] for p in parameters), "nobodyKnowsThis"]:
            for wrong in WRONG:
                query = "&".join(f"{key}={quote(value)}" for key, value in {**needed, name: wrong}.items())
                faults.append(await ask(gateway, operation, f"{operation.address()}?{query}"))
    assert [fault for fault in faults if fault] == []


async def test_bodies_that_do_not_fit_are_refused_as_documented(
    gateway: Gateway, operations: list[Operation]
) -> None:
    faults = [
        await ask(gateway, operation, operation.address(), body)
        for operation in operations
        if "requestBody" in operation.told
        for body in (*BODIES, b"x" * 300_000)
    ]
    assert [fault for fault in faults if fault] == []


@pytest.mark.slow
async def test_strange_headers_are_refused_as_documented(
    gateway: Gateway, operations: list[Operation]
) -> None:
    faults = []
    for operation in operations:
        needed = "&".join(f"{p['name']}=main" for p in operation.parameters("query") if p["required"])
        read = [parameter["name"] for parameter in operation.parameters("header")]
        body = b'{"userId": "u-1"}' if "requestBody" in operation.told else b""
        for name in [*read, "X-API-Token", "Authorization", "X-Request-Id", "Cookie"]:
            for value in HEADER_VALUES:
                prefix = {"Authorization": "Bearer ", "Cookie": "roost_receipt_main="}.get(name, "")
                headers = {name: prefix + value}
                faults.append(await ask(gateway, operation, f"{operation.address()}?{needed}", body, headers))
    assert [fault for fault in faults if fault] == []


async def test_readiness_does_not_suffer_from_what_callers_ask_for(gateway: Gateway) -> None:
    for query in ("type=a b&key=k", "type=game&group=&key=k"):
        answer = await gateway.ask("GET", f"/lb/v1/select?{query}", token=TOKEN)
        assert answer.refusal == (400, "INVALID_ID")
    names = [loop.name for loop in gateway.platform.store.loops.all()]
    assert [name for name in names if name.startswith("balancer")] == []


@pytest.mark.parametrize(
    "name", ["X-API-Token", "Authorization", "X-Queue-Receipt", "X-Queue-Signature", "Cookie"]
)
@pytest.mark.parametrize("path", ["/sd/v1/instances", "/api/queue/status?userId=u-1"])
async def test_a_header_that_is_not_utf_8_is_a_mistake_of_the_caller(
    gateway: Gateway, name: str, path: str
) -> None:
    kind = {"Authorization": b"Bearer ", "Cookie": b"roost_receipt_main="}.get(name, b"")
    reader, writer = await asyncio.open_connection(*gateway.address)
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{name}: ".encode()
    writer.write(head + kind + b"\xff\xfe\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.startswith((b"HTTP/1.1 401", b"HTTP/1.1 400")), answer


async def test_faults_of_the_store_are_listed_where_the_store_is_used(operations: list[Operation]) -> None:
    without = {operation.path for operation in operations if "503" not in operation.told["responses"]}
    console = {"/", "/console/{file}", "/console/{folder}/{file}"}
    assert without == {"/healthz", "/queue/{world}", *console}
    by_path = {(operation.method, operation.path): operation.told["responses"] for operation in operations}
    register = by_path["POST", "/sd/v1/instances"]
    assert {"201", "400", "401", "403", "404", "409", "410", "413", "500", "503", "504"} == register.keys()
    away = register["503"]
    assert away["description"] == "STORE_ACCESS_DENIED, STORE_AWAY, STORE_FULL, STORE_OVERLOADED"
    assert away["headers"]["Retry-After"]["required"]
    assert register["401"]["headers"]["WWW-Authenticate"]["required"]


async def test_what_is_written_below_a_field_is_its_description(gateway: Gateway) -> None:
    schemas = (await gateway.ask("GET", "/openapi.json")).json["components"]["schemas"]
    assert (
        schemas["RegisterInput"]["properties"]["capacity"]["description"] == "Users it can take; 0: no limit."
    )
    assert schemas["RegisterInput"]["properties"]["capacity"]["maximum"] == limits.MAX_COUNT
    assert schemas["PlaceReply"]["properties"]["ahead"]["description"] == "People before them who are there."


@pytest.mark.parametrize(
    "text", ["a", "ü:x", "a b", "a{", "}", "\x7f", "\u2028", "é" * 64, "a" * 128, "", "a" * 129]
)
def test_ids_and_names_are_shown_as_they_are_checked(text: str) -> None:
    for kind, check in ((limits.Id, check_id), (limits.Name, check_name)):
        shown = msgspec.json.schema(kind)
        fits = bool(re.search(shown["pattern"], text)) and len(text) <= shown["maxLength"] == MAX_ID_BYTES
        try:
            check(text)
        except InvalidId:
            assert not fits
        else:
            assert fits


def registration(**given: Any) -> RegisterInput:
    return RegisterInput(**{"type": "game", "group": "main", "ttl_seconds": 30.0, **given})


@pytest.mark.parametrize(
    ("field", "most", "too_much"),
    [
        ("capacity", limits.MAX_COUNT, limits.MAX_COUNT + 1),
        ("load", limits.MAX_COUNT, limits.MAX_COUNT + 1),
        ("weight", limits.MAX_WEIGHT, limits.MAX_WEIGHT + 1),
        ("ttl_seconds", limits.MAX_TTL_S, limits.MAX_TTL_S + 1),
        ("ports", {"p": 65535}, {"p": 65536}),
        ("zone", "x" * limits.MAX_TEXT, "x" * (limits.MAX_TEXT + 1)),
    ],
)
def test_a_registration_is_refused_beyond_the_bounds_that_are_shown(
    field: str, most: Any, too_much: Any
) -> None:
    rules.check_registration(registration(**{field: most}))
    with pytest.raises(InvalidInput):
        rules.check_registration(registration(**{field: too_much}))


def test_an_override_takes_the_weights_that_a_registration_takes() -> None:
    rules.check_override(Override(weight=limits.MAX_WEIGHT))
    for weight in (-1, limits.MAX_WEIGHT + 1):
        with pytest.raises(InvalidInput):
            rules.check_override(Override(weight=weight))


def test_the_strategies_that_are_shown_are_those_that_are_there() -> None:
    assert tuple(STRATEGIES) == limits.STRATEGIES
