"""What servers say to each other about a user on the move, and who may say it."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from roost.binding.rules import check_epoch, check_owner
from roost.core.ids import check_id
from roost.core.owner import Owner
from roost.wire.codes import Code
from roost.wire.server import Answer, Call, refusal

MOVE, ACCEPT, COMMIT, SURVEY, RETIRE, UNRETIRE = 4, 5, 6, 7, 8, 9
MOST_USERS = 256
"""That one MOVE names."""
MOST_LISTED = 500
DIGEST_BYTES = 16


class MoveTerms(msgspec.Struct, rename="camel", frozen=True):
    max_block_ms: int = 0
    quiesce_ms: int = 0
    mark_ms: int = 0
    """0: as the settings of binding say."""
    force: bool = False


class MoveCall(NamedTuple):
    type: str
    move_id: str
    users: list[str]
    target: tuple[str, str, str, int]
    """Server id, life, host, port."""
    terms: MoveTerms


class AcceptCall(NamedTuple):
    type: str
    user: str
    move_id: str
    epoch: int
    next_epoch: int
    revision: int
    digest: bytes
    source: tuple[str, str]
    client: str
    """Empty: the user is offline."""
    context: dict[str, Any]
    pushes: int
    hold: bool


encode = msgspec.msgpack.Encoder().encode
_decode_move = msgspec.msgpack.Decoder(MoveCall).decode
_decode_accept = msgspec.msgpack.Decoder(AcceptCall).decode
_decode_commit = msgspec.msgpack.Decoder(tuple[str, str, str, int]).decode
BAD = (msgspec.DecodeError, UnicodeDecodeError)


def refuse_role(call: Call, role: str) -> Answer | None:
    """A refusal, unless the caller has proved this role."""
    if call.peer.peer_role == role:
        return None
    return refusal(Code.UNAUTHENTICATED, f"only a server of role {role} may ask this")


def read_move(payload: bytes) -> MoveCall:
    """Raises what `BAD` names, or `InvalidInput`."""
    asked = _decode_move(payload)
    check_id(asked.move_id, "move")
    check_owner(Owner(*asked.target[:2]))
    if not 0 < asked.target[3] < 65536:
        raise msgspec.ValidationError("the target's port is none")
    if not 0 < len(asked.users) <= MOST_USERS:
        raise msgspec.ValidationError(f"1 to {MOST_USERS} users are moved at once")
    for user in asked.users:
        check_id(user, "user")
    return asked


def read_accept(payload: bytes) -> AcceptCall:
    asked = _decode_accept(payload)
    check_id(asked.user, "user")
    check_id(asked.move_id, "move")
    check_owner(Owner(*asked.source))
    check_epoch(asked.epoch)
    check_epoch(asked.next_epoch)
    if not asked.epoch < asked.next_epoch:
        raise msgspec.ValidationError("the next epoch is above the present one")
    if len(asked.digest) != DIGEST_BYTES or asked.revision < 0 or asked.pushes < 0:
        raise msgspec.ValidationError("digest, revision or pushes cannot be right")
    return asked


def read_commit(payload: bytes) -> tuple[str, str, str, int]:
    """Type, user, move, next epoch."""
    return _decode_commit(payload)
