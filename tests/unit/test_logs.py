from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from roost.core.signing import Kind, MasterKey, Signer
from roost.logs import mask_passwords, mask_secrets, start_logging


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(form: str) -> str:
    stream = io.StringIO()
    start_logging("info", form, stream)
    log = logging.getLogger("roost.test")
    log.debug("too fine")
    log.info("moved", extra={"userId": "u1", "rank": 3})
    try:
        raise ValueError("redis://me:hunter2@host")
    except ValueError:
        log.exception("failed")
    return stream.getvalue()


def test_json_logs_are_one_object_per_line_with_their_fields() -> None:
    first, second = map(json.loads, logged("json").splitlines())
    assert (first["message"], first["level"], first["userId"], first["rank"]) == ("moved", "info", "u1", 3)
    assert first["time"].endswith("+00:00")
    assert "ValueError" in second["exception"]


def test_human_logs_are_lines_with_fields_behind() -> None:
    text = logged("human")
    assert "info    moved  userId=u1  rank=3" in text
    assert "too fine" not in text


@pytest.mark.parametrize("form", ["human", "json", "auto"])
def test_passwords_in_urls_never_reach_a_log(form: str) -> None:
    assert "hunter2" not in logged(form)


def test_only_the_password_is_masked() -> None:
    assert (
        mask_passwords("redis://me:pw@h:1/0 and http://x:8400/a@b")
        == "redis://me:***@h:1/0 and http://x:8400/a@b"
    )
    assert mask_passwords("redis://:pw@h") == "redis://:***@h"


def test_a_signed_token_that_slips_into_a_log_is_masked() -> None:
    token = Signer(Kind.TICKET, (MasterKey("k1", b"x" * 32),)).sign(b"a ticket")
    assert (
        mask_secrets(f"GET /gameserver?ticketId={token} HTTP/1.1")
        == "GET /gameserver?ticketId=v1.*** HTTP/1.1"
    )
    assert mask_secrets("version v1.2.3.4 and redis://:pw@h") == "version v1.2.3.4 and redis://:***@h"
