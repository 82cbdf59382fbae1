"""Who is there: a mutual proof that both know the secret, which itself never travels.

    client → hello      role, version, a nonce
    server → challenge  role, version, a nonce of its own, its limits
    client → proof      HMAC over both messages, as client
    server → welcome    HMAC over both messages, as server

The client proves itself first, so that a stranger who merely connects gets nothing made from the secret. Both
nonces are new for each connection, so nothing recorded fits another one; each side's proof has its own label,
so none can be sent back to its maker; role, version and limits are inside, so nobody changes them on the way.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field

import msgspec

from roost.core.errors import InvalidId
from roost.core.ids import check_name
from roost.wire.codes import Code, ProtocolError
from roost.wire.frame import REPLY, Frame

OWN_SERVICE = 0
"""The service of the connection itself."""

HELLO, PROOF, PING, BYE = 1, 2, 3, 4
"""Methods of it. The replies to the first two are challenge and welcome."""

NONCE_BYTES = 32
MAC_BYTES = 32
MIN_SECRET_BYTES = 16
MAX_GREETING_BYTES = 512
"""No frame is longer before the handshake is over: a stranger cannot make us keep more."""


class Hello(msgspec.Struct, frozen=True, rename="camel"):
    """What either side says of itself: the payload of hello and of challenge."""

    role: str
    nonce: bytes
    version: str = ""
    max_frame_bytes: int = 0
    """The largest frame that it takes; 0: it does not say."""
    max_in_flight: int = 0
    """How many calls it works on at once for one connection; 0: it does not say."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who this side is, and what it takes to be believed. `nonce` is given by tests only."""

    secret: bytes = field(repr=False)
    role: str
    version: str = ""
    max_frame_bytes: int = 0
    max_in_flight: int = 0
    accepts: frozenset[str] = frozenset()
    """Roles that the other side may have; empty: any."""
    nonce: bytes = field(default_factory=lambda: secrets.token_bytes(NONCE_BYTES), repr=False)

    def __post_init__(self) -> None:
        if len(self.secret) < MIN_SECRET_BYTES:
            raise ProtocolError(f"a wire secret has at least {MIN_SECRET_BYTES} bytes")

    def hello(self) -> bytes:
        return _encode(Hello(self.role, self.nonce, self.version, self.max_frame_bytes, self.max_in_flight))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Hello).decode


class ClientHandshake:
    """The client's half. Each answer is (what to send or None, whether the connection is open)."""

    def __init__(self, me: Identity) -> None:
        self._me = me
        self._hello = me.hello()
        self._challenge = b""
        self.peer: Hello | None = None
        """Who the other side is; believed only when the handshake is over."""

    def begin(self) -> Frame | None:
        return _frame(0, HELLO, self._hello)

    def take(self, frame: Frame) -> tuple[Frame | None, bool]:
        if not self._challenge:
            return self._answer(_expect(frame, REPLY, HELLO)), False
        _check_mac(self._me.secret, "server", self._hello, self._challenge, _expect(frame, REPLY, PROOF))
        return None, True

    def _answer(self, challenge: bytes) -> Frame:
        self.peer = _read_hello(challenge, self._me)
        self._challenge = challenge
        return _frame(0, PROOF, proof(self._me.secret, "client", self._hello, challenge))


class ServerHandshake:
    """The server's half."""

    def __init__(self, me: Identity) -> None:
        self._me = me
        self._hello = b""
        self._challenge = me.hello()
        self.peer: Hello | None = None

    def begin(self) -> Frame | None:
        return None

    def take(self, frame: Frame) -> tuple[Frame | None, bool]:
        if not self._hello:
            hello = _expect(frame, 0, HELLO)
            self.peer = _read_hello(hello, self._me)
            self._hello = hello
            return _frame(REPLY, HELLO, self._challenge), False
        secret = self._me.secret
        _check_mac(secret, "client", self._hello, self._challenge, _expect(frame, 0, PROOF))
        return _frame(REPLY, PROOF, proof(secret, "server", self._hello, self._challenge)), True


Handshake = ClientHandshake | ServerHandshake


def proof(secret: bytes, side: str, hello: bytes, challenge: bytes) -> bytes:
    """What `side` shows: HMAC-SHA256 over its label and both messages, each with its length before it."""
    said = b"".join(len(part).to_bytes(4, "little") + part for part in (hello, challenge))
    return hmac.digest(secret, f"roost-wire/1 {side}\0".encode() + said, "sha256")


def _check_mac(secret: bytes, side: str, hello: bytes, challenge: bytes, shown: bytes) -> None:
    if not hmac.compare_digest(proof(secret, side, hello, challenge), shown):
        raise ProtocolError(f"the {side} does not know the secret", Code.UNAUTHENTICATED)


def _expect(frame: Frame, flags: int, method: int) -> bytes:
    if (frame.flags, frame.service, frame.method, frame.code) != (flags, OWN_SERVICE, method, 0):
        raise ProtocolError("a frame that is no part of the handshake", Code.UNAUTHENTICATED)
    return frame.payload


def _read_hello(payload: bytes, me: Identity) -> Hello:
    try:
        peer = _decode(payload)
        check_name(peer.role, "role")
    except (msgspec.MsgspecError, UnicodeDecodeError, InvalidId):
        raise ProtocolError("a greeting that nobody can read") from None
    if len(peer.nonce) != NONCE_BYTES or len(peer.version) > 128:
        raise ProtocolError(f"a greeting needs a nonce of {NONCE_BYTES} bytes and a version of at most 128")
    if min(peer.max_frame_bytes, peer.max_in_flight) < 0:
        raise ProtocolError("a limit below zero")
    if peer.nonce == me.nonce:
        raise ProtocolError("the peer sends our own nonce back", Code.UNAUTHENTICATED)
    if me.accepts and peer.role not in me.accepts:
        raise ProtocolError("a peer of this role is not expected here", Code.UNAUTHENTICATED)
    return peer


def _frame(flags: int, method: int, payload: bytes) -> Frame:
    return Frame(flags, OWN_SERVICE, method, 0, 0, 0, 0, payload)
