"""The keys of drain jobs: who empties which servers, and how far they are."""

from __future__ import annotations

from collections.abc import Mapping

from roost.store.keys import Key, KeyFamily, KeyGroup, Keys
from roost.store.scopes import drain

GROUP = KeyGroup(
    "drain",
    "drain:",
    "drain",
    (
        KeyFamily("jobs", "zset", "Job id → when it was made, µs; the last two hundred"),
        KeyFamily("active", "set", "Ids of jobs that have not ended"),
        KeyFamily(
            "busy",
            "hash",
            "`<type>:<serverId>` → the job that moves its users; one at a time",
        ),
        KeyFamily(
            "job",
            "hash",
            "type, parts (`serverId:life` …), targets, version, order and progress (JSON), state, why, made "
            "and ended (µs)",
            each=":<jobId>",
        ),
        KeyFamily(
            "moved",
            "zset",
            "`userId<tab>source server` of everybody whom the job has moved; score 0. For a rollback",
            each=":<jobId>",
        ),
        KeyFamily("reports", "hash", "Gate → what it counted (JSON)", each=":<jobId>"),
    ),
)


def drain_keys(keys: Keys) -> Mapping[str, Key]:
    return keys.of(GROUP, drain())
