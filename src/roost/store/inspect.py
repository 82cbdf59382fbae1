"""What kind of server the store is, and whether it is set up so that nothing is lost."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from roost.core.errors import StartFailed, StoreRefused
from roost.store.store import Store

Info = Mapping[str, str]

OLDEST = {"Redis": (7, 0), "Valkey": (7, 2)}


@dataclass(frozen=True, slots=True)
class ServerKind:
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"

    @property
    def fault(self) -> str:
        """Why it cannot serve Roost; empty if it can."""
        oldest = OLDEST.get(self.name)
        if oldest is None:
            return f"{self.name} is not supported: it lacks shard channels or keeps no script promises"
        if _numbers(self.version) < oldest:
            return f"{self} is too old"
        return ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def parse_info(text: bytes) -> Info:
    lines = (line for line in text.decode(errors="replace").splitlines() if ":" in line and line[:1] != "#")
    return {name: value for name, _, value in (line.partition(":") for line in lines)}


def kind_of(info: Info) -> ServerKind:
    if "valkey_version" in info:
        return ServerKind("Valkey", info["valkey_version"])
    version = info.get("redis_version", "0")
    if "dragonfly_version" in info:
        return ServerKind("Dragonfly", info["dragonfly_version"])
    if "mvcc_depth" in info or "keydb" in info.get("executable", ""):
        return ServerKind("KeyDB", version)
    return ServerKind("Redis", version)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())


async def read_info(store: Store, *sections: str) -> Info:
    """INFO of one primary; empty where the ACL user may not ask."""
    found: dict[str, str] = {}
    try:
        for section in sections:
            found |= parse_info(await store.call("INFO", section, idempotent=True))
    except StoreRefused:
        pass
    return found


async def check_server(store: Store) -> ServerKind:
    """Refuse a server that cannot keep our promises, by name."""
    kind = kind_of(await read_info(store, "server"))
    if kind.fault and kind.version != "0":
        raise StartFailed(f"the store is {kind}: {kind.fault}", hint="use Redis >= 7.0 or Valkey >= 7.2")
    return kind


def eviction_fault(info: Info) -> str:
    """Why the store may throw our data away; empty if it will not."""
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction" and info.get("maxmemory", "0") != "0":
        return f"the store evicts keys when memory is full (maxmemory-policy {policy})"
    return ""


async def inspect_store(store: Store) -> list[Finding]:
    """Everything `roost doctor` says about a store that answers."""
    info = await read_info(store, "server", "persistence", "memory")
    kind = kind_of(info)
    findings = [
        Finding(
            "store server", "fail" if kind.fault else "ok", str(kind), "use Redis >= 7.0 or Valkey >= 7.2"
        )
        if info
        else Finding("store server", "warn", "unknown: INFO is not permitted", "grant +info to the ACL user")
    ]
    if info:
        findings += [_persistence(info), _eviction(info)]
    findings += [await _latency(store), await _clock(store)]
    return findings


def _persistence(info: Info) -> Finding:
    if info.get("aof_enabled") == "1":
        failed = info.get("aof_last_write_status", "ok") != "ok"
        advice = "the last write to the append-only file failed: look at the store's disk" if failed else ""
        return Finding("persistence", "fail" if failed else "ok", "append-only file", advice)
    return Finding(
        "persistence",
        "warn",
        "no append-only file",
        "set appendonly yes: a restart would lose places and bindings",
    )


def _eviction(info: Info) -> Finding:
    policy = info.get("maxmemory_policy", "unknown")
    if eviction_fault(info):
        return Finding(
            "eviction", "fail", policy, "set maxmemory-policy noeviction: evicted keys are lost users"
        )
    if policy != "noeviction":
        return Finding("eviction", "warn", f"{policy}, without effect now", "set maxmemory-policy noeviction")
    return Finding("eviction", "ok", policy)


async def _latency(store: Store) -> Finding:
    samples = sorted([await store.ping() * 1000 for _ in range(20)])
    median, worst = samples[10], samples[-1]
    state: Literal["ok", "warn"] = "ok" if median < 5 else "warn"
    advice = "" if state == "ok" else "put Roost nearer to its store: every admission and move waits for it"
    return Finding("latency", state, f"{median:.2f} ms median, {worst:.2f} ms worst of 20", advice)


async def _clock(store: Store) -> Finding:
    before = time.time()
    seconds, micros = await store.call("TIME", idempotent=True)
    skew = int(seconds) + int(micros) / 1e6 - (before + time.time()) / 2
    state: Literal["ok", "warn"] = "ok" if abs(skew) < 1 else "warn"
    advice = "" if state == "ok" else "run NTP on both machines: tickets and logs carry times"
    return Finding("clock", state, f"{skew * 1000:+.0f} ms from this machine", advice)
