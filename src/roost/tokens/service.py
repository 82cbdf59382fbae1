"""The API tokens: who may call what.

A token is kept only as its digest and compared in constant time. There is one root token with every
scope (`ROOST_API_TOKEN`, or a file in the data folder), one that may read where it is given
(`ROOST_READ_TOKEN`), and any number of others in the store, so that they can be rotated one by one. A
gateway reads those every two seconds, and at once when it meets one it does not know: a revoked token is
refused everywhere within two seconds. While the store does not answer, the tokens that a gateway knows go on
for a minute, and others are refused as long as nobody can tell.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import os
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from roost.api.limits import MAX_BINDINGS, MAX_TOKEN_NAME
from roost.api.tokens import ALL_SCOPES, NewToken, Scope, Token, TokenInput
from roost.core.errors import (
    InvalidInput,
    NotAuthenticated,
    NotFound,
    StartFailed,
    StoreError,
    StoreUnavailable,
)
from roost.core.grants import Grant
from roost.core.ids import check_name
from roost.store.keys.tokens import TOKENS
from roost.store.store import Store
from roost.tokens.ended import EndedSessions
from roost.tokens.sessions import OVER, Session, Sessions

log = logging.getLogger("roost.tokens")

REFRESH_S = 2.0
KEPT_S = 60.0
"""How long tokens that are known go on where the store does not tell whether they were revoked."""
MAX_TOKENS = 256
MAX_TOKEN_CHARS = 512


class KeptToken(msgspec.Struct, rename="camel"):
    name: str
    scopes: list[Scope]
    created_at: str
    digest: str
    worlds: list[str] = []
    types: list[str] = []
    server_id: str = ""

    def grant(self, token_id: str) -> Grant:
        bound = (frozenset(self.worlds), frozenset(self.types), self.server_id)
        return Grant(frozenset(self.scopes), *bound, self.name, token_id)


ROOT = "root"
"""Name and id of the token with every scope; no token in the store has an id of `SETTLED`."""
READER = "reader"
"""Those of the token that only reads (`ROOST_READ_TOKEN`)."""
SETTLED = frozenset({ROOT, READER})
Known = list[tuple[bytes, Grant]]
_EVERYTHING = Grant(ALL_SCOPES, name=ROOT, token_id=ROOT)
_READING = Grant(frozenset({"read"}), name=READER, token_id=READER)


class LoggedIn(NamedTuple):
    """A session, and what its token allows at this moment."""

    session: Session
    grant: Grant

    @property
    def csrf(self) -> str:
        return self.session.csrf


_decode = msgspec.json.Decoder(KeptToken).decode


def _kept(raw: bytes) -> KeptToken:
    """Raises ValueError of one that is not ours, or of a later version."""
    kept = _decode(raw)
    bytes.fromhex(kept.digest)
    return kept


class Tokens:
    """The tokens that this gateway accepts."""

    def __init__(
        self,
        root_token: str,
        store: Store,
        clock: Callable[[], float] = time.monotonic,
        *,
        read_token: str = "",
    ) -> None:
        self._settled: Known = [(_digest(root_token), _EVERYTHING)]
        """Those that no store can revoke."""
        if read_token:
            self._settled.append((_digest(read_token), _READING))
        self._sessions = Sessions(root_token)
        self._ended = EndedSessions(store, clock)
        self._store = store
        self._key = store.keys.plain(TOKENS)
        self._known = self._settled
        self._clock = clock
        self._read_at = -KEPT_S
        """When the store told last what it has."""
        self._tried_at = -REFRESH_S
        """When it was asked last, whatever came of it."""
        self._fault = ""
        """Why nothing came of it."""
        self._unreadable: set[str] = set()
        """Ids of tokens that the log has named."""
        self._reading = asyncio.Lock()

    async def check(self, presented: str, scope: Scope) -> Grant:
        """What this token allows, if it has this scope."""
        granted = await self.identify(presented)
        granted.check_scope(scope)
        return granted

    async def identify(self, presented: str) -> Grant:
        """What this token allows; `NotAuthenticated` if nobody issued it."""
        if not presented or len(presented) > MAX_TOKEN_CHARS:
            raise NotAuthenticated
        digest = _digest(presented)
        granted = self._find(digest, self._known)
        if granted is None:
            granted = self._find(digest, await self._refresh())
        elif granted.token_id not in SETTLED and self._is_due:
            granted = self._find(digest, await self._renewed())
        if granted is None:
            raise NotAuthenticated("this API token is not known here")
        return granted

    # -- sessions of browsers

    async def log_in(self, presented: str) -> LoggedIn:
        """Begin a session for a browser that shows this token."""
        grant = await self.identify(presented)
        return LoggedIn(await self._sessions.begin(grant.token_id), grant)

    async def log_in_as_root(self) -> LoggedIn:
        """For a machine on which everybody may do everything: profile dev."""
        return LoggedIn(await self._sessions.begin(ROOT), _EVERYTHING)

    async def session(self, cookie: str) -> LoggedIn:
        """Who is logged in by this cookie; `NotAuthenticated` once it was ended, or its token revoked."""
        session = await self._sessions.read(cookie)
        if await self._ended.has(session):
            raise NotAuthenticated(OVER)
        return LoggedIn(session, await self._grant_of(session.token_id))

    async def log_out(self, cookie: str) -> None:
        """End the session, for whoever has a copy of its cookie too; of what is none, nothing."""
        try:
            session = await self._sessions.read(cookie)
        except NotAuthenticated:
            return
        await self._ended.add(session)

    async def _grant_of(self, token_id: str) -> Grant:
        known = self._known
        if token_id not in SETTLED and self._is_due:
            known = await self._renewed()
        for _, grant in known:
            if grant.token_id == token_id:
                return grant
        raise NotAuthenticated("the token of this session was revoked")

    @staticmethod
    def _find(digest: bytes, known: Known) -> Grant | None:
        granted = None
        for one, grant in known:  # all of them, always: the time must not tell which one fits
            if hmac.compare_digest(digest, one):
                granted = grant
        return granted

    @property
    def _is_due(self) -> bool:
        now = self._clock()
        return now - self._tried_at > REFRESH_S or now - self._read_at > KEPT_S

    async def _renewed(self) -> Known:
        """For a token that is known: a store that is away, or hangs, revokes nobody for a minute."""
        try:
            return await self._refresh()
        except StoreError:
            if self._clock() - self._read_at > KEPT_S:
                raise
            return self._known

    async def _refresh(self) -> Known:
        """Read the store's tokens, at most ten times a second whatever is presented.

        One read serves all who wait for it, also if it fails.
        """
        async with self._reading:
            if self._clock() - self._tried_at > REFRESH_S / 20:
                try:
                    kept = await self._read()
                except StoreError as error:
                    self._tried_at, self._fault = self._clock(), error.message
                    raise
                self._known = [
                    *self._settled,
                    *((bytes.fromhex(t.digest), t.grant(key)) for key, t in kept.items()),
                ]
                self._read_at = self._tried_at = self._clock()
                self._fault = ""
            elif self._fault:
                raise StoreUnavailable(self._fault)
        return self._known

    async def _read(self) -> dict[str, KeptToken]:
        """Without those that cannot be read: they are nobody's, and the log names each once."""
        flat = await self._store.call("HGETALL", self._key, key=self._key, idempotent=True)
        found: dict[str, KeptToken] = {}
        for key, raw in zip(flat[::2], flat[1::2], strict=True):
            token_id = key.decode(errors="replace")
            try:
                found[token_id] = _kept(raw)
            except ValueError as error:
                if token_id not in self._unreadable:
                    log.error("unreadable token", extra={"tokenId": token_id, "reason": str(error)})
                self._unreadable.add(token_id)
        return found

    async def create(self, given: TokenInput) -> NewToken:
        if not given.name or len(given.name) > MAX_TOKEN_NAME:
            raise InvalidInput(
                f"a token needs a name of 1 to {MAX_TOKEN_NAME} characters, for the people who list tokens"
            )
        if not given.scopes:
            raise InvalidInput(
                "a token needs at least one scope", hint=f"scopes: {', '.join(sorted(ALL_SCOPES))}"
            )
        _check_bindings(given)
        if await self._store.call("HLEN", self._key, key=self._key, idempotent=True) >= MAX_TOKENS:
            raise InvalidInput(f"there are {MAX_TOKENS} tokens already", hint="revoke those that nobody uses")
        token_id, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        token = f"roost_{token_id}_{secret}"
        created_at = datetime.now(UTC).isoformat(timespec="seconds")
        bound = (given.worlds, given.types, given.server_id)
        kept = KeptToken(given.name, given.scopes, created_at, _digest(token).hex(), *bound)
        await self._store.call(
            "HSET", self._key, token_id, msgspec.json.encode(kept), key=self._key, idempotent=True
        )
        self._tried_at = -REFRESH_S
        return NewToken(token_id, given.name, given.scopes, created_at, token, *bound)

    async def list(self) -> list[Token]:
        kept = await self._read()
        return [
            Token(key, t.name, t.scopes, t.created_at, t.worlds, t.types, t.server_id)
            for key, t in sorted(kept.items())
        ]

    async def revoke(self, token_id: str) -> None:
        if not await self._store.call("HDEL", self._key, token_id, key=self._key, idempotent=True):
            raise NotFound(f"there is no token {token_id[:40]!r}", hint="`roost token list` shows them")
        self._known = [one for one in self._known if one[1].token_id != token_id]
        self._tried_at = -REFRESH_S


def _check_bindings(given: TokenInput) -> None:
    for what, names in (("world", given.worlds), ("type", given.types)):
        if len(names) > MAX_BINDINGS:
            raise InvalidInput(f"a token is bound to at most {MAX_BINDINGS} {what}s, not {len(names)}")
        for name in names:
            check_name(name, what)
    if given.server_id:
        check_name(given.server_id, "serverId")
    if "admin" in given.scopes and (given.worlds or given.types or given.server_id):
        raise InvalidInput(
            "a token with the scope admin cannot be bound: it could make one that is not",
            hint="leave the scope or the bindings out",
        )


def root_token(configured: str, path: Path) -> str:
    """The configured token, else the one in the file, made on first use with mode 0600."""
    if configured:
        return configured
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            token = path.read_text(encoding="utf-8").strip()
        else:
            token = secrets.token_urlsafe(32)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(token + "\n")
    except OSError as error:
        raise StartFailed(
            f"cannot use the token file {path}: {error.strerror}",
            hint="correct its permissions or set ROOST_API_TOKEN",
        ) from error
    if not token:
        raise StartFailed(f"the token file {path} is empty", hint="delete it; the next start makes a new one")
    return token


def _digest(token: str) -> bytes:
    """Of any text: a header that is not UTF-8 arrives with surrogates, and is nobody's token."""
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
