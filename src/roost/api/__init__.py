"""The HTTP messages, shared by the gateway and its clients. camelCase on the wire."""

from __future__ import annotations

import msgspec


class Message(msgspec.Struct, rename="camel"):
    """Base of every message."""
