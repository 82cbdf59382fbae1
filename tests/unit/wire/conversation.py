"""Two machines that talk to each other without sockets."""

from __future__ import annotations

from roost.wire.frame import Frame
from roost.wire.handshake import ClientHandshake, Identity, ServerHandshake
from roost.wire.machine import Event, Machine

SECRET = b"a secret of both"
MAX_FRAME = 4096


def client(secret: bytes = SECRET, role: str = "gate", **more: object) -> Machine:
    me = Identity(secret, role, "1.0", MAX_FRAME, 0, **more)  # type: ignore[arg-type]
    return Machine(ClientHandshake(me), serves=False, max_frame_bytes=MAX_FRAME)


def server(secret: bytes = SECRET, role: str = "entity", **more: object) -> Machine:
    me = Identity(secret, role, "2.0", MAX_FRAME, 8, **more)  # type: ignore[arg-type]
    return Machine(ServerHandshake(me), serves=True, max_frame_bytes=MAX_FRAME)


def opened(one: Machine, other: Machine) -> tuple[list[Event], list[Event]]:
    """Carry out the handshake; what each side heard."""
    heard_by_one, heard_by_other = one.begin(), other.begin()
    for _ in range(2):
        heard_by_other += other.receive(one.output())
        heard_by_one += one.receive(other.output())
    return heard_by_one, heard_by_other


def request(number: int, payload: bytes = b"", service: int = 1) -> Frame:
    return Frame(0, service, 1, 0, 0, number, 0, payload)
