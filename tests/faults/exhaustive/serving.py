"""What a server does for the user, step by step: as `servers/entity` does it, one turn at a time.

Each function below is one atomic step of a turn: what it asks of the store or the database happens at once,
and may cost a fault: no answer though it was done, or done later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from tests.faults.exhaustive import gate, store
from tests.faults.exhaustive.gate import Step
from tests.faults.exhaustive.rules import Rules
from tests.faults.exhaustive.state import LateClaim, Op, Row, Server, World, Write


class Login(NamedTuple):
    """`Claims.take`."""

    step: Literal["read", "claim", "repair", "renew"] = "read"
    epoch: int = 0
    judged: int = 0
    row: Row | None = None


class Renewal(NamedTuple):
    """`Residence.make_current`; `owes`: the message that waits for it, by number and tag, 0 if none does."""

    step: Literal["renew", "claim"]
    above: int
    judged: int
    epoch: int = 0
    owes: tuple[int, int] = (0, 0)
    settles: bool = False


class Handled(NamedTuple):
    """A handler came back after a pause."""

    number: int
    tag: int


class Releasing(NamedTuple):
    pass


def end(world: World, name: str) -> None:
    """The user is not here any more; whoever waits is sent away."""
    server = world.server(name)
    turn = server.turn
    world.put(
        name,
        is_open=False,
        epoch=0,
        current=False,
        ops=(),
        dirty=False,
        rev=0,
        turn=None,
        queue=(),
        fresh=False,
        doubt=False,
        answer="",
    )
    if isinstance(turn, Renewal) and turn.owes[0]:
        gate.bounced(world, turn.owes[1])
    for waiting in server.queue:
        if isinstance(waiting, Op):
            gate.bounced(world, waiting.tag)


def leave(world: World, name: str, rules: Rules) -> None:
    """Give the user up: the row may still be ours, then nothing is lost."""
    server = world.server(name)
    saved = True
    if server.dirty:
        row = store.flush(world.row, Write(server.epoch, server.rev + 1, server.ops), rules)
        saved = row is not None
        world.row = row or world.row
    if saved:
        world.row = store.release_row(world.row, name, server.epoch, rules) or world.row
    end(world, name)


# -- messages


def message(world: World, server: Server, op: Op, rules: Rules) -> Iterator[Step]:
    name = server.name
    after = world.copy()
    if not server.lease:
        after.put(name, queue=server.queue[1:])
        gate.bounced(after, op.tag)
        yield f"{name} has no lease and sends operation {op.number} away", after, ""
    elif not server.is_open:
        begun = world.copy()
        yield from login(begun, begun.put(name, turn=Login(), fresh=True), Login(), rules)
    elif not server.current or op.epoch > server.epoch:
        begun, turn = world.copy(), Renewal("renew", op.epoch, server.epoch)
        yield from _renew(begun, begun.put(name, turn=turn, fresh=True), turn, rules)
    else:
        yield from _execute(world, server, op, rules)


def _execute(world: World, server: Server, op: Op, rules: Rules) -> Iterator[Step]:
    name, number = server.name, op.number
    last = max(server.ops, default=0)
    expected = max(last, op.oldest - 1) + 1
    after = world.copy()
    after.put(name, queue=server.queue[1:])
    if number > expected and rules.r9:
        gate.bounced(after, op.tag)
        yield f"{name} misses operation {expected} and refuses {number}", after, ""
    elif (number < expected or number <= last) and rules.dedupe:
        gate.answered(after, number, op.tag, server.epoch)
        yield f"{name} has executed operation {number} before and repeats its answer", after, ""
    else:
        after.put(name, ops=(*server.ops, number), dirty=True)
        if world.may("pause"):
            paused = after.copy()
            paused.put(name, turn=Handled(number, op.tag))
            lapse(paused, name, rules)
            yield (
                f"{name} executes operation {number} and pauses inside it until its lease is over",
                paused,
                "pause",
            )
        gate.answered(after, number, op.tag, server.epoch)
        yield f"{name}@{server.epoch} executes operation {number} and answers", after, ""


def handled(world: World, server: Server, turn: Handled, rules: Rules) -> Iterator[Step]:
    after, name = world.copy(), server.name
    if not server.lease:
        after.put(name, turn=None)
        gate.bounced(after, turn.tag)
        yield f"{name} wakes without a lease and does not answer operation {turn.number}", after, ""
    elif server.current:
        after.put(name, turn=None)
        gate.answered(after, turn.number, turn.tag, server.epoch)
        yield f"{name}@{server.epoch} answers operation {turn.number}", after, ""
    else:
        anew = Renewal("renew", 0, server.epoch, owes=(turn.number, turn.tag))
        yield from _renew(after, after.put(name, turn=anew, fresh=True), anew, rules)


def lapse(world: World, name: str, rules: Rules) -> None:
    """Its lease is over, here and in the store; what it has not written may be lost."""
    server = world.server(name)
    if server.dirty:
        world.spared |= set(server.ops) - set(world.row.ops)
    world.put(name, lease=False, fresh=False, current=server.current and not rules.r3)
    world.live = world.live.replace(name, "")


# -- logins


def login(world: World, server: Server, turn: Login, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    match turn.step:
        case "read":
            record = world.record
            if record.st != "A" or record.s != name:
                end(after, name)
                yield f"{name} reads the map: the user is not here", after, ""
                return
            judged = record.p if record.free or not rules.look_first else record.e  # refused, and tells
            after.put(name, turn=Login("claim", record.e, judged))
            yield f"{name} reads the map: {name}@{record.e}", after, ""
        case "claim":
            yield from _login_claim(world, server, turn, rules)
        case "repair":
            assert turn.row is not None
            found = store.repair(world, name, turn.epoch, turn.row.owner, turn.row.e, rules)
            if found == "dead":
                after.put(name, turn=_campaign(turn, turn.row))
                yield f"{name} asks to repair the map, but {turn.row.owner} is dead", after, ""
            elif found == "changed":
                end(after, name)
                yield f"{name} asks to repair the map, which has changed", after, ""
            else:
                store.keep(after, found)
                end(after, name)
                yield f"{name} gives the user back to {found.s}@{found.e}, whom the row names", after, ""
        case "renew":
            assert turn.row is not None
            renewed = store.renew(world, name, turn.row.e, rules)
            if renewed is None:
                end(after, name)
                yield f"{name} gets no epoch above the row's", after, ""
                return
            store.keep(after, renewed[0])
            if world.may("store"):
                lost = after.copy()
                end(lost, name)
                yield f"{name} gets epoch {renewed[1]}, but not the answer", lost, "store"
            after.put(name, turn=Login("claim", renewed[1], turn.row.e))
            yield f"{name} gets epoch {renewed[1]}, above the row's", after, ""


def _login_claim(world: World, server: Server, turn: Login, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    row = store.claim(world.row, name, turn.epoch, turn.judged, rules)
    if world.may("database"):
        lost = world.copy()
        lost.row = row or world.row
        end(lost, name)
        yield f"{name}'s claim under {turn.epoch} is not answered", lost, "database"
        if row is not None:
            late = world.copy()
            late.late = (*late.late, LateClaim(name, turn.epoch, turn.judged))
            end(late, name)
            yield f"{name}'s claim under {turn.epoch} is on its way for long", late, "database"
    if row is not None:
        after.row = row
        opened(after, name, turn.epoch, row)
        yield f"{name} claims the row under {turn.epoch} and loads {row.ops}", after, ""
        return
    found = world.row
    if found.owner not in ("", name) and rules.repair:
        after.put(name, turn=turn._replace(step="repair", row=found))
        yield f"{name}'s claim is refused: the row is {found.owner}@{found.e}", after, ""
    elif found.e >= turn.epoch and not rules.r8:
        end(after, name)
        yield f"{name}'s claim is refused: the row stands at {found.e}", after, ""
    else:
        after.put(name, turn=_campaign(turn, found))
        yield f"{name}'s claim is refused: the row is {found.owner or 'nobody'}@{found.e}", after, ""


def _campaign(turn: Login, row: Row) -> Login:
    if row.e >= turn.epoch:
        return turn._replace(step="renew", row=row)
    return Login("claim", turn.epoch, row.e)


def opened(world: World, name: str, epoch: int, row: Row) -> None:
    fresh = world.server(name).fresh
    world.put(
        name,
        turn=None,
        is_open=True,
        epoch=epoch,
        ops=row.ops,
        rev=row.rev,
        dirty=False,
        current=fresh,
        fresh=False,
    )


# -- claiming anew


def renewal(world: World, server: Server, turn: Renewal, rules: Rules) -> Iterator[Step]:
    if turn.step == "renew":
        yield from _renew(world, server, turn, rules)
    else:
        yield from _renew_claim(world, server, turn, rules)


def _renew(world: World, server: Server, turn: Renewal, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    renewed = store.renew(world, name, max(turn.above, turn.judged), rules) if server.lease else None
    if renewed is not None:
        store.keep(after, renewed[0])
        if world.may("store"):
            lost = after.copy()
            failed(lost, name, turn)
            yield f"{name} gets epoch {renewed[1]}, but not the answer", lost, "store"
        after.put(name, turn=turn._replace(step="claim", epoch=renewed[1]))
        yield f"{name} gets epoch {renewed[1]} in the map", after, ""
    elif not server.lease or world.record.s in ("", name):
        failed(after, name, turn)
        yield f"{name} gets no epoch: its lease is over", after, ""
    elif rules.reassert and world.record.e < server.epoch:
        store.keep(after, store.reassert(world, name, server.epoch, rules))
        yield f"{name} finds a map from before its grant, and tells it again", after, ""
    else:
        leave(after, name, rules)
        yield f"{name} gets no epoch: the user is {world.record.s}'s. It lets go", after, ""


def _renew_claim(world: World, server: Server, turn: Renewal, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    judged = turn.judged if rules.r2 or not turn.settles else world.row.e
    row = store.claim(world.row, name, turn.epoch, judged, rules)
    if world.may("database") and row is not None:
        lost = world.copy()
        lost.row = row
        failed(lost, name, turn)
        yield f"{name} claims the row under {turn.epoch} and gets no answer", lost, "database"
        late = world.copy()
        late.late = (*late.late, LateClaim(name, turn.epoch, judged))
        failed(late, name, turn)
        yield f"{name}'s claim under {turn.epoch} is on its way for long", late, "database"
    if row is not None:
        after.row = row
        after.put(name, turn=None, epoch=turn.epoch, current=server.fresh, fresh=False)
        if turn.owes[0]:
            gate.answered(after, turn.owes[0], turn.owes[1], turn.epoch)
        yield f"{name} claims the row under {turn.epoch} and goes on", after, ""
    elif world.row.owner == name and world.row.e > turn.judged:
        after.put(name, turn=turn._replace(step="renew", judged=world.row.e))
        yield f"{name} finds a claim of its own under {world.row.e} in the row", after, ""
    else:
        end(after, name)
        yield f"{name} finds the row claimed by another and drops its memory", after, ""


def failed(world: World, name: str, turn: Renewal) -> None:
    """Not now: who waits for it is sent away, the memory stays."""
    server = world.put(name, turn=None, fresh=False)
    if turn.owes[0]:
        gate.bounced(world, turn.owes[1])
    elif not turn.settles and server.queue and isinstance(server.queue[0], Op):
        world.put(name, queue=server.queue[1:])
        gate.bounced(world, server.queue[0].tag)


# -- writing


def autosave(world: World, server: Server, rules: Rules) -> Iterator[Step]:
    """Between turns, within the window of the class; the lease is not asked, the fence is."""
    name, write = server.name, Write(server.epoch, server.rev + 1, server.ops)
    if world.may("database"):
        yield from unanswered_flush(world, server, write, rules)
    after = world.copy()
    row = store.flush(world.row, write, rules)
    if row is not None:
        after.row = row
        after.put(name, rev=write.rev, dirty=False)
        yield f"{name} writes {write.ops} under {write.epoch}", after, ""
    elif world.row.e == write.epoch:
        after.put(name, rev=max(write.rev, world.row.rev))
        yield f"{name}'s write is behind one of its own", after, ""
    elif world.row.owner == name:  # an own claim whose answer was lost
        after.put(name, turn=Renewal("renew", 0, server.epoch, settles=True), fresh=True, current=False)
        yield f"{name}'s write is fenced by a claim of its own: it claims anew", after, ""
    else:
        end(after, name)
        yield f"{name}'s write is fenced: it drops its memory", after, ""


def unanswered_flush(world: World, server: Server, write: Write, rules: Rules) -> Iterator[Step]:
    """Done without an answer; or on its way for long."""
    after = world.copy()
    after.put(server.name, rev=write.rev)
    row = store.flush(world.row, write, rules)
    late = after.copy()
    late.late = (*late.late, write)
    yield f"{server.name}'s write of {write.ops} is on its way for long", late, "database"
    if row is not None:
        after.row = row
        yield f"{server.name} writes {write.ops} and gets no answer", after, "database"


def release(world: World, server: Server, rules: Rules) -> Iterator[Step]:
    """Row first, then the map."""
    name, after = server.name, world.copy()
    if server.turn is None:
        row = store.release_row(world.row, name, server.epoch, rules)
        if row is None:
            end(after, name)
        else:
            after.row = row
            after.put(name, turn=Releasing(), current=False)
        yield f"{name} has not heard of the user for long and clears the row", after, "idle"
        return
    store.keep(after, store.release(world, name, server.epoch, rules))
    end(after, name)
    yield f"{name} gives the user free in the map", after, ""
