"""Where alerts go, and the signature by which a receiver knows that they are ours.

The URL of a Slack webhook is a secret, so nothing here repeats one: faults name a position, `repr` the host.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass, field
from typing import Literal, get_args
from urllib.parse import urlsplit

from roost.core.errors import InvalidInput

WebhookKind = Literal["slack", "pagerduty", "json"]
WEBHOOK_KINDS: tuple[WebhookKind, ...] = get_args(WebhookKind)
PAGERDUTY_URL = "https://events.pagerduty.com/v2/enqueue"
TIMESTAMP_HEADER = "X-Roost-Timestamp"
SIGNATURE_HEADER = "X-Roost-Signature"
TOLERANCE_S = 300

_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True)
class Webhook:
    kind: WebhookKind
    url: str = field(repr=False)
    host: str
    """The part of the URL that may be logged."""
    routing_key: str = field(default="", repr=False)
    """PagerDuty's integration key; empty for the other kinds."""


def parse_webhooks(text: str, pagerduty_key: str = "") -> tuple[Webhook, ...]:
    """Read `kind=url,kind=url`; `pagerduty` may stand alone. Faults say which entry, never what it holds."""
    entries = [entry.strip() for entry in text.split(",") if entry.strip()]
    return tuple(_parsed(entry, at, pagerduty_key) for at, entry in enumerate(entries, start=1))


def _parsed(entry: str, position: int, pagerduty_key: str) -> Webhook:
    name, equals, url = (part.strip() for part in entry.partition("="))
    kind = next((known for known in WEBHOOK_KINDS if known == name), None)
    if kind is None:
        raise InvalidInput(
            f"webhook {position} must be kind=url with a kind of {', '.join(WEBHOOK_KINDS)}",
            hint="a comma inside a URL is written %2C",
        )
    if kind == "pagerduty" and not pagerduty_key:
        raise InvalidInput(f"webhook {position} needs the integration key", hint="set alerts.pagerduty_key")
    url = PAGERDUTY_URL if kind == "pagerduty" and not equals else url
    host = _host_of(url)
    if not host:
        raise InvalidInput(f"webhook {position} ({kind}) needs a URL that begins with https:// or http://")
    return Webhook(kind, url, host, pagerduty_key if kind == "pagerduty" else "")


def _host_of(url: str) -> str:
    """The host of a usable http(s) URL, else nothing."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.port != 0 and not _NOT_IN_A_URL.search(url)
    except ValueError:
        return ""
    return (parts.hostname or "") if usable else ""


def signature_of(secret: str, timestamp: str, body: bytes) -> str:
    """`v1=` and the hex HMAC-SHA256 of `<timestamp>.<body>`."""
    return "v1=" + hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()


def signed_headers(secret: str, body: bytes, now: float) -> dict[str, str]:
    """The headers by which `verify_webhook` knows the body; none without a secret."""
    if not secret:
        return {}
    timestamp = str(int(now))
    return {TIMESTAMP_HEADER: timestamp, SIGNATURE_HEADER: signature_of(secret, timestamp, body)}


def verify_webhook(
    secret: str, timestamp: str, body: bytes, signature: str, now: float, tolerance_s: float = TOLERANCE_S
) -> bool:
    """Whether a request is ours and not older (or newer) than the tolerance. For receivers.

    `timestamp` and `signature` are the two headers as they came, `body` the bytes as they came, `now` epoch
    seconds. Takes the same time for every wrong signature. An empty secret verifies nothing.
    """
    if not secret or not _TIMESTAMP.fullmatch(timestamp):
        return False
    expected = signature_of(secret, timestamp, body).encode()
    genuine = hmac.compare_digest(expected, signature.encode(errors="replace"))
    return genuine and abs(now - int(timestamp)) <= tolerance_s
