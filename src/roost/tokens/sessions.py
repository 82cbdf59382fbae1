"""Sessions of browsers: a cookie that stands for a token, without holding it.

It is signed, names the token by its id, and ends by itself; nothing is kept for it but that it was ended
before (`ended.py`). The key comes from the root token, so every gateway that shares that token accepts
the cookie of any other, and who reads the store can make none. Whoever has a cookie could try root tokens
against its signature: the derivation is made slow.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable
from typing import NamedTuple

from roost.core.errors import NotAuthenticated, TokenRefused
from roost.core.signing import Kind, MasterKey, Signer

SESSION_S = 12 * 3600
_SALT = b"roost console session"
OVER = "this session is over: log in again"


class Session(NamedTuple):
    cookie: str
    token_id: str
    expires_at: int
    """Seconds since 1970."""
    csrf: str
    nonce: str
    """By which it is told apart from others of its token."""


class Sessions:
    """Begins sessions and reads their cookies."""

    def __init__(self, root_token: str, clock: Callable[[], float] = time.time) -> None:
        self._root_token = root_token
        self._clock = clock
        self._key: bytes | None = None
        self._deriving = asyncio.Lock()

    async def begin(self, token_id: str) -> Session:
        expires_at = int(self._clock()) + SESSION_S
        nonce = secrets.token_hex(8)
        body = f"{expires_at} {token_id} {nonce}".encode()
        key = await self._derived()
        cookie = _signer(key).sign(body)
        return Session(cookie, token_id, expires_at, _csrf(key, cookie), nonce)

    async def read(self, cookie: str) -> Session:
        """`NotAuthenticated` unless it is one of ours and not over."""
        key = await self._derived()
        try:
            expires_at, token_id, nonce = _signer(key).verify(cookie).decode().split(" ")
        except (TokenRefused, ValueError):
            raise NotAuthenticated(OVER) from None
        if int(expires_at) <= self._clock():
            raise NotAuthenticated(OVER)
        return Session(cookie, token_id, int(expires_at), _csrf(key, cookie), nonce)

    async def _derived(self) -> bytes:
        """Once, beside the loop: it takes some 50 ms by intent."""
        if self._key is None:
            async with self._deriving:
                if self._key is None:
                    self._key = await asyncio.to_thread(_slowly, self._root_token)
        return self._key


def _slowly(root_token: str) -> bytes:
    return hashlib.scrypt(root_token.encode(), salt=_SALT, n=2**14, r=8, p=1, dklen=32)


def _signer(key: bytes) -> Signer:
    return Signer(Kind.CONSOLE, (MasterKey("console", key),))


def _csrf(key: bytes, cookie: str) -> str:
    return hmac.digest(key, b"csrf " + cookie.encode(), "sha256").hex()[:32]
