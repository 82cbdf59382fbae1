"""Framed binary calls between servers: `docs/protocol.md`."""
