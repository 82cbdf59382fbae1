"""Messages about who is logged in."""

from __future__ import annotations

from roost.api import Message
from roost.api.limits import Moment
from roost.api.tokens import Scope


class LoginInput(Message):
    token: str
    """An API token; it is not kept anywhere."""


class Session(Message):
    """Who is logged in, by a cookie that scripts cannot read."""

    name: str
    """Of the token."""
    token_id: str
    scopes: list[Scope]
    csrf: str
    """Goes into the header X-CSRF-Token of every request that changes something."""
    profile: str
    version: str
    namespace: str
    demo: bool
    """Whether this gateway has a demo fleet to show: `/demo/v1`."""
    expires_at: Moment
