"""Discovery's scripts on a real server, with the clock in the test's hand, and what must always hold."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from roost.api.discovery import Record, Status
from roost.core.events import Entry
from roost.core.lease import MAX_STEP_MS
from roost.discovery import rules
from roost.discovery.model import KeptBeat, beat_of, encode
from roost.discovery.reaper import BUDGET_PERCENT, BUDGET_WINDOW_MS, SWEEP_LIMIT
from roost.discovery.scripts import (
    Alive,
    BeatAnswer,
    DiscoveryScripts,
    Ended,
    Fenced,
    GivenRegistration,
    Left,
    Overridden,
    RegisterAnswer,
    Registered,
    Snapshot,
    Swept,
    Unknown,
    beat_answer,
    register_answer,
)
from roost.discovery.service import CHECKER_TTL_MS
from roost.store import scopes
from roost.store.keys.discovery import discovery_keys
from roost.store.store import Store
from tests.store.reading import keys_below, pairs, whole_feed

T0 = 1_700_000_000_000_000
SECOND = 1_000_000
TTL_S = 30
_record = msgspec.json.Decoder(Record).decode


class Fleet:
    """Calls the scripts at `now`, which only the test moves."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.scripts = DiscoveryScripts(store.library, store.keys)
        self.now = T0
        self._nonces = 0

    async def register(
        self,
        id: str = "a",  # noqa: A002
        *,
        type: str = "game",  # noqa: A002
        group: str = "eu",
        server_id: str = "",
        status: str = "ready",
        load: int = 0,
        capacity: int = 100,
        performance: bytes = b"{}",
        ttl_s: float = TTL_S,
        nonce: str = "",
        former_life: int | str = "",
        labels: dict[str, str] | None = None,
    ) -> RegisterAnswer:
        self._nonces += 1
        given = GivenRegistration(
            id,
            service=rules.service_of(type, group),
            name=rules.name_of(type, server_id),
            record=encode(Record(type, group, server_id, capacity=capacity, labels=labels or {})),
            status=status,
            load=load,
            capacity=capacity,
            performance=performance,
            ttl_ms=int(ttl_s * 1000),
            nonce=nonce or f"n{self._nonces}",
            former_life=str(former_life),
        )
        (answer,) = await self.register_all(given)
        return answer

    async def register_all(self, *given: GivenRegistration) -> list[RegisterAnswer]:
        """Register them in one call of the store."""
        answered = await self.scripts.register(given=[value for one in given for value in one], now=self.now)
        return [register_answer(packed) for packed in answered.answers]

    async def add(self, id: str = "a", **more: Any) -> int:  # noqa: A002
        """Register, and return the life that it was given."""
        answer = await self.register(id, **more)
        assert isinstance(answer, Registered), answer
        return answer.life

    async def beat(
        self,
        id: str = "a",  # noqa: A002
        life: int | str = "",
        *,
        status: str = "",
        load: int | str = "",
        performance: bytes = b"",
        tick_age_ms: int = 0,
    ) -> BeatAnswer:
        given = [id, life, status, load, performance, tick_age_ms]
        beaten = await self.scripts.heartbeat(given=given, now=self.now)
        (answer,) = map(beat_answer, beaten.answers)
        return answer

    async def remove(
        self,
        id: str = "a",  # noqa: A002
        life: int | str = "",
        *,
        service: str = "",
        cause: str = "terminated",
    ) -> Left | Unknown | Fenced:
        return await self.scripts.remove(id=id, life=life, service=service, cause=cause, now=self.now)

    async def override(self, id: str, override: bytes, word: str = "override") -> Overridden | Unknown:  # noqa: A002
        return await self.scripts.override(id=id, override=override, word=word, now=self.now)

    async def end_silent(self, id: str, life: int) -> Ended | Alive:  # noqa: A002
        return await self.scripts.end_silent(id=id, life=life, now=self.now)

    async def vote(
        self, checker: str, *ill: tuple[str, int], finding: str = "unhealthy", ttl_ms: int = CHECKER_TTL_MS
    ) -> list[str]:
        """What a checker finds of each (id, life) it names; returns the checkers that count."""
        ballots = "\n".join(f"{id_}\t{life}\t{finding}" for id_, life in ill)
        answer = await self.scripts.vote(checker=checker, ballots=ballots, ttl_ms=ttl_ms, now=self.now)
        return answer.live

    async def sweep(self, *, limit: int = SWEEP_LIMIT, budget_percent: int = BUDGET_PERCENT) -> Swept:
        return await self.scripts.sweep(
            limit=limit,
            budget_percent=budget_percent,
            window_ms=BUDGET_WINDOW_MS,
            max_step_ms=MAX_STEP_MS,
            now=self.now,
        )

    async def pass_time(self, seconds: int, *, beating: Sequence[str] = ()) -> Swept:
        """Sweep once a second, while some go on beating; returns all that the sweeps found."""
        found = Swept(0, [], [], [])
        for _ in range(seconds):
            self.now += SECOND
            for id_ in beating:
                await self.beat(id_)
            found += await self.sweep()
        return found

    async def die(self, id: str, life: int) -> None:  # noqa: A002
        """Make it suspect and end it: a death that needs no time."""
        await self.beat(id, life, tick_age_ms=3_600_000)
        assert await self.end_silent(id, life) == Ended()

    async def snapshot(self, type: str = "*", group: str = "*") -> Snapshot:  # noqa: A002
        return await self.scripts.snapshot(wanted_type=type, wanted_group=group)

    async def kept_beat(self, id: str = "a", service: str = "game:eu") -> KeptBeat:  # noqa: A002
        key = discovery_keys(self.store.keys)["beats"] + service.encode()
        return beat_of(await self.store.call("HGET", key, id, key=key))

    async def feed(self) -> list[Entry]:
        return await whole_feed(self.store, scopes.discovery())

    async def told(self) -> list[tuple[str, str, str]]:
        """What the feed says of instances, as (event, id, status)."""
        feed = [e.fields for e in await self.feed() if e.fields["event"] != "panic"]
        return [(fields["event"], fields["id"], fields["status"]) for fields in feed]

    async def history(self, id: str = "a") -> list[tuple[str, str]]:  # noqa: A002
        """The history as (event, status), oldest first."""
        key = discovery_keys(self.store.keys)["history"] + id.encode()
        lines = [line.decode().split("\t") for line in await self.store.call("LRANGE", key, 0, -1, key=key)]
        return [(line[1], line[3]) for line in lines]

    async def damage(self, command: str, part: str, *args: str | int, service: str = "") -> None:
        """What a person with a Redis prompt might do."""
        key = discovery_keys(self.store.keys)[part] + service.encode()
        await self.store.call(command, key, *args, key=key)


@dataclass(frozen=True, slots=True)
class Indexed:
    service: str
    life: int
    name: str
    ttl_ms: int
    capacity: int


@dataclass(frozen=True, slots=True)
class State:
    """Every key of discovery, read."""

    index: dict[str, Indexed]
    leases: dict[str, float]
    names: dict[str, str]
    gone: dict[str, str]
    services: set[str]
    panics: set[str]
    suspects: dict[str, set[str]]
    records: dict[str, dict[str, Record]]
    beats: dict[str, dict[str, KeptBeat]]
    feed: list[Entry]
    ages: dict[str, int]
    """Instance id → seconds that its history will still be kept; -1: for ever."""


async def read_state(store: Store) -> State:
    keys = store.keys

    def ask(command: str, part: str, *more: str | int) -> asyncio.Future[Any]:
        return store.call(command, discovery_keys(keys)[part], *more, key=discovery_keys(keys)[part])

    index, leases, names, gone, services, panics, entries = await asyncio.gather(
        ask("HGETALL", "index"),
        ask("ZRANGE", "leases", 0, -1, "WITHSCORES"),
        ask("HGETALL", "names"),
        ask("HGETALL", "gone"),
        ask("SMEMBERS", "services"),
        ask("SMEMBERS", "panics"),
        whole_feed(store, scopes.discovery()),
    )
    return State(
        {id_: _indexed(packed) for id_, packed in pairs(index).items()},
        {id_: float(score) for id_, score in pairs(leases).items()},
        pairs(names),
        pairs(gone),
        {service.decode() for service in services},
        {service.decode() for service in panics},
        await _suspects(store),
        await _hashes(store, "records", _record),
        await _hashes(store, "beats", beat_of),
        entries,
        await _history_ages(store),
    )


async def invariants(store: Store) -> State:
    """What holds after every script: all indexes agree, nobody is half there, the feed has no hole."""
    state = await read_state(store)
    live = state.index.keys()
    by_service: dict[str, set[str]] = {}
    for id_, entry in state.index.items():
        by_service.setdefault(entry.service, set()).add(id_)

    assert state.leases.keys() == live, "leases and index differ"
    assert {service: set(records) for service, records in state.records.items()} == by_service
    assert {service: set(beats) for service, beats in state.beats.items()} == by_service
    assert state.services == by_service.keys(), "the set of services and the services with records differ"
    assert state.names == {entry.name: id_ for id_, entry in state.index.items() if entry.name}
    assert not live & state.gone.keys(), "an id is both live and gone"
    _suspects_are_counted(state)
    for id_, entry in state.index.items():
        record, beat = state.records[entry.service][id_], state.beats[entry.service][id_]
        assert rules.service_of(record.type, record.group) == entry.service
        assert rules.name_of(record.type, record.server_id) == entry.name
        assert (beat.life, record.capacity) == (entry.life, entry.capacity)
        assert state.ages[id_] == -1, "the history of a live instance expires"
    for id_ in state.gone:
        assert state.ages[id_] > 0, "the history of a gone instance stays for ever"
    _feed_is_whole(state.feed)
    return state


def _suspects_are_counted(state: State) -> None:
    suspects = {
        service: {id_ for id_, beat in beats.items() if beat.suspect}
        for service, beats in state.beats.items()
    }
    assert state.suspects == {service: ids for service, ids in suspects.items() if ids}
    assert state.panics == {
        service
        for service, ids in suspects.items()
        if len(state.beats[service]) > 1 and len(ids) * 2 > len(state.beats[service])
    }


def _feed_is_whole(feed: list[Entry]) -> None:
    assert [entry.rev for entry in feed] == list(range(1, len(feed) + 1))
    assert [entry.prev_at for entry in feed] == [0, *(entry.at for entry in feed)][:-1]
    assert all(entry.at > entry.prev_at for entry in feed)
    _panics_alternate(feed)
    feed = [entry for entry in feed if entry.fields["event"] != "panic"]
    lives = Counter((e.fields["event"], e.fields["id"], e.fields["life"]) for e in feed)
    for (event, *who), times in lives.items():
        if event != "changed":
            assert times == 1, f"{event} of {who} was told {times} times"
        assert ("added", *who) in lives, f"{event} of {who}, which was never added"
    _states_follow_the_table(feed)


def _panics_alternate(feed: list[Entry]) -> None:
    """Told once when it begins and once when it ends."""
    panics: set[str] = set()
    for fields in (entry.fields for entry in feed if entry.fields["event"] == "panic"):
        begins, service = fields["panic"] == "1", fields["service"]
        assert begins != (service in panics), f"{service}: panic {fields['panic']} was told twice"
        (panics.add if begins else panics.discard)(service)


def _states_follow_the_table(feed: list[Entry]) -> None:
    """Every life goes through the states as the table allows; an override has a word of its own."""
    last: dict[tuple[str, str], Status] = {}
    for entry in feed:
        who, status = (entry.fields["id"], entry.fields["life"]), entry.fields["status"]
        if status not in rules.STATES:
            continue
        before, now = last.get(who), cast(Status, status)
        assert before is None or now == before or now in rules.TRANSITIONS[before], f"{who}: {before} → {now}"
        last[who] = now


def _indexed(packed: str) -> Indexed:
    service, life, _, name, ttl_ms, capacity = packed.split("\t")
    return Indexed(service, int(life), name, int(ttl_ms), int(capacity))


async def _hashes(store: Store, part: str, read: Callable[[str], Any]) -> dict[str, dict[str, Any]]:
    found = await keys_below(store, discovery_keys(store.keys)[part])
    flat = await asyncio.gather(*(store.call("HGETALL", key, key=key) for key in found.values()))
    return {
        service: {id_: read(value) for id_, value in pairs(fields).items()}
        for service, fields in zip(found, flat, strict=True)
    }


async def _suspects(store: Store) -> dict[str, set[str]]:
    found = await keys_below(store, discovery_keys(store.keys)["suspects"])
    members = await asyncio.gather(*(store.call("SMEMBERS", key, key=key) for key in found.values()))
    return {service: {id_.decode() for id_ in ids} for service, ids in zip(found, members, strict=True)}


async def _history_ages(store: Store) -> dict[str, int]:
    """Seconds in whole hours, rounded up: two looks at the same age are alike."""
    found = await keys_below(store, discovery_keys(store.keys)["history"])
    ages = await asyncio.gather(*(store.call("TTL", key, key=key) for key in found.values()))
    return {id_: age if age < 0 else -(-age // 3600) * 3600 for id_, age in zip(found, ages, strict=True)}
