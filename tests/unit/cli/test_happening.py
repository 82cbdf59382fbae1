"""Following events on the command line."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from roost.api.audit import AuditEntry, AuditPage
from roost.api.events import Happening
from roost.cli import happening
from roost.cli.context import Context
from roost.cli.flags import DATA
from roost.cli.happening import follow
from roost.cli.nouns import audit
from roost.core.errors import Forbidden, StartFailed, StoreUnavailable
from roost.sdk.http.session import Session

WHEN = "2026-11-20T18:00:00Z"
EVENT = (
    b'{"scope":"drain","event":"running","at":"2026-11-20T18:00:00Z","subject":"job/1","text":"a drain runs"}'
)

GAP = b'{"scope":"","at":"2026-11-20T18:00:00Z"}'


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
    """Any gateway may have answered: what a stream cannot tell is read from the log."""
    done, asked_since, marks = ["1"], list[str](), list[str]()

    def ask(_: Context, method: str, path: str, reply: type[Any], *, query: Any, **__: Any) -> Any:
        asked_since.append(dict(query).get("since", ""))
        return AuditPage([act(number) for number in reversed(done)])

    async def events(
        _: Session, path: str, query: Any, last_id: str
    ) -> AsyncGenerator[tuple[str, bytes], None]:
        marks.append(last_id)
        if len(marks) == 3:
            raise Forbidden("the end")
        number = done[-1]
        done.append(str(int(number) + 1))  # before this stream began, after what was read of the log
        yield f"g{number}-0", GAP
        for late in (done[-1], str(int(number) + 2)):
            if late not in done:
                done.append(late)
            yield f"g{number}-{late}", told(late)

    monkeypatch.setattr(Context, "ask", ask)
    monkeypatch.setattr(Session, "events", events)
    monkeypatch.setattr(happening, "RETRY_S", 0.0)
    with pytest.raises(Forbidden, match="the end"):
        audit.app(["--follow", "--data", str(tmp_path)], standalone_mode=False)
    seen = capsys.readouterr()
    assert [line.split()[3] for line in seen.out.splitlines()] == [f"world.govern/{n}" for n in range(1, 6)]
    assert marks == ["-", "g1-3", "g3-5"]
    assert asked_since == ["", WHEN, WHEN]
    assert "missed" not in seen.err


def test_a_gap_that_could_not_be_filled_is_filled_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks, gaps = (
        list[str](),
        [StoreUnavailable("not now"), StartFailed("no gateway"), None, Forbidden("the end")],
    )

    async def events(*args: Any) -> AsyncGenerator[tuple[str, bytes], None]:
        marks.append(args[-1])
        yield f"g{len(marks)}-0", GAP

    def on_gap() -> None:
        if error := gaps.pop(0):
            raise error

    monkeypatch.setattr(Session, "events", events)
    monkeypatch.setattr(happening, "RETRY_S", 0.0)
    with pytest.raises(Forbidden, match="the end"):
        follow(Context({DATA: tmp_path}), ["audit"], lambda _: None, "g0-1", on_gap)
    assert marks == ["g0-1", "g0-1", "g0-1", "g3-0"]


def told(number: str) -> bytes:
    entry = msgspec.to_builtins(act(number))
    return msgspec.json.encode(Happening("audit", "world.govern", WHEN, "world/main", "…", details=entry))


def act(number: str) -> AuditEntry:
    who = ("root", "root", ["admin"], "127.0.0.1")
    return AuditEntry(
        number, WHEN, *who, f"world.govern/{number}", "world/main", None, None, "done", "", "r", "cli"
    )
