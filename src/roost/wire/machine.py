"""One connection without its socket: bytes in, events out, and bytes to send.

    events = machine.receive(data)      Frame, Opened or Bye; raises ProtocolError and nothing else
    socket.write(machine.output())

Invariants: no frame reaches the owner before the handshake is over; what is kept between two calls is less
than one frame of the largest allowed size; after the first `ProtocolError` nothing comes out any more but the
farewell that names it.
"""

from __future__ import annotations

from dataclasses import dataclass

from roost.wire.answer import refusal, said_in
from roost.wire.codes import Code, ProtocolError, code_of
from roost.wire.frame import (
    AFTER_LENGTH,
    ERROR,
    HEADER,
    PUSH,
    REPLY,
    VERSION,
    Frame,
    check_length,
    decode,
    encode,
)
from roost.wire.handshake import (
    BYE,
    MAX_GREETING_BYTES,
    OWN_SERVICE,
    PING,
    Handshake,
    Hello,
)

_KIND = REPLY | ERROR | PUSH
_NOBODY = Hello("", b"")

PING_BYTES = encode(Frame(0, OWN_SERVICE, PING, 0, 0, 0, 0, b""))
_PONG_BYTES = encode(Frame(REPLY, OWN_SERVICE, PING, 0, 0, 0, 0, b""))


@dataclass(frozen=True, slots=True)
class Opened:
    """The handshake is over: calls may go."""

    peer: Hello


@dataclass(frozen=True, slots=True)
class Bye:
    """The peer ends the connection and says why."""

    code: Code
    message: str


Event = Frame | Opened | Bye


class Machine:
    """`handshake` None: none is asked for (a gate's players prove themselves by their login)."""

    def __init__(self, handshake: Handshake | None, *, serves: bool, max_frame_bytes: int) -> None:
        self._handshake = handshake
        self._serves = serves
        self._max_frame_bytes = max_frame_bytes
        self._most = min(MAX_GREETING_BYTES, max_frame_bytes) if handshake else max_frame_bytes
        self._partial = bytearray()
        self._needed = 0
        """Bytes without which `_partial` cannot go on."""
        self._last_request = 0
        self._plain = 0 if serves else REPLY
        """The flags of a frame without errors and extensions."""
        self._out: list[bytes] = []
        self._is_ponging = False
        self.is_open = handshake is None
        self.is_over = False

    def begin(self) -> list[Event]:
        """What happens as soon as the socket is there."""
        if self.is_over:
            return []
        if self._handshake is None:
            return [Opened(_NOBODY)]
        if (first := self._handshake.begin()) is not None:
            self._out.append(encode(first))
        return []

    @property
    def kept_bytes(self) -> int:
        return len(self._partial)

    def output(self) -> bytes:
        """What is to be sent now; it is handed out once."""
        out, self._out, self._is_ponging = self._out, [], False
        return b"".join(out)

    def has_output(self) -> bool:
        return bool(self._out)

    def receive(self, data: bytes) -> list[Event]:
        if self.is_over:
            return []
        try:
            return self._read(data)
        except ProtocolError as error:
            self.end(error.says, error.message)
            raise

    def end(self, code: Code, message: str) -> None:
        """Say farewell; whatever comes from now on is not looked at."""
        if not self.is_over:
            self.is_over = True
            self._partial.clear()
            said = refusal(code, message).payload
            self._out.append(encode(Frame(REPLY | ERROR, OWN_SERVICE, BYE, code, 0, 0, 0, said)))

    def _read(self, data: bytes) -> list[Event]:
        if self._partial:
            self._partial += data
            if len(self._partial) < self._needed:
                return []
            data = bytes(self._partial)
            self._partial.clear()
        events: list[Event] = []
        at, size, unpack = 0, len(data), HEADER.unpack_from
        while size - at >= HEADER.size:
            header = unpack(data, at)
            length, version, flags, service, method, code, budget, request, epoch = header
            if not AFTER_LENGTH <= length <= self._most:
                check_length(length, self._most)
            end = at + 4 + length
            if end > size:
                break
            if (
                flags == self._plain
                and self.is_open
                and version == VERSION
                and service != OWN_SERVICE
                and (request > self._last_request and not code if self._serves else True)
            ):  # what nearly every frame is: nothing more is to be looked at
                self._last_request = request
                payload = data[at + HEADER.size : end]
                events.append(Frame(flags, service, method, code, budget, request, epoch, payload))
            else:
                self._sort(decode(header, data, at + HEADER.size, end), events)
            at = end
            if self.is_over:
                return events
        if at < size:
            self._keep(data[at:])
        return events

    def _keep(self, rest: bytes) -> None:
        self._needed = HEADER.size
        if len(rest) >= 4:
            length = int.from_bytes(rest[:4], "little")
            check_length(length, self._most)
            self._needed = 4 + length if len(rest) >= HEADER.size else HEADER.size
        self._partial += rest

    def _sort(self, frame: Frame, events: list[Event]) -> None:
        if not self.is_open or frame.service == OWN_SERVICE:
            self._take_own(frame, events)
            return
        kind = frame.flags & _KIND
        if self._serves:
            if kind or frame.code:
                raise ProtocolError("a client sends requests and nothing else")
            if frame.request <= self._last_request:
                raise ProtocolError("the numbers of requests must rise")
            self._last_request = frame.request
        elif kind not in (REPLY, REPLY | ERROR, PUSH):
            raise ProtocolError("a server sends replies and pushes and nothing else")
        events.append(frame)

    def _take_own(self, frame: Frame, events: list[Event]) -> None:
        """A frame of the connection itself, or one before the handshake is over."""
        if frame.service == OWN_SERVICE and frame.method == BYE and frame.flags & ERROR:
            self.is_over = True
            self._partial.clear()
            events.append(Bye(code_of(frame.code), said_in(frame.payload).message[:200]))
        elif not self.is_open:
            self._shake_hands(frame, events)
        elif frame.method != PING:
            raise ProtocolError(f"the connection has no method {frame.method}")
        elif not frame.flags & REPLY and not self._is_ponging:
            self._is_ponging = True  # any number of pings in one read is one pong
            self._out.append(_PONG_BYTES)

    def _shake_hands(self, frame: Frame, events: list[Event]) -> None:
        assert self._handshake is not None
        answer, is_done = self._handshake.take(frame)
        if answer is not None:
            self._out.append(encode(answer))
        if is_done:
            self.is_open = True
            self._most = self._max_frame_bytes
            assert self._handshake.peer is not None
            events.append(Opened(self._handshake.peer))
