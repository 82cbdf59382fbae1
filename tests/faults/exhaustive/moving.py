"""Both ends of a move: the real machines of `binding/move.py` and `binding/arrival.py`.

What they ask for is carried out here, on the small world; what came of it is told to them. Their time stands
still: that an answer does not come in time is a step of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from roost.binding import arrival as target
from roost.binding import move as source
from roost.binding import protocol
from roost.core.owner import Owner
from tests.faults.exhaustive import store
from tests.faults.exhaustive.gate import Step
from tests.faults.exhaustive.rules import Rules
from tests.faults.exhaustive.serving import Renewal, end, leave, opened, unanswered_flush
from tests.faults.exhaustive.state import (
    Accept,
    LateClaim,
    LateCommit,
    LateFreeze,
    Ops,
    Row,
    Server,
    World,
    Write,
)

NO = "no"
SILENCE = protocol.NoAnswer(NO)

_numbers: dict[object, int] = {}
_machines: list[tuple[source.Move, protocol.Action] | tuple[target.Arrival, target.ArrivalAction]] = []


def _kept(machine: tuple[source.Move, protocol.Action] | tuple[target.Arrival, target.ArrivalAction]) -> int:
    """A machine and its action by number: worlds are compared often, and these are large."""
    if machine not in _numbers:
        _numbers[machine] = len(_machines)
        _machines.append(machine)
    return _numbers[machine]


class Moving(NamedTuple):
    """A turn of the source; `sent`: the offer is on its way, or lost."""

    number: int
    sent: bool = False

    @property
    def machine(self) -> source.Move:
        machine = _machines[self.number][0]
        assert isinstance(machine, source.Move)
        return machine

    @property
    def action(self) -> object:
        return _machines[self.number][1]


class Arriving(NamedTuple):
    """A turn of the target."""

    number: int
    offer: Accept
    row: Row | None = None

    @property
    def machine(self) -> target.Arrival:
        machine = _machines[self.number][0]
        assert isinstance(machine, target.Arrival)
        return machine

    @property
    def action(self) -> object:
        return _machines[self.number][1]


def owner(name: str) -> Owner | None:
    return Owner(name, "1") if name else None


def digest(ops: Ops) -> bytes:
    return repr(ops).encode()


# -- the source


def begin(world: World, server: Server, to: str) -> Step:
    """The controller asks; the state was written before as far as it was (`autosave`)."""
    name, after = server.name, world.copy()
    terms = protocol.Terms(Owner(name, "1"), Owner(to, "1"), str(world.moves))
    machine, action = source.begin(terms)
    events: list[protocol.Event] = [protocol.Preflushed(), protocol.Turn(server.epoch), protocol.Willing()]
    for event in events:
        machine, action = source.step(machine, event, 0.0)
    after.moves -= 1
    after.put(name, turn=Moving(_kept((machine, action))), fresh=True, current=False, answer="")
    return f"{name} is asked to move the user to {to}, and begins", after, ""


def moving(world: World, server: Server, turn: Moving, rules: Rules) -> Iterator[Step]:
    match turn.action:
        case protocol.Freeze():
            yield from _freeze(world, server, turn, rules)
        case protocol.Flush():
            yield from _flush(world, server, turn, rules)
        case protocol.Accept() as asked if not turn.sent:
            yield from _offer(world, server, turn, asked, rules)
        case protocol.Accept():
            yield from _hear(world, server, turn, rules)
        case protocol.Renew(above):
            yield from _renew(world, server, turn, above, rules)
        case protocol.Claim(epoch, judged):
            yield from _claim(world, server, turn, epoch, judged, rules)
        case _:
            raise AssertionError(f"the model does not know {turn.action}")


def _told(world: World, name: str, event: protocol.Event, rules: Rules) -> World:
    """What the machine does next; where it ends, what becomes of the session."""
    server = world.server(name)
    machine, action = source.step(server.turn.machine, event, 0.0)
    if not isinstance(action, protocol.End):
        world.put(name, turn=Moving(_kept((machine, action))))
        return world
    world.put(name, turn=None, fresh=False, answer="")
    match action.then:
        case protocol.Then.SERVE:
            world.put(name, epoch=action.epoch, current=server.fresh)
        case protocol.Then.DROP:
            end(world, name)
        case protocol.Then.LEAVE:
            leave(world, name, rules)
    return world


def _freeze(world: World, server: Server, turn: Moving, rules: Rules) -> Iterator[Step]:
    name, terms = server.name, turn.machine.terms
    to, move = terms.target.server_id, int(terms.move_id)
    record = store.freeze(world, name, turn.machine.epoch, move, to)
    if record is None:
        yield f"{name}'s freeze is refused", _told(world.copy(), name, protocol.NotFrozen(NO), rules), ""
        return
    if world.may("store"):
        late = world.copy()
        late.late = (*late.late, LateFreeze(name, turn.machine.epoch, move, to))
        yield f"{name}'s freeze is on its way for long", _told(late, name, SILENCE, rules), "store"
    after = world.copy()
    store.keep(after, record)
    said = f"{name} freezes the user for {to}@{record.ne}"
    if world.may("store"):
        yield f"{said}, but gets no answer", _told(after.copy(), name, SILENCE, rules), "store"
    yield said, _told(after, name, protocol.Frozen(record.ne), rules), ""


def _flush(world: World, server: Server, turn: Moving, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    if not server.dirty:
        saved = protocol.Saved(server.rev, digest(server.ops))
        yield f"{name} has nothing more to write", _told(after, name, saved, rules), ""
        return
    write = Write(server.epoch, server.rev + 1, server.ops)
    if world.may("database"):
        for said, lost, kind in unanswered_flush(world, server, write, rules):
            yield said, _told(lost, name, protocol.NotSaved(NO), rules), kind
    row = store.flush(world.row, write, rules)
    if row is None:
        after.put(name, rev=max(write.rev, world.row.rev))
        yield f"{name}'s last write is refused", _told(after, name, protocol.NotSaved(NO), rules), ""
        return
    after.row = row
    after.put(name, rev=write.rev, dirty=False)
    saved = protocol.Saved(write.rev, digest(write.ops))
    yield f"{name} writes {write.ops} before it offers the user", _told(after, name, saved, rules), ""


def _offer(
    world: World, server: Server, turn: Moving, asked: protocol.Accept, rules: Rules
) -> Iterator[Step]:
    name, terms = server.name, turn.machine.terms
    to = terms.target.server_id
    offer = Accept(int(terms.move_id), name, asked.epoch, asked.next_epoch, asked.revision, server.ops)
    waiting = world.copy()
    waiting.put(name, turn=turn._replace(sent=True))
    if world.may("wire"):
        yield f"{name} offers the user to {to}, but the offer is lost", waiting, "wire"
    if not world.server(to).up:
        yield f"{name} cannot reach {to}", _told(world.copy(), name, protocol.Refused(NO), rules), ""
        return
    queue = world.server(to).queue
    after = waiting.copy()
    after.put(to, queue=(*queue, offer))
    yield f"{name} offers the user to {to}", after, ""
    if world.may("wire"):
        doubled = waiting.copy()
        doubled.put(to, queue=(*queue, offer, offer))
        yield f"{name} offers the user to {to}, and the offer arrives twice", doubled, "wire"


def _hear(world: World, server: Server, turn: Moving, rules: Rules) -> Iterator[Step]:
    """The answer, or that none came in time."""
    name = server.name
    if server.answer:
        event = protocol.Accepted() if server.answer == "taken" else protocol.Refused(NO)
        yield f"{name} hears: {server.answer}", _told(world.copy(), name, event, rules), ""
    yield f"{name} has waited long enough for an answer", _told(world.copy(), name, SILENCE, rules), ""


def _renew(world: World, server: Server, turn: Moving, above: int, rules: Rules) -> Iterator[Step]:
    name, record, after = server.name, world.record, world.copy()
    if not rules.r1 and record.st == "A" and record.s == name and record.e == server.epoch:
        after.put(name, turn=None, current=server.fresh, fresh=False)
        yield f"{name} reads {name}@{record.e} in the map and goes on as if nothing had been", after, ""
        return
    if not server.lease:
        yield f"{name} wants the user back without a lease", _told(after, name, SILENCE, rules), ""
        return
    renewed = store.renew(world, name, above, rules)
    if renewed is None:
        found = protocol.Elsewhere(owner(record.s), record.e)
        said = f"{name} wants the user back, but the map says {record.s or 'nobody'}@{record.e}"
        yield said, _told(after, name, found, rules), ""
        return
    store.keep(after, renewed[0])
    said = f"{name} takes the user back under {renewed[1]}"
    if world.may("store"):
        yield f"{said}, but gets no answer", _told(after.copy(), name, SILENCE, rules), "store"
    yield said, _told(after, name, protocol.Renewed(renewed[1]), rules), ""


def _claim(
    world: World, server: Server, turn: Moving, epoch: int, judged: int, rules: Rules
) -> Iterator[Step]:
    name, after = server.name, world.copy()
    judged = judged if rules.r2 else world.row.e
    row = store.claim(world.row, name, epoch, judged, rules)
    if row is None:
        found = world.row
        event = protocol.RowRefused(owner(found.owner), found.e, found.rev)
        yield (
            f"{name} finds the row at {found.owner or 'nobody'}@{found.e}",
            _told(after, name, event, rules),
            "",
        )
        return
    said = f"{name} claims the row under {epoch}"
    if world.may("database"):
        late = world.copy()
        late.late = (*late.late, LateClaim(name, epoch, judged))
        yield (
            f"{name}'s claim under {epoch} is on its way for long",
            _told(late, name, SILENCE, rules),
            "database",
        )
        lost = world.copy()
        lost.row = row
        yield f"{said}, but gets no answer", _told(lost, name, SILENCE, rules), "database"
    after.row = row
    yield f"{said} and goes on with the user", _told(after, name, protocol.Claimed(), rules), ""


# -- the target


def accept(world: World, server: Server, offer: Accept, rules: Rules) -> Iterator[Step]:
    name, after = server.name, world.copy()
    after.put(name, queue=server.queue[1:])
    if server.is_open:
        is_same = server.epoch == offer.ne
        answer(after, offer, "taken" if is_same else "refused")
        if not is_same:
            after.put(name, turn=Renewal("renew", 0, server.epoch, settles=True), fresh=True)
        yield f"{name} gets an offer of a user whom it holds already", after, ""
        return
    fault = "" if server.lease or not rules.r6 else "no lease"
    asked = target.Offer(Owner(name, "1"), str(offer.move), offer.e, offer.ne, offer.rev, digest(offer.ops))
    after.put(name, fresh=True)
    _does(after, name, target.arrive(asked, fault), offer, None)
    yield f"{name} gets the offer{' and has no lease' if fault else ''}", after, ""


def answer(world: World, offer: Accept, said: str) -> None:
    turn = world.server(offer.source).turn
    if isinstance(turn, Moving) and turn.sent and turn.machine.terms.move_id == str(offer.move):
        world.put(offer.source, answer=said)


def _does(world: World, name: str, step: target.ArrivalStep, offer: Accept, row: Row | None) -> None:
    machine, action = step
    match action:
        case target.Opened(epoch):
            assert row is not None
            opened(world, name, epoch, row)
            answer(world, offer, "taken")
        case target.Refuse():
            end(world, name)
            answer(world, offer, "refused")
        case target.Load():
            _does(world, name, target.receive(machine, target.Loaded()), offer, row)
        case _:
            world.put(name, turn=Arriving(_kept((machine, action)), offer, row))


def _hears(world: World, name: str, turn: Arriving, event: target.ArrivalEvent, row: Row | None) -> World:
    _does(world, name, target.receive(turn.machine, event), turn.offer, row)
    return world


def arriving(world: World, server: Server, turn: Arriving, rules: Rules) -> Iterator[Step]:
    match turn.action:
        case target.ClaimRow(epoch, judged):
            yield from _claim_row(world, server.name, turn, epoch, judged, rules)
        case target.CommitMap(_, epoch):
            yield from _commit(world, server.name, turn, epoch, rules)
        case target.ReleaseRow(epoch):
            yield from _undo(world, server.name, turn, epoch, rules)
        case _:
            raise AssertionError(f"the model does not know {turn.action}")


def _claim_row(
    world: World, name: str, turn: Arriving, epoch: int, judged: int, rules: Rules
) -> Iterator[Step]:
    after, row = world.copy(), store.claim(world.row, name, epoch, judged, rules)
    if row is None:
        said = f"{name} finds the row at {world.row.e} and refuses the offer"
        yield said, _hears(after, name, turn, target.RowTaken(), None), ""
        return
    said = f"{name} claims the row under {epoch}"
    if world.may("database"):
        late = world.copy()
        late.late = (*late.late, LateClaim(name, epoch, judged))
        said_late = f"{name}'s claim under {epoch} is on its way for long"
        yield said_late, _hears(late, name, turn, SILENCE, None), "database"
        lost = world.copy()
        lost.row = row
        yield f"{said}, but gets no answer", _hears(lost, name, turn, SILENCE, None), "database"
    after.row = row
    found = target.RowClaimed(row.rev, digest(row.ops))
    if not rules.r4:
        found = target.RowClaimed(turn.offer.rev, digest(turn.offer.ops))
    yield f"{said} and loads {row.ops}", _hears(after, name, turn, found, row), ""


def _commit(world: World, name: str, turn: Arriving, epoch: int, rules: Rules) -> Iterator[Step]:
    after, record = world.copy(), store.commit(world, name, epoch, turn.offer.move, rules)
    if record is None:
        yield f"{name}'s commit finds no such move", _hears(after, name, turn, target.Gone(), turn.row), ""
        return
    if world.may("store"):
        late = world.copy()
        late.late = (*late.late, LateCommit(name, epoch, turn.offer.move))
        yield f"{name}'s commit is on its way for long", _hears(late, name, turn, SILENCE, turn.row), "store"
    store.keep(after, record)
    if world.may("store"):
        lost = _hears(after.copy(), name, turn, SILENCE, turn.row)
        yield f"{name} commits, but gets no answer", lost, "store"
    said = f"{name} commits and holds the user under {epoch}"
    yield said, _hears(after, name, turn, target.Committed(), turn.row), ""


def _undo(world: World, name: str, turn: Arriving, epoch: int, rules: Rules) -> Iterator[Step]:
    after = world.copy()
    if world.may("database"):
        lost = _hears(world.copy(), name, turn, SILENCE, None)
        yield f"{name} lets go of the user, but cannot clear the row", lost, "database"
    after.row = store.release_row(world.row, name, epoch, rules) or world.row
    said = f"{name} lets go of the user and clears the row"
    yield said, _hears(after, name, turn, target.Undone(), None), ""
