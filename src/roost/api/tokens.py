"""Messages about API tokens."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from roost.api import Message
from roost.api.limits import MAX_BINDINGS, Name, OptionalName, TokenName, WorldName, shown

Scope = Literal["read", "register", "gameserver", "admin"]
ALL_SCOPES: frozenset[str] = frozenset(get_args(Scope))


class TokenInput(Message):
    name: TokenName
    """Who uses it; for people."""
    scopes: Annotated[list[Scope], shown(minItems=1)]
    worlds: Annotated[list[WorldName], shown(maxItems=MAX_BINDINGS)] = []
    """It may report, consume, release and ask for players in these worlds only; empty: in all."""
    types: Annotated[list[Name], shown(maxItems=MAX_BINDINGS)] = []
    """It may register, beat and remove instances of these types only; empty: of all."""
    server_id: OptionalName = ""
    """It may act for this server only; empty: for every one."""


class Token(Message):
    """A token as it may be shown: without its secret."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    worlds: list[str] = []
    types: list[str] = []
    server_id: str = ""


class NewToken(Message):
    """A token with its secret, shown once and kept nowhere."""

    id: str
    name: str
    scopes: list[Scope]
    created_at: str
    token: str
    worlds: list[str] = []
    types: list[str] = []
    server_id: str = ""


class TokenList(Message):
    tokens: list[Token]
