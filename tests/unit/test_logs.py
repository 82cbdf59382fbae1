from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from contextvars import copy_context

import pytest

from roost.core.requests import current_request
from roost.core.signing import Kind, MasterKey, Signer
from roost.logs import mask_passwords, mask_secrets, start_logging, wants_colour


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


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "is_coloured"),
    [
        (Terminal(), {}, True),
        (Terminal(), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        (Terminal(), {"NO_COLOR": ""}, True),
        (Terminal(), {"TERM": "dumb"}, False),
        (io.StringIO(), {}, False),
        (io.StringIO(), {"FORCE_COLOR": "1"}, True),
    ],
)
def test_levels_are_coloured_in_a_terminal_unless_somebody_says_otherwise(
    stream: io.StringIO, environ: dict[str, str], is_coloured: bool
) -> None:
    start_logging("info", "human", stream, wants_colour=wants_colour(environ))
    logging.getLogger("roost.test").warning("moved")

    level = "\x1b[33mwarning\x1b[0m" if is_coloured else "warning"
    assert stream.getvalue()[9:] == f"{level} moved\n"


def test_a_terminal_gets_short_lines_and_json_is_never_coloured() -> None:
    lines = []
    for stream in (Terminal(), io.StringIO()):
        start_logging("info", "auto", stream, wants_colour=True)
        logging.getLogger("roost.test").error("lost")
        lines.append(stream.getvalue())
    assert lines[0].endswith(" \x1b[31merror  \x1b[0m lost\n")
    assert json.loads(lines[1])["level"] == "error"
    assert "\\u001b" not in lines[1]


def test_a_line_written_for_a_request_names_it() -> None:
    def both() -> list[str | None]:
        return [json.loads(line).get("request_id") for line in logged("json").splitlines()]

    assert copy_context().run(both) == [None, None]

    def answering() -> list[str | None]:
        current_request.set("r-7")
        return both()

    assert copy_context().run(answering) == ["r-7", "r-7"]


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
