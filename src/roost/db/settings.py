"""The settings of the database: `ROOST_DB__…`. Which one it is says `ROOST_DATABASE`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting
from roost.db.options import DatabaseOptions


@dataclass(frozen=True, slots=True)
class DatabaseSettings:
    """How the database of durable user state is used."""

    pool_size: int = setting(
        16,
        "Connections of one process to PostgreSQL, MariaDB or MySQL. Statements beyond it wait. The server's "
        "own limit must hold those of all processes together. SQLite has one writer in any case.",
        most=1000,
    )
    timeout_ms: int = setting(
        5000,
        "How long a verb may take, waiting for a connection or for another process's lock on the SQLite file "
        "included. In milliseconds. Afterwards it is DATABASE_AWAY and may be repeated.",
    )
    connect_timeout_ms: int = setting(5000, "How long connecting and logging in may take. In milliseconds.")
    max_waiting: int = setting(
        10_000, "Verbs that may wait for the database; those beyond it are refused. It bounds memory."
    )
    max_state_bytes: int = setting(
        1 << 20,
        "The largest state of a user, and the largest list of remembered replies. In bytes. MariaDB and "
        "MySQL also need a max_allowed_packet of more than four times as much.",
        most=64 << 20,
    )
    group_size: int = setting(
        256,
        "How many writes share one transaction at most, where several wait. A larger group spares writing to "
        "the disk and holds the locks for longer.",
        most=10_000,
    )

    def faults(self) -> list[str]:
        return check_fields(self)

    def options(self) -> DatabaseOptions:
        return DatabaseOptions(
            self.pool_size,
            self.timeout_ms / 1000,
            self.connect_timeout_ms / 1000,
            self.max_waiting,
            self.max_state_bytes,
            self.group_size,
        )
