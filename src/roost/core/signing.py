"""Signed tokens: `v1.<kid>.<payload>.<mac>`.

The payload is one byte that names the kind and a body that only the kind understands; the MAC is
HMAC-SHA256 over everything before it, under a key derived from the master key for that kind. So a
receipt can never pass as a ticket, whatever its body says, and a key list can rotate: the first key
signs, every key verifies.
"""

from __future__ import annotations

import binascii
import enum
import hashlib
import hmac
import re
from base64 import b64decode
from dataclasses import dataclass

from roost.core.errors import InvalidInput, TokenRefused

VERSION = "v1"
MAX_TOKEN_CHARS = 2048
MIN_KEY_BYTES = 16

_KID = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_INNER_PAD = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD = bytes(byte ^ 0x5C for byte in range(256))


class Kind(enum.Enum):
    """What a token is for. The value is its type byte and never changes once released."""

    TICKET = b"T"
    """May enter a game server once."""
    RECEIPT = b"R"
    """Proves a place in a waiting room."""
    ENTRY = b"E"
    """The login service vouches for a user who wants to enter."""
    LIFE = b"L"
    """A server was registered under this life."""
    LOGIN = b"G"
    """The login service vouches for a user who connects to a gate."""
    RESUME = b"S"
    """A gate had this session: its user may go on with it, here or at another gate."""
    CONSOLE = b"C"
    """A browser has shown an API token: it may go on without it, until the token is revoked."""


@dataclass(frozen=True, slots=True)
class MasterKey:
    kid: str
    secret: bytes

    def __repr__(self) -> str:
        return f"MasterKey(kid={self.kid!r}, secret=…)"


def parse_keys(text: str) -> tuple[MasterKey, ...]:
    """Read `kid:base64,kid:base64`; the first key signs. Says which entry is wrong, never what it holds."""
    keys: list[MasterKey] = []
    for position, entry in enumerate(text.split(","), start=1):
        kid, colon, encoded = entry.strip().partition(":")
        if not colon or not _KID.fullmatch(kid):
            raise InvalidInput(
                f"key {position} must be kid:base64 with a kid of 1 to 32 letters, digits, - or _"
            )
        try:
            secret = b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(f"key {position} is not valid base64 after its kid") from None
        if len(secret) < MIN_KEY_BYTES:
            raise InvalidInput(f"key {position} has {len(secret)} bytes, at least {MIN_KEY_BYTES} are needed")
        if any(kid == other.kid for other in keys):
            raise InvalidInput(f"key {position} has the kid of an earlier key")
        keys.append(MasterKey(kid, secret))
    return tuple(keys)


class Signer:
    """Signs and verifies tokens of one kind."""

    def __init__(self, kind: Kind, keys: tuple[MasterKey, ...]) -> None:
        if not keys:
            raise InvalidInput("a signer needs at least one key")
        self._type = kind.value
        self._macs = {key.kid: _Mac(_derive(key.secret, kind)) for key in keys}
        self._signing = self._macs[keys[0].kid]
        self._prefix = f"{VERSION}.{keys[0].kid}.".encode()

    def sign(self, body: bytes) -> str:
        head = self._prefix + _encode(self._type + body)
        token = head + b"." + _encode(self._signing.of(head))
        if len(token) > MAX_TOKEN_CHARS:
            raise InvalidInput(
                f"a token body of {len(body)} bytes makes a token over {MAX_TOKEN_CHARS} characters"
            )
        return token.decode()

    def is_first(self, token: str) -> bool:
        """Whether it names the key that signs now; nothing of it is verified."""
        return token.encode(errors="replace").startswith(self._prefix)

    def verify(self, token: str) -> bytes:
        """The body of `token`, or `TokenRefused`. Its reason is for logs: tell clients only "refused"."""
        if len(token) > MAX_TOKEN_CHARS or not token.isascii():
            raise TokenRefused("malformed token")
        head, _, mac_text = token.rpartition(".")
        version, _, rest = head.partition(".")
        kid, _, payload_text = rest.partition(".")
        if version != VERSION:
            raise TokenRefused("unknown token version")
        mac = self._macs.get(kid)
        if mac is None:
            raise TokenRefused("unknown signing key")
        # The MAC is compared in its encoded form, so there is exactly one spelling of a valid token.
        if not hmac.compare_digest(_encode(mac.of(head.encode())), mac_text.encode()):
            raise TokenRefused("signature does not fit")
        payload = _decode(payload_text)
        if payload[:1] != self._type:
            raise TokenRefused("token of another kind")
        return payload[1:]


def peek(token: str) -> bytes:
    """The payload of a token, unverified: whatever anybody wrote into it."""
    parts = token.split(".") if len(token) <= MAX_TOKEN_CHARS and token.isascii() else []
    if len(parts) != 4:
        raise TokenRefused("malformed token")
    return _decode(parts[2])


def _derive(secret: bytes, kind: Kind) -> bytes:
    return hmac.digest(secret, b"roost/v1/" + kind.name.encode(), "sha256")


class _Mac:
    """HMAC-SHA256 under one key, whose two padded blocks are hashed once.

    `hmac.digest` hashes them for every token, and looks up what sha256 is: two thirds of its time.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = key.ljust(64, b"\0")  # a derived key has 32 bytes
        self._inner = hashlib.sha256(block.translate(_INNER_PAD))
        self._outer = hashlib.sha256(block.translate(_OUTER_PAD))

    def of(self, message: bytes) -> bytes:
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()


def _encode(data: bytes) -> bytes:
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL)


def _decode(text: str) -> bytes:
    try:
        return binascii.a2b_base64(text.encode().translate(_FROM_URL) + b"=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise TokenRefused("malformed token") from None
