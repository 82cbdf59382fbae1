"""Who serves a user: a server, and which of its lives."""

from __future__ import annotations

from typing import NamedTuple


class Owner(NamedTuple):
    """A restarted 501 has another life than the 501 before it, so it is another owner."""

    server_id: str
    life: str
