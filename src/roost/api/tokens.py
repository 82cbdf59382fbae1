"""Messages about API tokens."""

from __future__ import annotations

from typing import Annotated, Literal

from roost.api import Message
from roost.api.limits import TokenName, shown

Scope = Literal["read", "register", "gameserver", "admin"]


class TokenInput(Message):
    name: TokenName
    """Who uses it; for people."""
    scopes: Annotated[list[Scope], shown(minItems=1)]


class Token(Message):
    """A token as it may be shown: without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: str


class NewToken(Message):
    """A token with its secret, shown once and kept nowhere."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    token: str


class TokenList(Message):
    tokens: list[Token]
