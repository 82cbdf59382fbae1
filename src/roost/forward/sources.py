"""Which feeds a forwarder follows: those that the live stream tells of, entry by entry."""

from __future__ import annotations

from collections.abc import Collection

from roost.app import Platform
from roost.core.events import Entry
from roost.discovery.model import beat_of
from roost.gateway.live.fleet import STATUSES, of_discovery
from roost.gateway.live.following import Source, sources
from roost.gateway.live.sentences import Told, told


def wanted_sources(platform: Platform, scopes: Collection[str]) -> list[Source]:
    """NB: what has no feed is not among them: the overview, and shards that change hands."""
    discovery = Source("discovery", "discovery", platform.discovery.feed, of_instance)
    return [source for source in (discovery, *sources(platform)) if source.scope in scopes]


def of_instance(entry: Entry) -> Told | None:
    """Every entry of discovery. Viewers hear only of turns, which one who remembers nothing cannot tell from
    a load that has changed: so what is the case is told, with the load."""
    if (known := of_discovery(entry)) is not None:
        return known
    fields = entry.fields
    status = fields.get("status", "")
    if fields["event"] != "changed" or status not in STATUSES:
        return None
    type_, _, group = fields["service"].partition(":")
    name = fields["serverId"] or fields["id"]
    word, said = STATUSES[status]
    text = said.format(name=name, type=type_)
    details = {
        "type": type_,
        "server": name,
        "group": group,
        "status": status,
        "load": beat_of(fields["beat"]).load,
    }
    return told("instance", "discovery", word, entry.at, f"{type_}/{name}", text, details)
