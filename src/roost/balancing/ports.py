"""What balancing needs of others."""

from __future__ import annotations

from typing import Protocol


class Binding(Protocol):
    """Where a user lives, as far as it is known here; asked without any I/O."""

    def server_of(self, user: str) -> str | None: ...


class Unbound:
    """Nobody lives anywhere: balancing without binding."""

    def server_of(self, user: str) -> str | None:
        return None
