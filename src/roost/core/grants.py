"""What an API token allows: its scopes, and what it is bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from roost.core.errors import Forbidden


class Target(NamedTuple):
    """What a call acts on. None: that is not at stake; an empty server id: it is not one server's."""

    world: str | None = None
    type: str | None = None
    server_id: str | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """Empty bindings bind to nothing: the token may act on all."""

    scopes: frozenset[str] = frozenset()
    worlds: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    server_id: str = ""
    name: str = ""
    """Of the token, for people."""
    token_id: str = ""

    @property
    def is_bound(self) -> bool:
        return bool(self.worlds or self.types or self.server_id)

    def check_scope(self, scope: str) -> None:
        if scope not in self.scopes:
            raise Forbidden(
                f"this needs a token with the scope {scope}", hint="`roost token create` makes another token"
            )

    def check(self, target: Target) -> None:
        """`Forbidden` where the token is bound to something else."""
        servers = frozenset({self.server_id}) if self.server_id else frozenset()
        for what, flag, bound, wanted in (
            ("world", "--world", self.worlds, target.world),
            ("type", "--type", self.types, target.type),
            ("server", "--server", servers, target.server_id),
        ):
            if bound and wanted is not None and wanted not in bound:
                raise Forbidden(
                    f"this token is bound to the {what} {', '.join(sorted(bound))}"
                    + (f", not {wanted[:40]}" if wanted else ""),
                    hint=f"use the token of that {what}, or make one with `roost token create … {flag}`",
                )


NOBODY = Grant()
"""Of a call that shows no token."""
