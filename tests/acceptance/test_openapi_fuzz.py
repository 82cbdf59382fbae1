"""A schema fuzzer reads the OpenAPI document and tries every operation, with what fits and what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.acceptance.conftest import Home, Started, http

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed (roost[dev] has it)")

TRIES = settings(
    max_examples=30,
    derandomize=True,
    database=None,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
"""For each operation and manner: about 70 of them, so a minute or two altogether."""

KNOWN = {"file": "main.js", "folder": "pages"} | {
    "id": "i-1",
    "serverId": "501",
    "symbol": "AAPL",
    "userId": "u-1",
    "world": "main",
}
"""Path parameters of things that are there, so that an answer is more than a 404."""

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)


def asks_owners(operation: Any) -> bool:
    """Answered by order servers, of which none runs here: 503 is what the document says of that."""
    return bool(operation.path.startswith(("/orders/v1/orders", "/orders/v1/symbols")))


def register(up: Started, token: str) -> None:
    record = {"type": "game", "group": "main", "instanceId": "i-1", "serverId": "501", "ports": {"http": 80}}
    body = json.dumps(record).encode()
    assert http(f"{up.url}/sd/v1/instances", method="POST", token=token, body=body).status == 201


def manners(operation: Any) -> Iterator[Any]:
    """What is sent to an operation: what fits, what fits and names something known, what does not fit."""
    mode = schemathesis.GenerationMode
    declared = operation.definition.raw.get("parameters", ())
    names = [parameter["name"] for parameter in declared if parameter["in"] == "path"]
    yield operation.as_strategy(generation_mode=mode.POSITIVE)
    if names:
        yield operation.as_strategy(path_parameters={name: KNOWN[name] for name in names})
    if names or operation.query or operation.body:
        yield operation.as_strategy(generation_mode=mode.NEGATIVE)


def is_stream(operation: Any) -> bool:
    """Whether its answer does not end by itself; what such a route refuses is tried in test_openapi.py."""
    success = operation.definition.raw["responses"].get("200", {})
    return "text/event-stream" in success.get("content", {})


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_answer_of_every_operation_is_as_the_document_says(home: Home) -> None:
    up = home.up()
    headers = {"X-API-Token": home.token()}
    register(up, headers["X-API-Token"])
    document = schemathesis.openapi.from_url(f"{up.url}/openapi.json", headers=headers)
    checks = [getattr(schemathesis.checks, name) for name in CHECKS]

    def attempt(case: Any) -> None:
        case.validate_response(case.call(headers=headers, timeout=10), checks=checks)

    faults: dict[str, str] = {}
    operations = [found.ok() for found in document.get_all_operations()]
    for operation in operations:
        for cases in () if is_stream(operation) or asks_owners(operation) else manners(operation):
            try:
                TRIES(given(case=cases)(attempt))()
            except schemathesis.errors.FailureGroup as fault:
                faults[operation.label] = str(fault)
    assert len(operations) > 25
    assert faults == {}
