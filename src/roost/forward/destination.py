"""Where a forwarder sends. Pure. What a URL holds is never repeated: it may have a password or a token."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from roost.core.errors import InvalidInput

Kind = Literal["webhook", "nats", "kafka"]

HINT = "webhook:https://…, nats://… or kafka://…"
DEFAULT_PREFIX = "roost.events"
_TOPIC = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_NATS_SCHEMES = ("nats", "tls")


@dataclass(frozen=True, slots=True)
class Destination:
    kind: Kind
    url: str = field(repr=False)
    host: str
    """What may be shown of it."""
    topic: str = ""
    """Of Kafka; of NATS the part of the subject before the scope."""


def parse_destination(text: str) -> Destination:
    scheme, _, rest = text.partition(":")
    url = rest if scheme == "webhook" else text
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InvalidInput("is no address", hint=HINT) from None
    if not host or re.search(r"\s", text):
        raise InvalidInput("is no address", hint=HINT)
    if scheme == "webhook":
        if parts.scheme not in ("http", "https"):
            raise InvalidInput("a webhook needs a URL that begins with https:// or http://")
        return Destination("webhook", url, host)
    topic = parts.path.strip("/") or DEFAULT_PREFIX
    if not _TOPIC.fullmatch(topic):
        raise InvalidInput("after the host stands a topic: letters, digits, - and _, parted by dots")
    if scheme in _NATS_SCHEMES:
        return Destination("nats", f"{scheme}://{parts.netloc}", host, topic)
    if scheme == "kafka":
        return Destination("kafka", f"{host}:{port or 9092}", host, topic)
    raise InvalidInput("is no destination that is known", hint=HINT)
