"""A frame is the same after a journey, and what is no frame is refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.wire.codes import Code, ProtocolError, code_of
from roost.wire.frame import AFTER_LENGTH, EXT, HEADER, PUSH, REPLY, Frame, check_length, decode, encode

U16, U32, U64 = (st.integers(0, 2**bits - 1) for bits in (16, 32, 64))
FRAMES = st.builds(
    Frame,
    st.sampled_from([0, REPLY, PUSH]),
    U16,
    U16,
    U16,
    U32,
    U64,
    U64,
    st.binary(max_size=64),
    st.none() | U64,
    st.none() | U64,
    st.none() | st.binary(max_size=55),
)


def read(data: bytes) -> Frame:
    return decode(HEADER.unpack_from(data), data, HEADER.size, len(data))


@given(FRAMES)
def test_a_frame_is_the_same_after_a_journey(frame: Frame) -> None:
    data = encode(frame)
    found = read(data)
    assert int.from_bytes(data[:4], "little") == len(data) - 4
    assert found.flags & ~EXT == frame.flags
    assert _rest(found) == _rest(frame)


def _rest(frame: Frame) -> tuple[object, ...]:
    return tuple(getattr(frame, name) for name in frame.__struct_fields__ if name != "flags")


def test_the_header_has_32_bytes() -> None:
    assert HEADER.size == 32
    assert len(encode(Frame(0, 1, 2, 0, 0, 1, 0, b""))) == 32


def test_an_extension_that_nobody_knows_is_skipped() -> None:
    block = b"\x63\x02\x00ab" + b"\x02\x08\x00" + (7).to_bytes(8, "little")
    frame = read(_with_extensions(len(block).to_bytes(2, "little") + block + b"body"))
    assert (frame.sequence, frame.oldest, frame.payload) == (7, None, b"body")


@pytest.mark.parametrize(
    "rest",
    [
        b"\x01",
        b"\x09\x00\x02\x08\x00",
        b"\x02\x00\x02\x08",
        b"\x04\x00\x02\x08\x00\x01",
        b"\x05\x00\x02\x02\x00ab",
        b"\x05\x00\x03\x02\x00ab",
        b"\xff\xff" + bytes(65535),
    ],
    ids=[
        "no length",
        "longer than its frame",
        "half a head",
        "value cut",
        "short sequence",
        "oldest",
        "huge",
    ],
)
def test_extensions_that_do_not_fit_are_refused(rest: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(_with_extensions(rest))


def _with_extensions(rest: bytes) -> bytes:
    return HEADER.pack(AFTER_LENGTH + len(rest), 1, EXT, 1, 1, 0, 0, 1, 0) + rest


def test_another_version_is_refused_and_named() -> None:
    with pytest.raises(ProtocolError, match="speaks version 2 of the protocol, this side version 1"):
        read(HEADER.pack(AFTER_LENGTH, 2, 0, 1, 1, 0, 0, 1, 0))


def test_an_unknown_flag_is_refused() -> None:
    with pytest.raises(ProtocolError, match="unknown flags 0x10"):
        read(HEADER.pack(AFTER_LENGTH, 1, 16, 1, 1, 0, 0, 1, 0))


def test_a_length_is_judged_by_itself() -> None:
    check_length(AFTER_LENGTH, 100)
    check_length(100, 100)
    with pytest.raises(ProtocolError, match="shorter than its header"):
        check_length(AFTER_LENGTH - 1, 100)
    with pytest.raises(ProtocolError, match="at most 100 are allowed") as refused:
        check_length(101, 100)
    assert refused.value.says is Code.TOO_LARGE


def test_a_code_of_a_newer_peer_is_a_failure() -> None:
    assert code_of(17) is Code.MOVED
    assert code_of(999) is Code.FAILED
