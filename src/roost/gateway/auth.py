"""Who may call what. A token is kept only as its digest and compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from typing import Literal, get_args

from roost.core.errors import Forbidden, NotAuthenticated, StartFailed
from roost.settings import Settings

Scope = Literal["read", "register", "gameserver", "admin"]
ALL_SCOPES: frozenset[str] = frozenset(get_args(Scope))


class Tokens:
    """The tokens that this gateway accepts."""

    def __init__(self, root_token: str) -> None:
        self._known = [(_digest(root_token), ALL_SCOPES)]

    def check(self, headers: Mapping[str, str], scope: Scope) -> None:
        """Return if the request carries a token with this scope."""
        presented = token_in(headers)
        if not presented:
            raise NotAuthenticated
        digest = _digest(presented)
        granted: frozenset[str] | None = None
        for known, scopes in self._known:  # all of them, always: the time must not tell which one fits
            if hmac.compare_digest(digest, known):
                granted = scopes
        if granted is None:
            raise NotAuthenticated("this API token is not known here")
        if scope not in granted:
            raise Forbidden(f"this needs a token with the scope {scope}")


def token_in(headers: Mapping[str, str]) -> str:
    if token := headers.get("X-API-Token", ""):
        return token
    kind, _, token = headers.get("Authorization", "").partition(" ")
    return token.strip() if kind.lower() == "bearer" else ""


def root_token(settings: Settings) -> str:
    """The configured token, else the one in the data folder, made on first use with mode 0600."""
    if settings.api_token:
        return settings.api_token
    path = settings.token_file
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
    return hashlib.sha256(token.encode()).digest()
