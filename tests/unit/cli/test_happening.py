"""Following events on the command line."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from roost.api.events import Happening
from roost.cli.context import Context
from roost.cli.flags import DATA
from roost.cli.happening import follow
from roost.core.errors import Forbidden
from roost.sdk.http.session import Session

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
