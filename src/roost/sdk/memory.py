"""What a client remembers of lists: to go on while nobody answers, and to doubt what cannot be true."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from pathlib import Path

import msgspec

from roost.api.discovery import Instance, InstanceList

log = logging.getLogger("roost.sdk")

CONFIRM_AFTER_S = 10.0
WRITE_INTERVAL_S = 1.0


class ListGuard:
    """Doubts a list that lost more than half of its instances without the changes to account for it.

    Every removal takes a revision. A list that lost more than the revisions since would explain comes from
    a store that was wiped or fell back: it is believed only when a second one, 10 s later, agrees.
    """

    def __init__(self) -> None:
        self.believed: InstanceList | None = None
        """The list to act on."""
        self._doubted_at: float | None = None

    def believe(self, fresh: InstanceList, now: float) -> InstanceList:
        """The list to act on: `fresh`, or the last one that was believed."""
        if self.believed is None or not _is_doubtful(self.believed, fresh):
            self._doubted_at = None
            self.believed = fresh
        elif self._doubted_at is None:
            self._doubted_at = now
        elif now - self._doubted_at >= CONFIRM_AFTER_S:
            self._doubted_at = None
            self.believed = fresh
        return self.believed

    @property
    def doubts(self) -> bool:
        return self._doubted_at is not None


def _is_doubtful(before: InstanceList, fresh: InstanceList) -> bool:
    listed = {instance.instance_id for instance in fresh.instances}
    missing = sum(instance.instance_id not in listed for instance in before.instances)
    return missing * 2 > len(before.instances) and missing > fresh.revision - before.revision


class ListDisk:
    """The last list of each question, in a folder, for a process that starts while nobody answers."""

    def __init__(self, folder: Path, origin: str) -> None:
        self._folder = folder
        self._origin = origin
        self._written_at: dict[Path, float] = {}

    def save(self, type_: str, group: str, listed: InstanceList) -> None:
        """At most once a second per question; a disk that refuses is not worth an error."""
        path = self._path(type_, group)
        now = time.monotonic()
        if now - self._written_at.get(path, -WRITE_INTERVAL_S) < WRITE_INTERVAL_S:
            return
        self._written_at[path] = now
        with contextlib.suppress(OSError, ValueError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh = path.with_suffix(f".{os.getpid()}.new")
            fresh.write_bytes(msgspec.json.encode(listed))
            fresh.replace(path)

    def load(self, type_: str, group: str) -> tuple[InstanceList, float] | None:
        """The list and its age in seconds."""
        path = self._path(type_, group)
        try:
            listed = msgspec.json.decode(path.read_bytes(), type=InstanceList)
            return listed, max(0.0, time.time() - path.stat().st_mtime)
        except (OSError, msgspec.DecodeError):
            return None

    def _path(self, type_: str, group: str) -> Path:
        digest = hashlib.sha256(f"{self._origin}\0{type_}\0{group}".encode()).hexdigest()[:24]
        return self._folder / f"list-{digest}.json"


class ListMemory:
    """The last believed list of each question, with the disk behind it if there is one."""

    def __init__(self, disk: ListDisk | None) -> None:
        self._disk = disk
        self._guards: dict[tuple[str, str], ListGuard] = {}

    def believe(self, type_: str, group: str, fresh: InstanceList) -> list[Instance]:
        """The instances to act on; see `ListGuard`."""
        guard = self._guards.setdefault((type_, group), ListGuard())
        believed = guard.believe(fresh, time.monotonic())
        if guard.doubts:
            log.warning("a list that cannot be true is doubted", extra={"type": type_, "group": group})
        elif self._disk is not None:
            self._disk.save(type_, group, believed)
        return believed.instances

    def recall(self, type_: str, group: str, reason: str) -> list[Instance] | None:
        """What was believed last, by us or by what the disk holds, while nobody answers; None: nothing."""
        guard = self._guards.get((type_, group))
        if guard is not None and guard.believed is not None:
            log.warning("serving the last list", extra={"reason": reason})
            return guard.believed.instances
        kept = self._disk.load(type_, group) if self._disk is not None else None
        if kept is None:
            return None
        log.warning("serving the last list", extra={"age_s": round(kept[1], 1), "reason": reason})
        return kept[0].instances
