"""What the database keeps of a user, and what its verbs answer.

An epoch says who may write and only rises; a revision numbers the states of a user and only rises. Both are
numbers of 63 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from roost.core.owner import Owner

MAX_NUMBER = 2**63 - 1
"""The largest epoch, revision and sequence: what BIGINT holds in every database."""


class Row(msgspec.Struct, frozen=True):
    """A user as the database has it. `owner` None: nobody serves the user, and `epoch` is still the fence."""

    type: str
    user: str
    owner: Owner | None
    epoch: int
    revision: int
    schema_version: int
    min_reader: int
    last_sequence: int
    replies: bytes
    state: bytes | None
    """None: claimed, never flushed."""
    created_at: int
    """In milliseconds since 1970, by the database's clock, like `updated_at`. Never compared by any rule."""
    updated_at: int
    claim_id: int = 0
    """The claim that made the present owner; a claim that is repeated finds itself by it."""

    @classmethod
    def absent(cls, type_: str, user: str) -> Row:
        """What stands for a row that is not there: nobody's, at epoch 0."""
        return cls(type_, user, None, 0, 0, 1, 1, 0, b"", None, 0, 0)


class Flush(msgspec.Struct, frozen=True):
    """The state of a user as it shall be kept: the whole of it, under a revision above the last one."""

    type: str
    user: str
    epoch: int
    revision: int
    state: bytes
    last_sequence: int = 0
    replies: bytes = b""
    schema_version: int = 1
    min_reader: int = 1


class Claimed(msgspec.Struct, frozen=True):
    """The user is the caller's; `row` is as the claim left it, with the state to load."""

    row: Row


class Refused(msgspec.Struct, frozen=True):
    """The row's epoch is not the one judged; `row` is as it stands, at epoch 0 where there is none.

    `leased_ms`, of a claim `unless_leased`: the epoch is the one judged, but for so long, if it is not
    prolonged, the owner holds a lease in the database.
    """

    row: Row
    leased_ms: int = 0


class Flushed(msgspec.Struct, frozen=True):
    """The row holds this state, written now or by the same flush before."""


class Fenced(msgspec.Struct, frozen=True):
    """Nothing was written. `row` is as it stands; None where there is none.

    Its epoch is another: the user is somebody else's. Its epoch is the flush's own: a later revision of the
    same owner, or other content under this revision, was there first.
    """

    row: Row | None


FlushResult = Flushed | Fenced


def row_of(values: Sequence[Any]) -> Row:
    """A row from its columns in the order of `schema.ROW`."""
    (
        type_,
        user,
        server,
        life,
        epoch,
        revision,
        version,
        reader,
        sequence,
        replies,
        state,
        made,
        changed,
        claim,
    ) = values
    owner = None if server is None else Owner(server, life)
    return Row(
        type_, user, owner, epoch, revision, version, reader, sequence, replies, state, made, changed, claim
    )
