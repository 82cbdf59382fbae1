"""What people carry: the passes of the login service, the receipt of a place, the ticket, the session.

    keys = parse_keys(os.environ["ROOST_QUEUE_KEYS"])
    signature = sign_entry(keys, user="u-17", world="main", ttl_s=60)     # in the login service
    token = sign_login(keys, user="u-17", ttl_s=60)                       # where no waiting room is asked

Each is a signed token of its own kind, so none can stand for another. A ticket's end is in it for looking
only: the store decides whether it is still good.
"""

from __future__ import annotations

import hmac
import time
from typing import TypeVar

import msgspec

from roost.core.errors import TokenRefused
from roost.core.signing import Kind, MasterKey, Signer, peek

MOVED_BACK = 2**36
"""By how much a wiped world moves the numbers of places that receipts bring back, once; the rule of
`place_restored.lua`."""
BASE = "base"
"""The class of people who have no other."""


class EntryPass(msgspec.Struct, array_like=True, frozen=True):
    """The login service vouches for this user, in this world, with this class, until then."""

    world: str
    user: str
    class_: str
    expires_at: float
    """Unix seconds."""
    party: str = ""
    """Whom they come with, if not alone: everybody of the party gets in together, or nobody yet."""
    size: int = 1


class Receipt(msgspec.Struct, array_like=True, frozen=True):
    """This user has this place in the order of a world."""

    world: str
    user: str
    born: int
    """Which world it was: one that was wiped and made again has another birth."""
    seq: int
    line: str
    shown: int
    """The rank that they saw last; no later one is larger."""
    at: float = 0.0
    """Unix seconds at which the store last confirmed the place: an answer without it makes none younger."""

    @property
    def moved(self) -> int:
        """The number that the place gets in a world that was wiped since: before everybody who is new."""
        return self.seq - MOVED_BACK if self.seq >= self.born else self.seq

    def names(self, born: int, seq: int) -> bool:
        """Whether this is the place, in the world that was born then."""
        return seq == (self.seq if self.born == born else self.moved)


class Ticket(msgspec.Struct, array_like=True, frozen=True):
    world: str
    user: str
    tid: str
    seq: int


class LifePass(msgspec.Struct, array_like=True, frozen=True):
    """Whoever shows it registered this server, and was given this life."""

    server_id: str
    life: str


class LoginPass(msgspec.Struct, array_like=True, frozen=True):
    """The login service vouches for this user at a gate, until then."""

    user: str
    expires_at: float
    """Unix seconds."""
    types: tuple[str, ...] = ()
    """Service types that they may talk to; empty: those that the gate allows everybody."""
    nickname: str = ""


class ResumePass(msgspec.Struct, array_like=True, frozen=True):
    """This user had this session at a gate, and may go on with it until then."""

    user: str
    session: str
    expires_at: float
    """Unix seconds."""
    types: tuple[str, ...] = ()
    """As in the pass of the login."""
    nickname: str = ""


Pass = TypeVar("Pass")


class _Codec:
    """Packs and signs one kind of pass."""

    def __init__(self, kind: Kind, shape: type[Pass], keys: tuple[MasterKey, ...]) -> None:
        self._signer = Signer(kind, keys)
        self._decode = msgspec.msgpack.Decoder(shape).decode
        self._encode = msgspec.msgpack.Encoder().encode

    def sign(self, value: object) -> str:
        return self._signer.sign(self._encode(value))

    def is_first(self, token: str) -> bool:
        return self._signer.is_first(token)

    def verify(self, token: str) -> object:
        try:
            return self._decode(self._signer.verify(token))
        except msgspec.DecodeError:
            raise TokenRefused("the token holds something else") from None


class Passes:
    """Signs and verifies for one set of keys."""

    def __init__(self, queue_keys: tuple[MasterKey, ...], ticket_keys: tuple[MasterKey, ...]) -> None:
        self._entries = _Codec(Kind.ENTRY, EntryPass, queue_keys)
        self._receipts = _Codec(Kind.RECEIPT, Receipt, queue_keys)
        self._tickets = _Codec(Kind.TICKET, Ticket, ticket_keys)
        self.ticket_digests = tuple(_digest(key) for key in ticket_keys)
        """By which two processes see whether they sign alike; the keys cannot be found from them."""
        self._lives = _Codec(Kind.LIFE, LifePass, queue_keys)
        self._logins = _Codec(Kind.LOGIN, LoginPass, queue_keys)
        self._resumes = _Codec(Kind.RESUME, ResumePass, queue_keys)

    def entry(self, signature: str, world: str, user: str, now: float) -> EntryPass:
        """What the login service signed for this user; `TokenRefused` if it did not."""
        entry = self._entries.verify(signature)
        assert isinstance(entry, EntryPass)
        if entry.world != world or entry.user != user:
            raise TokenRefused("the signature is for another user or world")
        if entry.expires_at <= now:
            raise TokenRefused("the signature has expired")
        return entry

    def receipt(self, token: str, world: str, user: str) -> Receipt:
        receipt = self._receipts.verify(token)
        assert isinstance(receipt, Receipt)
        if receipt.world != world or receipt.user != user:
            raise TokenRefused("the receipt is for another user or world")
        return receipt

    def ticket(self, token: str, world: str) -> Ticket:
        ticket = self._tickets.verify(token)
        assert isinstance(ticket, Ticket)
        if ticket.world != world:
            raise TokenRefused("the ticket is for another world")
        return ticket

    def check_life(self, token: str, server_id: str, life: str) -> None:
        """`TokenRefused` unless a gateway gave this life to this server and signed it."""
        if self._lives.verify(token) != LifePass(server_id, life):
            raise TokenRefused("the proof is of another server or life")

    def renewed_life(self, token: str, life: str) -> str:
        """The same by the key that signs now, empty if it is already; `TokenRefused` if of another life."""
        if self._lives.is_first(token):
            return ""
        proved = self._lives.verify(token)
        assert isinstance(proved, LifePass)
        if proved.life != life:
            raise TokenRefused("the proof is of another life")
        return self._lives.sign(proved)

    def login(self, token: str, now: float) -> LoginPass:
        """What the login service signed for a gate; `TokenRefused` if it did not, or not for so long."""
        login = self._logins.verify(token)
        assert isinstance(login, LoginPass)
        if login.expires_at <= now:
            raise TokenRefused("the login token has expired")
        return login

    def resume(self, token: str, now: float) -> ResumePass:
        resume = self._resumes.verify(token)
        assert isinstance(resume, ResumePass)
        if resume.expires_at <= now:
            raise TokenRefused("the resume token has expired")
        return resume

    def sign_resume(self, resume: ResumePass) -> str:
        return self._resumes.sign(resume)

    def sign_life(self, server_id: str, life: str) -> str:
        return self._lives.sign(LifePass(server_id, life))

    def sign_receipt(self, receipt: Receipt) -> str:
        return self._receipts.sign(receipt)

    def sign_ticket(self, ticket: Ticket) -> str:
        return self._tickets.sign(ticket)


def _digest(key: MasterKey) -> str:
    return hmac.digest(key.secret, b"which ticket key is it", "sha256").hex()[:16]


def peek_user(token: str) -> str:
    """The user that a ticket names, unverified: no reason to let somebody in. Empty if it is no ticket."""
    found = _peek_ticket(token)
    return found.user if found is not None else ""


def short_ticket_id(token: str) -> str:
    """What logs call a ticket: enough to find it, too little to use it. Empty if it is no ticket."""
    found = _peek_ticket(token)
    short = found.tid[:8] if found is not None else ""
    return short if short.isascii() and short.isalnum() else ""


def _peek_ticket(token: str) -> Ticket | None:
    try:
        return msgspec.msgpack.decode(peek(token)[1:], type=Ticket)
    except (TokenRefused, msgspec.DecodeError):
        return None


def sign_entry(
    keys: tuple[MasterKey, ...],
    *,
    user: str,
    world: str = "main",
    class_: str = BASE,
    party: str = "",
    size: int = 1,
    ttl_s: float = 300.0,
    now: float | None = None,
) -> str:
    """The `signature` with which a login service sends a user to the waiting room.

    Members of a party are signed each, with the same `party` and its `size`.
    """
    expires_at = (time.time() if now is None else now) + ttl_s
    return _Codec(Kind.ENTRY, EntryPass, keys).sign(EntryPass(world, user, class_, expires_at, party, size))


def sign_login(
    keys: tuple[MasterKey, ...],
    *,
    user: str,
    types: tuple[str, ...] = (),
    nickname: str = "",
    ttl_s: float = 300.0,
    now: float | None = None,
) -> str:
    """The token with which a login service sends a user to a gate that asks for no ticket."""
    expires_at = (time.time() if now is None else now) + ttl_s
    return _Codec(Kind.LOGIN, LoginPass, keys).sign(LoginPass(user, expires_at, types, nickname))
