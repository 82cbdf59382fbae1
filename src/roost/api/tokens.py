"""Messages about API tokens."""

from __future__ import annotations

from typing import Literal

from roost.api import Message

Scope = Literal["read", "register", "gameserver", "admin"]


class TokenInput(Message):
    name: str
    """Who uses it; for people."""
    scopes: list[Scope]


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
