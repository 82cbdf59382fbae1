"""What the database may say, in the families of `core/errors.py`.

    DatabaseError
    ├── DatabaseUnavailable     (Unavailable) it may be repeated, carried out or not: try later
    │   ├── DatabaseOverloaded
    │   └── DatabaseFull        no room, or it takes no writes
    └── DatabaseRefused         the database answered with an error: nothing was done
        └── DatabaseAccessDenied
    StateTooLarge               (Mistake) save less, or raise the limit
    SchemaTooNew, DriverMissing (StartFailed)

What is without a code reaches a client as INTERNAL: the database's own words may name rows and addresses.
"""

from __future__ import annotations

from roost.core.errors import Mistake, RoostError, StartFailed, Unavailable


class DatabaseError(RoostError):
    """The database did not do it."""


class DatabaseUnavailable(DatabaseError, Unavailable):
    """The database is away.

    Every verb of `roost.db` may be repeated, so whether the last statement was carried out does not matter.
    """

    code = "DATABASE_AWAY"
    hint = "try again shortly; repeating it is harmless"


class DatabaseOverloaded(DatabaseUnavailable):
    """Too many calls are waiting for the database."""

    code = "DATABASE_OVERLOADED"
    hint = "nothing was changed; slow down, or raise ROOST_DB__MAX_WAITING"


class DatabaseFull(DatabaseUnavailable):
    """The database takes no writes: its disk is full, or it is read-only."""

    code = "DATABASE_FULL"
    hint = "nothing was changed; make room, or make it writable"


class DatabaseRefused(DatabaseError):
    """The database answered with an error."""


class DatabaseAccessDenied(DatabaseRefused):
    """The database refuses this user, password or database."""

    hint = "check user, password, database and rights in ROOST_DATABASE"


class StateTooLarge(Mistake):
    """The state of a user is larger than the database takes.

    Nothing was sent; the row keeps what it had.
    """

    code = "STATE_TOO_LARGE"
    hint = "save less, or raise ROOST_DB__MAX_STATE_BYTES"


class SchemaTooNew(StartFailed):
    """The database has tables of a newer Roost."""


class DriverMissing(StartFailed):
    """The driver of this database is not installed."""
