"""What the entries of feeds mean, in one sentence each. Pure: a table of words for every capability."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from roost.api.audit import AuditEntry
from roost.api.events import EventScope, Happening, Level

Fields = Mapping[str, str]


class Told(NamedTuple):
    """A happening, and how it is handed on."""

    kind: str
    """The name of the event in the stream."""
    at_us: int
    happening: Happening
    group: tuple[str, ...] = ()
    """Of what befalls single users: those of one group and second are told as one. Empty: told alone."""


def iso(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def told(
    kind: str,
    scope: EventScope,
    event: str,
    at_us: int,
    subject: str,
    text: str,
    details: Mapping[str, Any],
    level: Level = "info",
    group: tuple[str, ...] = (),
) -> Told:
    return Told(kind, at_us, Happening(scope, event, iso(at_us), subject, text, level, dict(details)), group)


# -- waiting room

WorldEvent = Literal["promoted", "kicked", "governed"]
POLICY = (("mode", "mode"), ("limit", "limit"), ("rate", "tickets per second"), ("opensAt", "opening"))


def of_world(world: str, at_us: int, fields: Fields) -> Told | None:
    event, user = fields.get("event", ""), fields.get("user", "")
    subject = f"world/{world}"
    word: WorldEvent
    if event == (word := "promoted"):
        text, group = f"{user} got a ticket for {world}", ("promoted", world)
        return told("ticket", "queue", word, at_us, subject, text, {"user": user}, group=group)
    if event == (word := "kicked"):
        text, group = f"{user} lost their place in {world}: an operator took it away", ("kicked", world)
        return told("ticket", "queue", word, at_us, subject, text, {"user": user}, "warning", group)
    if event == (word := "governed"):
        changes = {name: _policy(name, fields[name]) for name, _ in POLICY if fields.get(name)}
        said = ", ".join(f"{word} {changes[name]}" for name, word in POLICY if name in changes)
        text = f"an operator changed {world}: {said or 'its message'}"
        return told("world", "queue", word, at_us, subject, text, changes)
    return None


def _policy(name: str, value: str) -> str:
    if value == "-":
        return "none"
    return iso(int(value)) if name == "opensAt" and value.isdecimal() else value


# -- binding

MOVES = {
    "new": "{who} came to {to}",
    "return": "{who} came back to {to}",
    "failover": "{who} came to {to}: {source} is gone",
    "moved": "{who} moved from {source} to {to}",
    "repaired": "{who} went back to {to}, which held them all along",
    "released": "{who} left {source}",
    "idle": "{who} left {source}: not used for long",
    "unbound": "{who} was taken away from {source} by an operator",
}
"""By cause. A cause that is not here changes no server: the same owner goes on."""
SOME_MOVES = MOVES | {"unbound": "{who} were taken away from {source} by an operator"}
WORRYING_MOVES = frozenset({"failover", "unbound"})


def of_binding(at_us: int, fields: Fields) -> Told | None:
    why, kind = fields["why"], fields["type"]
    source, to, user = fields["from"], fields["serverId"], fields["user"]
    if why not in MOVES or source == to:
        return None
    text = MOVES[why].format(who=f"{user} ({kind})", source=source or "nobody", to=to)
    level: Level = "warning" if why in WORRYING_MOVES else "info"
    details = {"type": kind, "user": user, "from": source, "to": to}
    subject = f"{kind}/{to or source}"
    group = ("move", why, kind, source, to)
    return told("move", "binding", why, at_us, subject, text, details, level, group)


# -- many of a kind


def together(first: Told, count: int) -> Told:
    """One event for all of one group and second; `first` is one of them."""
    if count == 1:
        return first._replace(group=())
    what, *parts = first.group
    if what == "move":
        why, kind, source, to = parts
        text = SOME_MOVES[why].format(who=f"{count} users ({kind})", source=source or "nobody", to=to)
    elif what == "promoted":
        text = f"{count} people got tickets for {parts[0]}"
    else:
        text = f"{count} people lost their place in {parts[0]}: an operator took it away"
    details = {name: value for name, value in first.happening.details.items() if name != "user"}
    whole = msgspec.structs.replace(first.happening, text=text, details={**details, "count": count})
    return first._replace(happening=whole, group=())


# -- drain

JOBS: dict[str, tuple[str, Level]] = {
    "started": ("{by} started to empty {servers}", "info"),
    "running": ("the drain of {servers} goes on", "info"),
    "paused": ("the drain of {servers} is paused", "warning"),
    "cancelled": ("the drain of {servers} was cancelled", "warning"),
    "rolling-back": ("the drain of {servers} is rolled back", "warning"),
    "reconciling": ("nobody is on the move from {servers} any more: the gates count once more", "info"),
    "done": ("the drain of {servers} is done", "info"),
    "failed": ("the drain of {servers} failed", "error"),
}


def of_job(at_us: int, fields: Fields) -> Told | None:
    event = fields["event"]
    if event not in JOBS:
        return None
    servers = [part.rpartition(":")[0] for part in fields["parts"].split()]
    sentence, level = JOBS[event]
    text = sentence.format(by="an operator", servers=listed(servers) or "crowded servers")
    if why := fields.get("why", ""):
        text += f": {why}"
    details = {"job": fields["job"], "type": fields["type"], "servers": servers, "why": why}
    return told("job", "drain", event, at_us, f"job/{fields['job']}", text, details, level)


# -- orders

PLACES = {
    "pin": "{symbol} is pinned to shard and lane {to}",
    "unpin": "{symbol} is served where its hash puts it",
    "begin": "{symbol} moves from {source} to {to}",
    "finish": "{symbol} is served at {to}",
}


def of_placement(at_us: int, fields: Fields) -> Told | None:
    event, symbol = fields["event"], fields.get("symbol", "")
    if event not in PLACES:
        return None
    source, to = fields.get("from", ""), fields.get("to", "")
    text = PLACES[event].format(symbol=symbol, source=source, to=to)
    return told(
        "symbol",
        "orders",
        event,
        at_us,
        f"symbol/{symbol}",
        text,
        {"symbol": symbol, "from": source, "to": to},
    )


ShardEvent = Literal["owned", "unowned"]


def of_shard(at_us: int, shard: int, owner: str, former: str) -> Told:
    details = {"shard": shard, "owner": owner, "former": former}
    subject = f"shard/{shard}"
    event: ShardEvent = "owned" if owner else "unowned"
    if not owner:
        text = f"shard {shard} has no owner: {former} lost it, its symbols wait"
        return told("shard", "orders", event, at_us, subject, text, details, "error")
    text = f"{owner} owns shard {shard}" + (f", which {former} had" if former else "")
    return told("shard", "orders", event, at_us, subject, text, details)


# -- audit


def of_act(at_us: int, act: AuditEntry) -> Told:
    done = act.outcome == "done"
    text = f"{act.name} {'did' if done else 'was refused'} {act.action} on {act.target}"
    text += "" if done else f": {act.code}"
    details = msgspec.to_builtins(act)
    return told("audit", "audit", act.action, at_us, act.target, text, details, "info" if done else "warning")


def listed(names: list[str], most: int = 4) -> str:
    """501, 502 and 7 more"""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
