"""What a client and a gate say to each other: JSON in a WebSocket's text, msgpack in its binary messages and
in the frames of a TCP client. The words are the same; `docs/clients.md` tells the flow.

    client   {"login": token, "resume"?: token, "types"?: […]}
             {"id"?: any, "seq"?: n, "type"?: "entity", "body": any}    {"ping": any}    {"logout": true}
    gate     {"welcome": {…}}    {"id", "seq", "type", "result", "durability", "epoch"}
             {"id", "seq", "error": {…}}    {"push": any, "type", "epoch", "n"}    {"resume": token}
             {"pong": any}    {"bye": {"code", "message"}}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from roost.core.errors import InvalidInput
from roost.servers.gate.queued import Refusal

MAX_SEQUENCE = 2**53 - 1
"""What every language can count to, JavaScript too."""
MAX_ID_BYTES = 256
MAX_TYPES = 8
_SMALLEST = -(2**63)
_LARGEST = 2**64 - 1

Sequence = Annotated[int, Meta(ge=1, le=MAX_SEQUENCE)]
Token = Annotated[str, Meta(max_length=4096)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]


class FromClient(Struct, forbid_unknown_fields=False):
    """Any message of a client; which one it is, its fields say. `body` and `id` are not looked into."""

    login: Token | UnsetType = UNSET
    resume: Token = ""
    types: Annotated[list[Name], Meta(max_length=MAX_TYPES)] = []
    id: Raw | UnsetType = UNSET
    seq: Sequence | UnsetType = UNSET
    type: Name | UnsetType = UNSET
    body: Raw | UnsetType = UNSET
    ping: Raw | UnsetType = UNSET
    logout: bool = False


class TypeWelcome(Struct, rename="camel"):
    """How a user stands with one service type."""

    last_seq: int
    reason: str
    durability: str
    epoch: int


class Welcome(Struct, rename="camel"):
    user: str
    session: str
    resume: str
    types: dict[str, TypeWelcome]
    max_bytes: int
    """The largest message that the client may send."""


class Fault(Struct, rename="camel", omit_defaults=True):
    code: str
    message: str
    retry_after_ms: int = 0


class _Welcomed(Struct):
    welcome: Welcome


class _Result(Struct, omit_defaults=True):
    id: Raw | UnsetType
    seq: int
    type: str
    result: Any
    durability: str
    epoch: int


class _Error(Struct, omit_defaults=True):
    id: Raw | UnsetType
    seq: int | UnsetType
    type: str | UnsetType
    error: Fault


class _Push(Struct):
    push: Any
    type: str
    epoch: int
    n: int


class _Bye(Struct):
    bye: Fault


class _Byed(Struct):
    """With what a client needs to come again."""

    bye: Fault
    resume: str


class _Resume(Struct):
    resume: str


class _Pong(Struct):
    pong: Raw


_pack = msgspec.msgpack.Encoder().encode


class Codec:
    """One format. `is_binary` says which kind of WebSocket message carries it, `pack_body` makes msgpack."""

    def __init__(
        self,
        *,
        is_binary: bool,
        decoder: Any,
        encode: Any,
        split: Any,
        split_push: Any,
        pack_body: Callable[[Raw], bytes],
    ) -> None:
        self.is_binary = is_binary
        self._pack_body = pack_body
        self._decode = decoder.decode
        self._encode = encode
        self._split = split.decode
        self._split_push = split_push.decode

    def read(self, data: bytes | str) -> FromClient:
        """`InvalidInput` says what is wrong with it."""
        try:
            message: FromClient = self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInput(f"not a message of a client: {_shown(error)}") from None
        if message.id is not UNSET and len(message.id) > MAX_ID_BYTES:
            raise InvalidInput(f"id is longer than {MAX_ID_BYTES} bytes")
        return message

    def body_of(self, message: FromClient) -> bytes:
        """The body in msgpack, as entities get it."""
        if message.body is UNSET:
            raise InvalidInput("a message needs a body")
        try:
            return self._pack_body(message.body)
        except (msgspec.MsgspecError, OverflowError, RecursionError) as error:
            raise InvalidInput(f"the body cannot be read: {_shown(error)}") from None

    def result(self, id_: Raw | UnsetType, seq: int, type_: str, payload: bytes, epoch: int) -> bytes:
        """An entity's answer; `InvalidInput` if it cannot be said in this format."""
        try:
            result, durability = self._split(payload)
            return self._encode(_Result(id_, seq, type_, result, durability, epoch))  # type: ignore[no-any-return]
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"the answer cannot be told here: {_shown(error)}") from None

    def push(self, type_: str, payload: bytes, epoch: int) -> bytes:
        try:
            _, _, n, body = self._split_push(payload)
            return self._encode(_Push(body, type_, epoch, n))  # type: ignore[no-any-return]
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise InvalidInput(f"the push cannot be told here: {_shown(error)}") from None

    def error(
        self,
        refusal: Refusal,
        id_: Raw | UnsetType = UNSET,
        seq: int | UnsetType = UNSET,
        type_: str | UnsetType = UNSET,
    ) -> bytes:
        return self._encode(_Error(id_, seq, type_, Fault(*refusal)))  # type: ignore[no-any-return]

    def bye(self, refusal: Refusal, resume: str = "") -> bytes:
        said = _Byed(Fault(*refusal), resume) if resume else _Bye(Fault(*refusal))
        return self._encode(said)  # type: ignore[no-any-return]

    def welcome(self, welcome: Welcome) -> bytes:
        return self._encode(_Welcomed(welcome))  # type: ignore[no-any-return]

    def resume(self, token: str) -> bytes:
        return self._encode(_Resume(token))  # type: ignore[no-any-return]

    def pong(self, ping: Raw) -> bytes:
        return self._encode(_Pong(ping))  # type: ignore[no-any-return]


_read_json = msgspec.json.Decoder().decode

JSON = Codec(
    is_binary=False,
    decoder=msgspec.json.Decoder(FromClient),
    encode=msgspec.json.Encoder().encode,
    split=msgspec.msgpack.Decoder(tuple[Any, str]),
    split_push=msgspec.msgpack.Decoder(tuple[str, str, int, Any]),
    pack_body=lambda body: _pack(_read_json(body)),
)
MSGPACK = Codec(
    is_binary=True,
    decoder=msgspec.msgpack.Decoder(FromClient),
    encode=_pack,
    split=msgspec.msgpack.Decoder(tuple[Raw, str]),
    split_push=msgspec.msgpack.Decoder(tuple[str, str, int, Raw]),
    pack_body=bytes,
)
"""In msgpack the body and the result travel through a gate unread."""


class Envelope:
    """What stands before the body of a message to an entity: `[type, user, session, body]`."""

    __slots__ = ("_head",)

    def __init__(self, type_: str, user: str, session: str) -> None:
        self._head = b"\x94" + _pack(type_) + _pack(user) + _pack(session)

    def around(self, body: bytes) -> bytes:
        return self._head + body


def _shown(error: Exception) -> str:
    return str(error)[:200]
