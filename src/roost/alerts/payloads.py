"""An alert, and its JSON for each kind of webhook. Pure.

    json_of(webhook, alert, source)    the body of the request

Every limit below is the receiver's: what is longer is cut, since a refused alert tells nobody anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from roost.alerts.webhooks import Webhook, WebhookKind

AlertKind = Literal["unhealthy", "recovered", "store-away", "store-back", "leader-lost", "held-back"]

JSON_VERSION = 1
PAGERDUTY_KEY_CHARS = 255
PAGERDUTY_SUMMARY_CHARS = 1024
SLACK_TEXT_CHARS = 3000
SLACK_FIELD_CHARS = 2000
SLACK_FIELDS = 10
NAMED_SUBJECTS = 10
"""How many subjects a summary names of each kind."""


class Meaning(NamedTuple):
    """What a kind says about its subject."""

    family: str
    """Kinds of one family open and close the same incident."""
    action: Literal["trigger", "resolve"]
    severity: Literal["critical", "error", "warning", "info"]
    sign: str
    """How Slack shows it."""


MEANINGS: dict[AlertKind, Meaning] = {
    "unhealthy": Meaning("health", "trigger", "error", ":red_circle:"),
    "recovered": Meaning("health", "resolve", "info", ":large_green_circle:"),
    "store-away": Meaning("store", "trigger", "critical", ":red_circle:"),
    "store-back": Meaning("store", "resolve", "info", ":large_green_circle:"),
    "leader-lost": Meaning("leader", "trigger", "warning", ":large_yellow_circle:"),
    "held-back": Meaning("held-back", "trigger", "warning", ":large_yellow_circle:"),
}
"""`held-back` is the notifier's own: it stands for alerts over the limit."""


class Incident(NamedTuple):
    """What every process of the fleet sees alike of a server's turn, so that one of them tells it."""

    life: str
    at: int
    """µs of the change in discovery's feed."""


@dataclass(frozen=True, slots=True)
class Alert:
    kind: AlertKind
    subject: str
    """What it is about: a server id, a scope, a store."""
    summary: str
    """One sentence for a person."""
    at: float
    """When it happened, epoch seconds."""
    details: Mapping[str, str] = field(default_factory=dict)
    type: str = ""
    """Of a server: two types may have the same server id."""
    incident: Incident | None = None
    """None: only this process can tell it."""

    @property
    def meaning(self) -> Meaning:
        return MEANINGS[self.kind]

    @property
    def resolves(self) -> bool:
        return self.meaning.action == "resolve"

    @property
    def dedup_key(self) -> str:
        """The same for the trouble of a subject and its end, whichever process tells of it."""
        return "/".join(part for part in ("roost", self.meaning.family, self.type, self.subject) if part)

    def repeats(self, other: Alert) -> bool:
        """Whether it says what the other said, be it at another time."""
        return (self.kind, self.type, self.subject, self.summary, self.details) == (
            other.kind,
            other.type,
            other.subject,
            other.summary,
            other.details,
        )


def summary_of(held: Sequence[Alert]) -> Alert:
    """One alert that stands for several: how many, and of each kind whom."""
    subjects: dict[str, list[str]] = {}
    for alert in held:
        subjects.setdefault(alert.kind, []).append(alert.subject)
    return Alert(
        "held-back",
        "alerts",
        f"{len(held)} more alerts were held back",
        max(alert.at for alert in held),
        {kind: _listed(names) for kind, names in subjects.items()},
    )


def _listed(names: list[str]) -> str:
    distinct = list(dict.fromkeys(names))
    more = ", …" if len(distinct) > NAMED_SUBJECTS else ""
    return f"{len(names)}: {', '.join(distinct[:NAMED_SUBJECTS])}{more}"


def json_of(webhook: Webhook, alert: Alert, source: str) -> bytes:
    """The body that this webhook takes; `source` names this Roost."""
    return msgspec.json.encode(_SHAPES[webhook.kind](webhook, alert, source))


def _slack(webhook: Webhook, alert: Alert, source: str) -> dict[str, Any]:
    headline = f"{alert.meaning.sign} {_escaped(alert.summary, SLACK_TEXT_CHARS - 100)}"
    fields = [
        {"type": "mrkdwn", "text": f"*{_escaped(name, 200)}*\n{_escaped(value, SLACK_FIELD_CHARS - 300)}"}
        for name, value in list(alert.details.items())[:SLACK_FIELDS]
    ]
    about = _escaped(f"{source} · {alert.kind} · {alert.subject}", SLACK_FIELD_CHARS - 300)
    when = f"<!date^{int(alert.at)}^{{date_num}} {{time_secs}}|{_iso(alert.at)}>"
    return {
        "text": headline,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": headline}},
            *([{"type": "section", "fields": fields}] if fields else []),
            {"type": "context", "elements": [{"type": "mrkdwn", "text": f"{about} · {when}"}]},
        ],
    }


def _pagerduty(webhook: Webhook, alert: Alert, source: str) -> dict[str, Any]:
    return {
        "routing_key": webhook.routing_key,
        "event_action": alert.meaning.action,
        "dedup_key": _pagerduty_key(alert),
        "client": "Roost",
        "payload": {
            "summary": _cut(alert.summary, PAGERDUTY_SUMMARY_CHARS),
            "source": source,
            "severity": alert.meaning.severity,
            "timestamp": _iso(alert.at),
            "component": alert.subject,
            "class": alert.kind,
            "custom_details": dict(alert.details),
        },
    }


def _json(webhook: Webhook, alert: Alert, source: str) -> dict[str, Any]:
    return {
        "version": JSON_VERSION,
        "kind": alert.kind,
        "action": alert.meaning.action,
        "severity": alert.meaning.severity,
        "subject": alert.subject,
        "summary": alert.summary,
        "at": _iso(alert.at),
        "dedupKey": alert.dedup_key,
        "source": source,
        "details": dict(alert.details),
    }


_SHAPES: dict[WebhookKind, Callable[[Webhook, Alert, str], dict[str, Any]]] = {
    "slack": _slack,
    "pagerduty": _pagerduty,
    "json": _json,
}


def _pagerduty_key(alert: Alert) -> str:
    """The key itself, or its hash where PagerDuty would cut it and confuse two subjects."""
    key = alert.dedup_key
    return key if len(key) <= PAGERDUTY_KEY_CHARS else hashlib.sha256(key.encode()).hexdigest()


def _escaped(text: str, limit: int) -> str:
    """Text that Slack shows as it is: a subject named `<!channel>` wakes nobody. Cut to `limit` as sent."""
    pieces: list[str] = []
    size = 0
    for character in text:
        piece = _SLACK_ESCAPES.get(character, character)
        size += len(piece)
        if size > limit:
            return "".join(pieces) + "…"
        pieces.append(piece)
    return "".join(pieces)


_SLACK_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
