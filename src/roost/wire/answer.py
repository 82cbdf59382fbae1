"""What a handler answers and a caller gets."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from roost.wire.codes import Code

_encode = msgspec.msgpack.Encoder().encode


class Answer(msgspec.Struct, frozen=True, gc=False):
    """The result (`OK`), or a refusal with its code and a payload that `refusal` made."""

    payload: bytes = b""
    code: Code = Code.OK
    epoch: int = 0

    @property
    def message(self) -> str:
        """Why it was refused, for people; empty for a result."""
        return said_in(self.payload).message if self.code else ""

    @property
    def retry_after_ms(self) -> int:
        """When to come again; 0: nobody said."""
        return said_in(self.payload).retry_after_ms if self.code else 0


def refusal(code: Code, message: str, *, retry_after_ms: int = 0, epoch: int = 0, **more: Any) -> Answer:
    """An answer that is an error frame; `more` are fields of the application (MOVED names the owner)."""
    said: dict[str, Any] = {"message": message} | more
    if retry_after_ms:
        said["retryAfterMs"] = retry_after_ms
    return Answer(_encode(said), code, epoch)


def with_more(answer: Answer, code: Code, **more: Any) -> Answer:
    """The refusal under this code, with further fields of the application."""
    said: dict[str, Any] = msgspec.msgpack.decode(answer.payload)
    return Answer(_encode(said | more), code, answer.epoch)


def digest_of(code: Code, payload: bytes) -> bytes:
    """16 bytes by which an answer is known again."""
    return blake2b(payload, digest_size=16, person=bytes((code,))).digest()


class Said(msgspec.Struct, frozen=True, rename="camel"):
    """What every error payload holds; other fields belong to the application."""

    message: str = ""
    retry_after_ms: int = 0


_decode = msgspec.msgpack.Decoder(Said).decode


def said_in(payload: bytes) -> Said:
    """The common part of an error payload; of one that is no such map, nothing."""
    try:
        return _decode(payload)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Said()
