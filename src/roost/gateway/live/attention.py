"""What needs a person, by the numbers of the moment: what it is, and what to do. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from roost.api.overview import (
    Attention,
    JobNumbers,
    OrderNumbers,
    PlatformHealth,
    ServerNumbers,
    WorldNumbers,
)

MOST = 20


def of_health(health: PlatformHealth) -> Iterator[Attention]:
    if health.store == "away":
        what = "the store does not answer: nobody new is let in or placed, who plays goes on"
        yield Attention("error", what, "store", "look at the store; roost doctor", "store-away")
        return
    for loop in health.loops_failing:
        what, todo = f"{loop} fails in this gateway", "look at its log; roost doctor"
        yield Attention("error", what, f"loop/{loop}", todo, "loop-fails", {"loop": loop})
    unled = [led for led, leader in health.leader.items() if leader is None]
    if unled:
        roles = ", ".join(unled[:4])
        what = f"nobody leads {roles}: is a manager running?"
        yield Attention("error", what, "leader", "start one: roost manager", "no-leader", {"roles": roles})


def of_servers(servers: ServerNumbers, suspects: Sequence[tuple[str, str]]) -> Iterator[Attention]:
    """`suspects`: (type, server id) of each."""
    for type_, count in sorted(Counter(type_ for type_, _ in suspects).items()):
        name = next(name for one, name in suspects if one == type_)
        what = f"{count} server{'s' if count > 1 else ''} of {type_} {'are' if count > 1 else 'is'} suspect"
        params = {"n": str(count), "type": type_, "server": name}
        todo = f"look at Servers; roost instances show {name}"
        yield Attention("warning", what, f"{type_}/{name}", todo, "suspects", params)
    for one in servers.by_type:
        if one.total and not one.accepting:
            what = f"no server of {one.type} takes new users"
            todo = f"start one more; roost instances list --type {one.type}"
            yield Attention("error", what, one.type, todo, "nobody-takes-users", {"type": one.type})


def of_worlds(worlds: Sequence[WorldNumbers]) -> Iterator[Attention]:
    for world in worlds:
        subject, command = f"world/{world.world}", f"roost queue status {world.world}"
        if not world.waiting:
            continue
        params = {"n": str(world.waiting), "world": world.world}
        if world.mode == "hold":
            what = f"{world.waiting} people wait in {world.world}, which is on hold"
            todo = f"roost queue resume {world.world}"
            yield Attention("warning", what, subject, todo, "world-on-hold", params)
        elif world.capacity == 0:
            what = f"{world.waiting} people wait in {world.world}, and no server lets anybody in"
            todo = f"start game servers; {command}"
            yield Attention("error", what, subject, todo, "world-without-room", params)


def of_jobs(jobs: Sequence[JobNumbers]) -> Iterator[Attention]:
    for job in jobs:
        subject, servers = f"job/{job.id}", ", ".join(job.servers[:4])
        params = {"servers": servers, "job": job.id}
        if job.state == "paused":
            what, todo = f"the drain of {servers} is paused", f"roost drain resume {job.id}"
            yield Attention("warning", what, subject, todo, "drain-paused", params)
        elif job.state == "failed":
            what, todo = f"the drain of {servers} failed", f"roost drain status {job.id}"
            yield Attention("error", what, subject, todo, "drain-failed", params)


def of_orders(orders: OrderNumbers, lost: int) -> Iterator[Attention]:
    """`lost`: shards that had an owner once and have none."""
    if lost:
        what = f"{lost} shard{'s' if lost > 1 else ''} without an owner: their symbols wait"
        todo = "start an order server; roost orders shards"
        yield Attention("error", what, "orders", todo, "shards-unowned", {"n": str(lost)})
    if orders.violations:
        what = f"{orders.violations} commands ran out of order"
        todo = "keep the logs and report it; roost orders shards"
        yield Attention("error", what, "orders", todo, "out-of-order", {"n": str(orders.violations)})
