"""What befalls everybody: time that passes, late arrivals, crashes, pauses, a failover."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.exhaustive import gate, moving, serving, store
from tests.faults.exhaustive.gate import Step
from tests.faults.exhaustive.rules import Rules
from tests.faults.exhaustive.serving import Handled, Login, Releasing, Renewal
from tests.faults.exhaustive.state import (
    Accept,
    Late,
    LateClaim,
    LateCommit,
    LateFreeze,
    Op,
    Server,
    World,
    Write,
)


def steps(world: World, rules: Rules) -> Iterator[Step]:
    """Everything that can happen next."""
    for server in world.servers:
        if server.up:
            yield from _server(world, server, rules)
            yield from _befalls(world, server, rules)
        elif server.name in world.live:
            after = world.copy()
            after.live = world.live.replace(server.name, "")
            yield f"the lease of {server.name} ends in the store", after, ""
    yield from gate.steps(world, rules)
    yield from _time(world, rules)
    if world.may("failover"):
        yield from _failover(world)


def _server(world: World, server: Server, rules: Rules) -> Iterator[Step]:
    match server.turn:
        case None:
            yield from _between_turns(world, server, rules)
        case Login() as turn:
            yield from serving.login(world, server, turn, rules)
        case Renewal() as turn:
            yield from serving.renewal(world, server, turn, rules)
        case Handled() as turn:
            yield from serving.handled(world, server, turn, rules)
        case Releasing():
            yield from serving.release(world, server, rules)
        case moving.Moving() as turn:
            yield from moving.moving(world, server, turn, rules)
        case moving.Arriving() as turn:
            yield from moving.arriving(world, server, turn, rules)


def _between_turns(world: World, server: Server, rules: Rules) -> Iterator[Step]:
    head = server.queue[0] if server.queue else None
    if isinstance(head, Op):
        yield from serving.message(world, server, head, rules)
    elif isinstance(head, Accept):
        yield from moving.accept(world, server, head, rules)
    if not server.is_open:
        return
    if server.dirty:
        yield from serving.autosave(world, server, rules)
    elif world.may("idle") and head is None and server.current:
        yield from serving.release(world, server, rules)
    if world.moves and server.current and server.lease:
        for other in world.servers:
            if other.name != server.name:
                yield moving.begin(world, server, other.name)
    if server.doubt and server.current and server.lease:
        yield from _reassert(world, server, rules)


def _reassert(world: World, server: Server, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    after.put(name, doubt=False)
    if not rules.reassert or name not in world.live:
        return
    record = store.reassert(world, name, server.epoch, rules)
    store.keep(after, record)
    if record.s != name or record.e != server.epoch:
        after.put(name, doubt=False, turn=Renewal("renew", 0, server.epoch, settles=True), fresh=True)
    yield f"{name} says again that it holds the user under {server.epoch}", after, ""


def _befalls(world: World, server: Server, rules: Rules) -> Iterator[Step]:
    name = server.name
    if not server.lease:
        after = world.copy()
        after.put(name, lease=True)
        after.live = "".join(sorted({*world.live, name}))
        yield f"{name} beats again", after, ""
    elif world.may("pause"):
        after = world.copy()
        serving.lapse(after, name, rules)
        yield f"{name} pauses until its lease is over", after, "pause"
    if world.may("crash") and sum(one.up for one in world.servers) > 1:
        yield f"{name} crashes", crashed(world, name), "crash"


def crashed(world: World, name: str) -> World:
    after, server = world.copy(), world.server(name)
    if server.dirty:
        after.spared |= set(server.ops) - set(world.row.ops)
    at = ord(name) - 65
    after.servers = (*after.servers[:at], Server(name, up=False, lease=False), *after.servers[at + 1 :])
    if after.gate.server == name:
        gate.turn_back(after)
    return after


def _time(world: World, rules: Rules) -> Iterator[Step]:
    record = world.record
    if record.st == "M" and not record.expired:
        after = world.copy()
        after.record = record._replace(expired=True)
        yield "the time of the mark is over", after, ""
    elif record.st == "M":
        found = store.resolve(world, 0, rules)
        assert not isinstance(found, str)
        for placed in found:
            after = world.copy()
            store.keep(after, placed.record)
            yield f"a reader finds the mark over: {placed.server}@{placed.epoch}", after, ""
    for at, late in enumerate(world.late):
        after = world.copy()
        after.late = world.late[:at] + world.late[at + 1 :]
        yield _lands(after, late, rules), after, ""


def _lands(world: World, late: Late, rules: Rules) -> str:
    match late:
        case Write(epoch, _, ops):
            row = store.flush(world.row, late, rules)
            world.row = row or world.row
            return f"a late write of {ops} under {epoch} {'lands' if row else 'is refused'}"
        case LateClaim(name, epoch, judged):
            row = store.claim(world.row, name, epoch, judged, rules)
            world.row = row or world.row
            return f"a late claim of {name} under {epoch} {'lands' if row else 'is refused'}"
        case LateFreeze(name, epoch, move, target):
            record = store.freeze(world, name, epoch, move, target)
            store.keep(world, record or world.record)
            return f"a late freeze of {name} {'lands' if record else 'is refused'}"
        case LateCommit(name, epoch, move):
            record = store.commit(world, name, epoch, move, rules)
            store.keep(world, record or world.record)
            return f"a late commit of {name} {'lands' if record else 'is refused'}"


def _failover(world: World) -> Iterator[Step]:
    for lost, record in enumerate(world.history, 1):
        after = world.copy()
        after.record, after.history = record, ()
        for server in world.servers:
            if server.up and (server.is_open or server.turn is not None):
                after.put(server.name, doubt=True)
        yield (
            f"the store fails over and loses the last {lost} changes: {record.s}@{record.e}",
            after,
            "failover",
        )
