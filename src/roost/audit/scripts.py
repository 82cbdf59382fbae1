"""The script of the audit log as a typed function."""

from __future__ import annotations

from dataclasses import dataclass

from roost.store.keys import Keys
from roost.store.keys.audit import audit_keys
from roost.store.scripts import Library, ScopedScript


@dataclass(frozen=True, slots=True)
class Appended:
    rev: int


class AuditScripts:
    def __init__(self, library: Library, keys: Keys) -> None:
        self.append: ScopedScript[Appended] = ScopedScript(
            library.script("audit", "append", Appended), audit_keys(keys)
        )
