"""The units that share one hash tag. Only the constructors below make one, so that no two kinds can meet.

The tag decides the cluster slot, the kind stands in the stem of the keys: a world named `sd` lives in the
slot of discovery and shares no key with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from roost.core.ids import check_name

Kind = Literal["discovery", "world", "alerts", "binding", "drain", "shard", "lanes", "audit", "forward"]


@dataclass(frozen=True, slots=True)
class Scope:
    kind: Kind
    tag: str
    """What the braces hold."""

    def __str__(self) -> str:
        return self.tag if self.tag != "sd" else self.kind


def discovery() -> Scope:
    """Discovery is one scope: one revision, one feed for all types and groups."""
    return Scope("discovery", "sd")


def alerts() -> Scope:
    """Who tells whom of an incident."""
    return Scope("alerts", "alerts")


def world(name: str) -> Scope:
    """The waiting room of one world."""
    return Scope("world", check_name(name, "world"))


def partition(number: int) -> Scope:
    """One of the parts that the bindings of all users are spread over."""
    return Scope("binding", f"b{number}")


def drain() -> Scope:
    """The jobs that empty servers; its leader carries them out."""
    return Scope("drain", "drain")


def shard(number: int) -> Scope:
    """One shard of ordered work: its owner, its log, and the index of orders whose ids name it."""
    return Scope("shard", f"o{number}")


def lanes() -> Scope:
    """What all shards share: which symbol is where."""
    return Scope("lanes", "orders")


def audit() -> Scope:
    """What operators did."""
    return Scope("audit", "audit")


def forward(name: str) -> Scope:
    """How far the forwarders of one name have come; its leader forwards."""
    return Scope("forward", f"forward-{check_name(name, 'forwarder')}")
