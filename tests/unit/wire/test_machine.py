"""Bytes in, events out: never anything but the protocol's own error, never more kept than one frame."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.wire.codes import Code, ProtocolError
from roost.wire.frame import ERROR, HEADER, PUSH, REPLY, Frame, encode
from roost.wire.machine import PING_BYTES, Bye, Event, Machine
from tests.unit.wire.conversation import MAX_FRAME, client, opened, request, server


def open_server() -> Machine:
    other = server()
    opened(client(), other)
    return other


def open_client() -> Machine:
    one = client()
    opened(one, server())
    return one


def fed(machine: Machine, data: bytes, cuts: list[int]) -> list[Event]:
    """Everything that comes of `data` in pieces of these sizes."""
    events: list[Event] = []
    for size in cuts:
        events += machine.receive(data[:size])
        data = data[size:]
    return events + machine.receive(data)


PIECES = st.lists(st.integers(0, 80), max_size=40)


@given(st.lists(st.binary(max_size=200), max_size=8), PIECES)
def test_however_the_bytes_are_cut_the_same_frames_come_out(payloads: list[bytes], cuts: list[int]) -> None:
    frames = [request(number, payload) for number, payload in enumerate(payloads, start=1)]
    data = b"".join(map(encode, frames))
    machine = open_server()
    assert fed(machine, data, cuts) == frames
    assert machine.kept_bytes == 0


MUTATED = st.lists(
    st.one_of(
        st.binary(max_size=100),
        st.builds(
            lambda *fields: HEADER.pack(*fields) + b"x" * 30,
            st.integers(0, 200) | st.sampled_from([MAX_FRAME, MAX_FRAME + 1, 2**32 - 1]),
            st.sampled_from([1, 1, 1, 0, 2]),
            st.integers(0, 31),
            st.integers(0, 2),
            st.integers(0, 5),
            st.integers(0, 30),
            st.integers(0, 2**32 - 1),
            st.integers(0, 9),
            st.integers(0, 2**64 - 1),
        ),
        st.sampled_from([PING_BYTES, encode(request(1)), encode(request(2, b"y" * 50))]),
    ),
    max_size=12,
)
MACHINES = st.sampled_from([server, client, open_server, open_client])


@settings(max_examples=400)
@given(MACHINES, MUTATED, PIECES)
def test_no_input_breaks_it_or_makes_it_keep_more_than_one_frame(
    make: Callable[[], Machine], parts: list[bytes], cuts: list[int]
) -> None:
    machine = make()
    machine.begin()
    is_refused = False
    data = b"".join(parts)
    for size in [*cuts, len(data)]:
        piece, data = data[:size], data[size:]
        try:
            events = machine.receive(piece)
        except ProtocolError:
            assert not is_refused, "it goes on after its first error"
            is_refused = True
            continue
        assert machine.kept_bytes < MAX_FRAME + 4
        assert not (is_refused and events)
        assert machine.is_open or not any(isinstance(event, Frame) for event in events)
    assert machine.is_over or not is_refused


def test_a_frame_that_is_too_large_is_refused_by_its_first_four_bytes() -> None:
    machine = open_server()
    with pytest.raises(ProtocolError, match="at most 4096 are allowed") as refused:
        machine.receive((MAX_FRAME + 1).to_bytes(4, "little"))
    assert refused.value.says is Code.TOO_LARGE
    assert machine.kept_bytes == 0


def test_the_largest_frame_passes_byte_by_byte() -> None:
    frame = request(1, b"z" * (MAX_FRAME - 28))
    machine = open_server()
    assert fed(machine, encode(frame), [1] * 4000) == [frame]


def test_the_first_error_is_told_and_nothing_comes_after_it() -> None:
    machine, other = open_server(), open_client()
    with pytest.raises(ProtocolError):
        machine.receive(encode(request(2)) + encode(request(1)))
    assert other.receive(machine.output()) == [Bye(Code.BAD_REQUEST, "the numbers of requests must rise")]
    assert machine.receive(encode(request(3))) == []
    assert machine.output() == b""


@pytest.mark.parametrize(
    "frame",
    [
        Frame(REPLY, 1, 1, 0, 0, 1, 0, b""),
        Frame(PUSH, 1, 1, 0, 0, 0, 0, b""),
        Frame(0, 1, 1, 7, 0, 1, 0, b""),
        Frame(0, 1, 1, 0, 0, 0, 0, b""),
        Frame(0, 0, 9, 0, 0, 0, 0, b""),
    ],
    ids=["reply", "push", "code", "request 0", "unknown own method"],
)
def test_what_a_client_may_not_send(frame: Frame) -> None:
    with pytest.raises(ProtocolError):
        open_server().receive(encode(frame))


@pytest.mark.parametrize("flags", [0, ERROR, PUSH | REPLY, PUSH | ERROR])
def test_what_a_server_may_not_send(flags: int) -> None:
    with pytest.raises(ProtocolError):
        open_client().receive(encode(Frame(flags, 1, 1, 0, 0, 1, 0, b"")))


def test_any_number_of_pings_is_one_pong() -> None:
    machine, other = open_server(), open_client()
    assert machine.receive(PING_BYTES * 100) == []
    pong = machine.output()
    assert len(pong) == 32
    assert other.receive(pong) == []
    assert other.output() == b""


def test_a_farewell_ends_it_whatever_comes_with_it() -> None:
    machine, other = open_client(), open_server()
    other.end(Code.CLOSING, "the server ends")
    other.end(Code.FAILED, "said twice")
    assert machine.receive(other.output() + b"more") == [Bye(Code.CLOSING, "the server ends")]
    assert machine.is_over
    assert not machine.has_output()
