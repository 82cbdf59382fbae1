"""An act of an operator: as it is kept, and as it is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast

import msgspec

from roost.api.audit import AuditEntry, Outcome, Via
from roost.core.events import Entry

MAX_STATE_BYTES = 2048
MAX_TEXT_CHARS = 256
HIDDEN = "***"
SECRETS = re.compile(
    r"token$|secret|password|passwd|signature|proof|receipt|ticketid|cookie|csrf|^key$", re.IGNORECASE
)
"""Names of fields whose values are shown to nobody: a second line of defence, no route tells us any."""

_encode = msgspec.json.Encoder().encode


class Deed(NamedTuple):
    """What somebody did, or was refused."""

    action: str
    """What it was: `drain.start`."""
    target: str
    """To what: `job/01J…`."""
    name: str
    """Of the token."""
    token_id: str
    scopes: tuple[str, ...]
    address: str
    """Where the request came from."""
    outcome: Outcome
    code: str
    """Why it was refused; empty: it was not."""
    request_id: str
    via: Via
    before: Any = None
    after: Any = None


def packed(deed: Deed) -> list[str]:
    """Names and values by turns, as the feed keeps them; bounded whatever the deed holds."""
    fields = {
        "action": deed.action,
        "target": deed.target,
        "name": deed.name,
        "token": deed.token_id,
        "scopes": " ".join(deed.scopes),
        "from": deed.address,
        "outcome": deed.outcome,
        "code": deed.code,
        "request": deed.request_id,
        "via": deed.via,
    }
    texts = {name: value[:MAX_TEXT_CHARS] for name, value in fields.items()}
    texts |= {"before": _state(deed.before), "after": _state(deed.after)}
    return [part for pair in texts.items() for part in pair]


def _state(value: Any) -> str:
    """As JSON, without secrets; of one that is too large only how large it is."""
    if value is None:
        return ""
    text = _encode(redacted(msgspec.to_builtins(value)))
    if len(text) > MAX_STATE_BYTES:
        text = _encode({"tooLarge": len(text)})
    return text.decode()


def redacted(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: HIDDEN if SECRETS.search(str(name)) and inner else redacted(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list):
        return [redacted(inner) for inner in value]
    return value


def entry_of(entry: Entry) -> AuditEntry:
    """Raises KeyError or ValueError of one that is not ours."""
    fields = entry.fields
    return AuditEntry(
        id=str(entry.rev),
        at=_moment(int(fields["when"])),
        name=fields["name"],
        token_id=fields["token"],
        scopes=fields["scopes"].split(),
        source=fields["from"],
        action=fields["action"],
        target=fields["target"],
        before=_read(fields, "before"),
        after=_read(fields, "after"),
        outcome=cast(Outcome, fields["outcome"]),
        code=fields["code"],
        request_id=fields["request"],
        via=cast(Via, fields["via"]),
    )


def _read(fields: Mapping[str, str], name: str) -> Any:
    text = fields.get(name, "")
    return msgspec.json.decode(text) if text else None


def _moment(us: int) -> str:
    return datetime.fromtimestamp(us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Wanted(NamedTuple):
    """Which entries somebody asks for; what is empty fits all."""

    name: str = ""
    action: str = ""
    """All that begin so: `drain` is every verb of drains."""
    target: str = ""
    """All that hold this."""
    since: str = ""
    """ISO 8601, as entries have it."""

    def fits(self, entry: AuditEntry) -> bool:
        return (
            (not self.name or entry.name == self.name)
            and entry.action.startswith(self.action)
            and self.target in entry.target
        )
