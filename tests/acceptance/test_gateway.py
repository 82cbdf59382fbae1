"""The edge of the gateway: what any route does with good, bad and hostile requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import ClientSession

from roost.api import Message
from roost.core.errors import InvalidId, OutcomeUnknown, StoreOverloaded, StoreRefused
from roost.core.ids import check_id
from roost.gateway.settings import GatewaySettings
from roost.settings import Settings
from roost.testing import RunningServer, open_gateway
from roost.web.route import Request, Route

TOKEN = "a-token-for-the-tests"
LIMIT = 10_000


@dataclass
class Client:
    """A session, and where its gateway listens."""

    session: ClientSession
    address: tuple[str, int]

    def __post_init__(self) -> None:
        self.get, self.post = self.session.get, self.session.post
        self.delete, self.head = self.session.delete, self.session.head


class Purchase(Message):
    user_id: str
    amount: int = 1


class Filter(Message):
    kind: str
    label: tuple[str, ...] = ()
    count: int = 10


class Echo(Message):
    got: Any


async def echo_body(request: Request) -> Echo:
    check_id(request.body.user_id, "userId")
    return Echo(got=msgspec.to_builtins(request.body))


async def echo_query(request: Request) -> Echo:
    return Echo(got=msgspec.to_builtins(request.query))


async def fall_over(request: Request) -> None:
    raise ZeroDivisionError("secret detail")


async def say_nothing(request: Request) -> None:
    return None


def failing(name: str, error: Exception) -> Route:
    async def fail(request: Request) -> None:
        raise error

    return Route("GET", f"/fail/{name}", fail, f"Fails with {name}")


ROUTES = (
    Route(
        "POST",
        "/echo",
        echo_body,
        "Echo",
        scope="register",
        body=Purchase,
        reply=Echo,
        errors=(InvalidId,),
        status=201,
    ),
    Route("GET", "/echo", echo_query, "Echo", query=Filter, reply=Echo),
    Route("DELETE", "/things/{id}", say_nothing, "Nothing", status=204),
    Route("GET", "/fall", fall_over, "Falls over"),
    failing("unknown", OutcomeUnknown()),
    failing("overloaded", StoreOverloaded()),
    failing("refused", StoreRefused("ERR something about key service:{sd}:secret")),
)


def settings_for(folder: Path, profile: str = "dev") -> Settings:
    gateway = GatewaySettings(body_limit_bytes=LIMIT)
    return Settings(profile=profile, data=folder, api_token=TOKEN, gateway=gateway)


@pytest.fixture
async def client(server: RunningServer, tmp_path: Path) -> AsyncIterator[Client]:
    async for client in _client(server.url, settings_for(tmp_path)):
        yield client


@pytest.fixture
async def lan_client(server: RunningServer, tmp_path: Path) -> AsyncIterator[Client]:
    async for client in _client(server.url, settings_for(tmp_path, "lan")):
        yield client


async def _client(url: str, settings: Settings) -> AsyncIterator[Client]:
    async with open_gateway(url, settings, more_routes=ROUTES) as gateway:
        yield Client(gateway.session, gateway.address)


async def post(client: Client, body: Any, token: str = TOKEN) -> tuple[int, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = await client.post("/echo", data=data, headers={"X-API-Token": token} if token else {})
    return response.status, await response.json()


async def exchange(client: Client, data: bytes) -> bytes:
    """Send bytes, and read until the other side closes."""
    reader, writer = await asyncio.open_connection(*client.address)
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def test_a_body_arrives_in_its_type(client: Client) -> None:
    assert await post(client, {"userId": "u1", "amount": 3}) == (201, {"got": {"userId": "u1", "amount": 3}})


async def test_unknown_fields_are_accepted_and_named(client: Client) -> None:
    status, reply = await post(client, {"userId": "u1", "colour": "red"})
    assert status == 201
    assert reply["warnings"] == ["unknown field colour"]


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (b"{", "MALFORMED_JSON", "JSON"),
        (b"", "MALFORMED_JSON", "JSON"),
        (b"\xff\xfe", "MALFORMED_JSON", ""),
        (b"[]", "INVALID_INPUT", "object"),
        ({"amount": 1}, "INVALID_INPUT", "userId"),
        ({"userId": 5}, "INVALID_INPUT", "userId"),
        ({"userId": "u", "amount": "many"}, "INVALID_INPUT", "amount"),
        ({"userId": "a{b}"}, "INVALID_ID", "userId"),
        ({"userId": "x" * 300}, "INVALID_ID", "300 bytes"),
        ({"userId": ""}, "INVALID_ID", "empty"),
    ],
)
async def test_bad_input_gets_a_code_and_what_to_change(
    client: Client, body: Any, code: str, says: str
) -> None:
    status, reply = await post(client, body)
    assert status == 400
    assert reply["error"]["code"] == code
    assert says in reply["error"]["message"]
    assert reply["error"]["requestId"]


async def test_query_parameters_arrive_in_their_types(client: Client) -> None:
    response = await client.get("/echo?kind=game&label=a&label=b&count=3")
    assert (await response.json())["got"] == {"kind": "game", "label": ["a", "b"], "count": 3}


@pytest.mark.parametrize("query", ["", "kind=a&count=x", "kind=a&colour=red"])
async def test_a_wrong_query_is_refused(client: Client, query: str) -> None:
    response = await client.get(f"/echo?{query}")
    assert response.status == 400
    assert (await response.json())["error"]["code"] == "INVALID_INPUT"


@pytest.mark.parametrize("token", ["", "wrong", TOKEN + "x", "ünïcode"])
async def test_g17_without_the_right_token_nothing_is_done(client: Client, token: str) -> None:
    status, reply = await post(client, {"userId": "u1"}, token)
    assert status == 401
    assert reply["error"]["code"] == "UNAUTHENTICATED"


async def test_a_bearer_token_works_too(client: Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    assert (await client.get("/admin/v1/status", headers=headers)).status == 200
    assert (await client.get("/admin/v1/status")).status == 401


async def test_pages_are_open_in_dev_and_closed_elsewhere(client: Client, lan_client: Client) -> None:
    for path in ("/metrics", "/openapi.json", "/docs"):
        assert (await client.get(path)).status == 200
        assert (await lan_client.get(path)).status == 401
        assert (await lan_client.get(path, headers={"X-API-Token": TOKEN})).status == 200
    for path in ("/healthz", "/readyz"):
        assert (await lan_client.get(path)).status == 200


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_gets_413_which_its_sender_can_read(
    client: Client, chunked: bool
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * LIMIT

    data: Any = chunks() if chunked else b"x" * (100 * LIMIT)
    response = await client.post("/echo", data=data, headers={"X-API-Token": TOKEN})
    assert response.status == 413
    assert (await response.json())["error"]["code"] == "BODY_TOO_LARGE"


async def test_an_endless_body_is_cut_off(client: Client) -> None:
    head = f"POST /echo HTTP/1.1\r\nHost: x\r\nX-API-Token: {TOKEN}\r\nContent-Length: {10**12}\r\n\r\n"
    answer = await exchange(client, head.encode() + b"x" * (LIMIT + 1))
    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_fault_of_ours_tells_the_client_nothing_but_its_request_id(client: Client) -> None:
    response = await client.get("/fall")
    text = await response.text()
    assert response.status == 500
    assert json.loads(text)["error"]["requestId"] == response.headers["X-Request-Id"]
    assert "secret detail" not in text
    assert "Traceback" not in text
    assert "ZeroDivision" not in text


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("unknown", 504, "OUTCOME_UNKNOWN"),
        ("overloaded", 503, "STORE_OVERLOADED"),
        ("refused", 500, "STORE_REFUSED"),
    ],
)
async def test_store_errors_have_their_codes(client: Client, name: str, status: int, code: str) -> None:
    response = await client.get(f"/fail/{name}")
    assert response.status == status
    text = await response.text()
    assert json.loads(text)["error"]["code"] == code
    assert "service:" not in text


async def test_unknown_addresses_and_methods_are_json_errors(client: Client) -> None:
    nowhere = await client.get("/nowhere")
    assert (nowhere.status, (await nowhere.json())["error"]["code"]) == (404, "NOT_FOUND")
    wrong = await client.post("/things/5")
    assert (wrong.status, (await wrong.json())["error"]["code"]) == (405, "METHOD_NOT_ALLOWED")
    assert wrong.headers["Allow"] == "DELETE"
    assert (await client.delete("/things/5")).status == 204
    assert (await client.head("/healthz")).status == 200


async def test_a_sane_request_id_is_kept_and_another_replaced(client: Client) -> None:
    kept = await client.get("/healthz", headers={"X-Request-Id": "abc-1"})
    assert kept.headers["X-Request-Id"] == "abc-1"
    replaced = await client.get("/healthz", headers={"X-Request-Id": "a b\tc" * 100})
    assert replaced.headers["X-Request-Id"] != "a b\tc" * 100


async def test_the_openapi_document_describes_every_route(client: Client) -> None:
    document = await (await client.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    post_echo = document["paths"]["/echo"]["post"]
    assert post_echo["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/Purchase")
    assert {"201", "400", "401", "403", "413", "503"} <= post_echo["responses"].keys()
    assert "INVALID_ID" in post_echo["responses"]["400"]["description"]
    assert [p["name"] for p in document["paths"]["/echo"]["get"]["parameters"]] == ["kind", "label", "count"]
    assert document["paths"]["/things/{id}"]["delete"]["parameters"][0]["in"] == "path"
    for path in document["paths"].values():
        for operation in path.values():
            for reference in _references(operation):
                assert reference.rpartition("/")[2] in document["components"]["schemas"]


def _references(node: Any) -> list[str]:
    if isinstance(node, dict):
        found = [node["$ref"]] if "$ref" in node else []
        return found + [r for value in node.values() for r in _references(value)]
    return [r for value in node for r in _references(value)] if isinstance(node, list) else []


async def test_the_docs_page_needs_nothing_from_elsewhere(client: Client) -> None:
    text = await (await client.get("/docs")).text()
    assert "/echo" in text
    for outside in ("src=", "url(", "@import", "://", "href=//"):
        assert outside not in text


async def test_the_metrics_count_what_happened(client: Client) -> None:
    await client.get("/fall")
    text = await (await client.get("/metrics")).text()
    assert 'roost_http_requests_total{method="GET",route="/fall",status="500"} 1.0' in text
    assert "redis_command_latency" in text
    assert "roost_store_up{" in text


async def test_two_platforms_run_in_one_process(client: Client, lan_client: Client) -> None:
    await client.get("/fall")
    headers = {"X-API-Token": TOKEN}
    text = await (await lan_client.get("/metrics", headers=headers)).text()
    assert 'route="/fall",status="500"' not in text


async def test_garbage_instead_of_http_is_answered_without_a_traceback(client: Client) -> None:
    answer = await exchange(client, b"\x16\x03\x01 this is not http\r\n\r\n")
    assert b"400" in answer.split(b"\r\n")[0]
    assert b"Traceback" not in answer


async def test_the_gateway_answers_many_at_once(client: Client) -> None:
    async def ask() -> int:
        async with client.get("/readyz") as response:
            return response.status

    assert set(await asyncio.gather(*(ask() for _ in range(100)))) == {200}
