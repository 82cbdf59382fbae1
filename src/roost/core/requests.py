"""Which request is being answered, for whoever writes a line of log on its behalf."""

from __future__ import annotations

from contextvars import ContextVar

current_request: ContextVar[str] = ContextVar("roost_request", default="")
"""Its id; empty outside of one. What a request begins and leaves running is a loop, and has none."""
