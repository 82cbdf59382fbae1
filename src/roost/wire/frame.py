"""One frame: a header of 32 bytes, extensions, a payload. `docs/protocol.md` is the specification.

u32 length after itself | u8 version | u8 flags | u16 service | u16 method | u16 code
| u32 budgetMs | u64 request | u64 epoch | [u16 length, TLVs] | payload          all little-endian
"""

from __future__ import annotations

from struct import Struct

import msgspec

from roost.wire.codes import Code, ProtocolError

VERSION = 1
HEADER = Struct("<IBBHHHIQQ")
AFTER_LENGTH = HEADER.size - 4
"""What the length field of a frame without extensions and payload says."""

REPLY, ERROR, PUSH, EXT = 1, 2, 4, 8
KNOWN_FLAGS = REPLY | ERROR | PUSH | EXT
"""A frame with another flag may have another layout, so it cannot be read."""

TRACEPARENT, SEQUENCE, OLDEST = 1, 2, 3
"""Types of extensions."""

MAX_EXTENSIONS_BYTES = 1024

_TLV = Struct("<BH")
_U64 = Struct("<Q")
_BOTH = Struct("<HBHQBHQ")
_BOTH_BYTES = _BOTH.size - 2
"""Sequence and oldest, what every message of a user carries: read and written in one go."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """A frame. `sequence`, `oldest` and `traceparent` travel as extensions; others are skipped."""

    flags: int
    service: int
    method: int
    code: int
    budget_ms: int
    request: int
    epoch: int
    payload: bytes
    sequence: int | None = None
    oldest: int | None = None
    traceparent: bytes | None = None

    @property
    def is_reply(self) -> bool:
        return bool(self.flags & REPLY)

    @property
    def is_push(self) -> bool:
        return bool(self.flags & PUSH)


def encode(frame: Frame) -> bytes:
    """The bytes of a frame; its flag EXT follows from whether it has extensions."""
    extensions = encode_extensions(frame.sequence, frame.oldest, frame.traceparent)
    return (
        HEADER.pack(
            AFTER_LENGTH + len(extensions) + len(frame.payload),
            VERSION,
            frame.flags | EXT if extensions else frame.flags & ~EXT,
            frame.service,
            frame.method,
            frame.code,
            frame.budget_ms,
            frame.request,
            frame.epoch,
        )
        + extensions
        + frame.payload
    )


def encode_extensions(sequence: int | None, oldest: int | None, traceparent: bytes | None = None) -> bytes:
    """The block of extensions with its length before it; empty where there is none."""
    if traceparent is None and sequence is not None and oldest is not None:
        return _BOTH.pack(_BOTH_BYTES, SEQUENCE, 8, sequence, OLDEST, 8, oldest)
    block = b""
    if traceparent is not None:
        block += _TLV.pack(TRACEPARENT, len(traceparent)) + traceparent
    for kind, number in ((SEQUENCE, sequence), (OLDEST, oldest)):
        if number is not None:
            block += _TLV.pack(kind, 8) + _U64.pack(number)
    return len(block).to_bytes(2, "little") + block if block else b""


class Extensions(msgspec.Struct, gc=False):
    """What is known of a block of extensions, and where the payload begins."""

    end: int
    sequence: int | None = None
    oldest: int | None = None
    traceparent: bytes | None = None


def decode_extensions(data: bytes, start: int, end: int) -> Extensions:
    """Read the block at `start` of a frame that ends at `end`; a type that nobody knows is skipped."""
    if end - start >= _BOTH.size:
        size, first, eight, sequence, second, also_eight, oldest = _BOTH.unpack_from(data, start)
        if (size, first, eight, second, also_eight) == (_BOTH_BYTES, SEQUENCE, 8, OLDEST, 8):
            return Extensions(start + _BOTH.size, sequence, oldest)
    if end - start < 2:
        raise ProtocolError("a frame ends within its extensions")
    size = int.from_bytes(data[start : start + 2], "little")
    stop = start + 2 + size
    if stop > end or size > MAX_EXTENSIONS_BYTES:
        raise ProtocolError("extensions are longer than their frame, or than 1024 bytes")
    return _read_tlvs(data, start + 2, stop)


def _read_tlvs(data: bytes, at: int, stop: int) -> Extensions:
    found = Extensions(stop)
    while at < stop:
        if stop - at < _TLV.size:
            raise ProtocolError("an extension ends within its head")
        kind, size = _TLV.unpack_from(data, at)
        at += _TLV.size
        if size > stop - at:
            raise ProtocolError("an extension is longer than its block")
        if kind in (SEQUENCE, OLDEST) and size != 8:
            raise ProtocolError("a sequence has 8 bytes")
        if kind == SEQUENCE:
            found.sequence = _U64.unpack_from(data, at)[0]
        elif kind == OLDEST:
            found.oldest = _U64.unpack_from(data, at)[0]
        elif kind == TRACEPARENT:
            found.traceparent = data[at : at + size]
        at += size
    return found


def decode(header: tuple[int, ...], data: bytes, start: int, end: int) -> Frame:
    """The frame with this unpacked header, whose rest is `data[start:end]`; `ProtocolError` if it is none."""
    _, version, flags, service, method, code, budget, request, epoch = header
    if version != VERSION:
        raise ProtocolError(f"the peer speaks version {version} of the protocol, this side version {VERSION}")
    if flags & ~KNOWN_FLAGS:
        raise ProtocolError(f"unknown flags {flags:#x}")
    if not flags & EXT:
        return Frame(flags, service, method, code, budget, request, epoch, data[start:end])
    more = decode_extensions(data, start, end)
    rest = data[more.end : end]
    return Frame(
        flags,
        service,
        method,
        code,
        budget,
        request,
        epoch,
        rest,
        more.sequence,
        more.oldest,
        more.traceparent,
    )


def check_length(length: int, most: int) -> None:
    """Refuse a frame by the first field of its header, before any of it is kept."""
    if length < AFTER_LENGTH:
        raise ProtocolError(f"a frame of {length} bytes is shorter than its header")
    if length > most:
        raise ProtocolError(f"a frame of {length} bytes; at most {most} are allowed", Code.TOO_LARGE)
