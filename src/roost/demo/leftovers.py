"""What a demo leaves on this machine and how it is taken away: folder, keys, loops, lines in the log."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Iterable

from roost.core.loops import Loops
from roost.demo.names import PREFIX, folder_of, is_demo
from roost.demo.purge import purge
from roost.settings import Settings
from roost.store.store import Store

NOTE = "fleet.json"
TOLD_OF = ("userId", "world", "serverId", "type", "loop")
"""Fields of a line in the log that say whom it is about."""


async def clean_up(store: Store, settings: Settings) -> None:
    """Take an earlier demo out, if there was one; nothing of it may run any more."""
    folder = folder_of(settings.data)
    if not folder.exists():
        return
    await purge(store, _noted_shards(settings), settings.binding.partitions)
    for cached in (settings.data / "cache").glob("list-*.json"):
        if f'"{PREFIX}'.encode() in cached.read_bytes():
            cached.unlink()
    shutil.rmtree(folder)


def keep_note(settings: Settings, shards: Iterable[int]) -> None:
    """Remember which shards must be emptied afterwards, also by another process than this one."""
    note = folder_of(settings.data) / NOTE
    note.write_text(json.dumps({"shards": sorted(set(shards))}), encoding="utf-8")


def _noted_shards(settings: Settings) -> list[int]:
    try:
        return list(json.loads((folder_of(settings.data) / NOTE).read_text(encoding="utf-8"))["shards"])
    except (OSError, ValueError, KeyError):
        return []


def forget_loops(loops: Loops) -> None:
    """Those that ran for the demo are shown no more."""
    for loop in loops.all():
        if any(map(is_demo, loop.name.split())):
            loops.forget(loop.name)


class Quiet(logging.Filter):
    """Drops what is merely informative of the demo: a developer looks for their own lines."""

    def filter(self, record: logging.LogRecord) -> bool:
        about_demo = any(is_demo(getattr(record, field, None)) for field in TOLD_OF)
        return record.levelno >= logging.WARNING or not about_demo


def quiet_logs() -> Callable[[], None]:
    """Begin to drop them in this process; returns the way to end that."""
    quiet, handlers = Quiet(), list(logging.getLogger().handlers)
    for handler in handlers:
        handler.addFilter(quiet)

    def end() -> None:
        for handler in handlers:
            handler.removeFilter(quiet)

    return end
