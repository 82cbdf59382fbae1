"""A gate's lane for the user: cache, highest epoch seen, all again from the first without an answer."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.exhaustive import store
from tests.faults.exhaustive.rules import Rules
from tests.faults.exhaustive.state import BEFORE, LOST, NOW, Gate, Op, Server, World

Step = tuple[str, World, str]
"""What happened, in plain words; the world after it; the kind of fault that it was, if it was one."""


def turn_back(world: World, lost: str = "") -> None:
    """Look for the home again; `lost`: the connection to this server is gone, and every reply on it."""
    gate = world.gate
    world.gate = gate._replace(server="", state=gate.state.replace("f", "w"))
    for server in world.servers:
        _age(world, server, LOST if server.name == lost else BEFORE)


def replaced(world: World) -> World:
    """The gate is dead: the player is at another, which knows no home and no epoch, and sends all again."""
    after, state = world.copy(), world.gate.state.replace("f", "w")
    after.gate = Gate("", 0, state)
    for server in world.servers:
        _age(after, server, LOST)
    return after


def _age(world: World, server: Server, most: int) -> None:
    queue = tuple(
        one._replace(tag=min(one.tag, most)) if isinstance(one, Op) else one for one in server.queue
    )
    turn = server.turn
    if hasattr(turn, "tag"):
        turn = turn._replace(tag=min(turn.tag, most))
    elif hasattr(turn, "owes"):
        turn = turn._replace(owes=(turn.owes[0], min(turn.owes[1], most)))
    if queue != server.queue or turn != server.turn:
        world.put(server.name, queue=queue, turn=turn)


def bounced(world: World, tag: int) -> None:
    """Not executed there."""
    if tag == NOW:
        turn_back(world)


def answered(world: World, number: int, tag: int, epoch: int) -> None:
    gate = world.gate
    if tag == LOST or gate.state[number - 1] == "d":
        return
    if epoch < gate.seen:
        bounced(world, tag)
        return
    state = gate.state[: number - 1] + "d" + gate.state[number:]
    world.gate = gate._replace(state=state, seen=epoch)


def _pump(world: World, rules: Rules) -> None:
    gate = world.gate
    if not gate.server or "w" not in gate.state:
        return
    oldest = min(n for n, letter in enumerate(gate.state, 1) if letter in "wf")
    ops = tuple(
        Op(n, oldest, gate.seen if rules.r7 else 0) for n, letter in enumerate(gate.state, 1) if letter == "w"
    )
    server = world.server(gate.server)
    if not server.up:
        turn_back(world)
        return
    world.gate = gate._replace(state=gate.state.replace("w", "f"))
    world.put(gate.server, queue=(*server.queue, *ops))


def steps(world: World, rules: Rules) -> Iterator[Step]:
    gate = world.gate
    if "u" in gate.state:
        number = gate.state.index("u") + 1
        after = world.copy()
        after.gate = gate._replace(state=gate.state.replace("u", "w", 1))
        _pump(after, rules)
        yield f"the player sends operation {number}", after, ""
    if not gate.server and "w" in gate.state:
        yield from _look(world, rules)
    if world.may("gate") and set(gate.state) != {"d"}:
        yield "the gate crashes; the player goes on at another", replaced(world), "gate"
    if gate.server and set(gate.state) != {"d"}:
        yield from _hear(world)
        if world.may("wire"):
            after = world.copy()
            turn_back(after, lost=gate.server)
            yield f"the gate's connection to {gate.server} is lost, and every reply on it", after, "wire"


def _look(world: World, rules: Rules) -> Iterator[Step]:
    found = store.resolve(world, world.gate.seen if rules.r7 else 0, rules)
    if found == "moving":
        return
    for placed in found:
        after, where = world.copy(), f"{placed.server}@{placed.epoch}"
        store.keep(after, placed.record)
        if world.server(placed.server).up:
            after.gate = after.gate._replace(server=placed.server, seen=max(after.gate.seen, placed.epoch))
            _pump(after, rules)
            yield f"the gate looks and finds {where}; it sends what waits", after, ""
        elif placed.record != world.record:
            yield f"the gate looks and finds {where}, which is dead", after, ""


def _hear(world: World) -> Iterator[Step]:
    """The feed tells the latest change."""
    gate, record = world.gate, world.record
    if record.st != "A" or record.e < gate.seen or (record.e == gate.seen and record.s == gate.server):
        return
    after = world.copy()
    after.gate = gate._replace(seen=record.e)
    if record.s != gate.server:
        turn_back(after)
    yield f"the gate hears that the user is at {record.s}@{record.e}", after, ""
