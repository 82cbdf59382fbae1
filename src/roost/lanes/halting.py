"""Which keys are halted, and when one is: after so many failures in a row of that key alone."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType


class Halts:
    """`failures_to_halt` 0: only an operator halts a key. A key without failures costs nothing here."""

    __slots__ = ("_failures_to_halt", "_why", "halted", "in_a_row")

    def __init__(self, failures_to_halt: int) -> None:
        self._failures_to_halt = failures_to_halt
        self.in_a_row: dict[str, int] = {}
        """Key → failures since it last succeeded; empty while all is well."""
        self._why: dict[str, str] = {}
        self.halted: Mapping[str, str] = MappingProxyType(self._why)
        """Key → why."""

    def failed(self, key: str, how: str) -> bool:
        """Whether this failure halts the key."""
        if not self._failures_to_halt or key in self._why:
            return False
        count = self.in_a_row.get(key, 0) + 1
        if count < self._failures_to_halt:
            self.in_a_row[key] = count
            return False
        self.halt(key, f"{count} failure{'s' if count > 1 else ''} in a row, the last: {how}")
        return True

    def succeeded(self, key: str) -> None:
        self.in_a_row.pop(key, None)

    def halt(self, key: str, why: str) -> None:
        self.in_a_row.pop(key, None)
        self._why[key] = why

    def resume(self, key: str) -> bool:
        """False: it was not halted."""
        return self._why.pop(key, None) is not None
