"""Following events on the command line."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from roost.api.audit import AuditEntry, AuditPage
from roost.api.events import Happening
from roost.cli.context import Context
from roost.cli.flags import DATA
from roost.cli.happening import follow
from roost.cli.nouns import audit
from roost.core.errors import Forbidden
from roost.sdk.http.session import Session

WHEN = "2026-11-20T18:00:00Z"
EVENT = (
    b'{"scope":"drain","event":"running","at":"2026-11-20T18:00:00Z","subject":"job/1","text":"a drain runs"}'
)


def test_it_ends_when_nobody_reads_what_it_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`roost events --follow | head` gives the prompt back."""
    streams = iter([b"7-1"])

    async def events(*_: Any) -> AsyncGenerator[tuple[str, bytes], None]:
        event_id = next(streams, None)
        if event_id is None:
            raise Forbidden("it asks again")
        yield event_id.decode(), EVENT

    def gone(_: Happening) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(Session, "events", events)
    with pytest.raises(BrokenPipeError):
        follow(Context({DATA: tmp_path}), ["drain"], gone)


def test_an_audit_log_that_is_followed_lacks_nothing_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The stream goes on from before the page, and what is in both is shown once."""

    def ask(_: Context, method: str, path: str, reply: type[Any], **__: Any) -> Any:
        if reply is AuditPage:
            return AuditPage([act("1")])
        return SimpleNamespace(event_id="h-7")

    async def events(
        _: Session, path: str, query: Any, last_id: str
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        if last_id != "h-7":
            raise Forbidden(f"goes on from {last_id!r}")
        for number in ("1", "2"):
            happened = Happening(
                "audit", "world.govern", WHEN, "world/main", "…", details=msgspec.to_builtins(act(number))
            )
            yield f"h-{number}0", msgspec.json.encode(happened)
        raise Forbidden("the end")

    monkeypatch.setattr(Context, "ask", ask)
    monkeypatch.setattr(Session, "events", events)
    with pytest.raises(Forbidden, match="the end"):
        audit.app(["--follow", "--data", str(tmp_path)], standalone_mode=False)
    assert [line.split()[3] for line in capsys.readouterr().out.splitlines()] == [
        "world.govern/1",
        "world.govern/2",
    ]


def act(number: str) -> AuditEntry:
    who = ("root", "root", ["admin"], "127.0.0.1")
    return AuditEntry(
        number, WHEN, *who, f"world.govern/{number}", "world/main", None, None, "done", "", "r", "cli"
    )
