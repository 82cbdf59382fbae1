"""The overview in a terminal: everything at a glance, at 80 columns and at 200."""

from __future__ import annotations

from collections.abc import Iterator

from roost.api.overview import Attention, Overview, TypeNumbers, WorldNumbers
from roost.cli.happening import STYLES, clock, line
from roost.cli.tables import Cell, Column, Part, Styled, Table

UNKNOWN = "?"
RECENT = 8
WORLDS = (
    "world",
    Column("mode", drop=6),
    "waiting",
    Column("away", drop=5),
    "tickets",
    Column("held", drop=4),
    "inside",
    "capacity",
    Column("free", drop=7),
    Column("issued/s", drop=8),
    Column("entered/s", drop=3),
    Column("wait", drop=9),
    Column("consumed", drop=2),
    Column("expired", drop=1),
    Column("message", drop=1, wrap=True),
)
TYPES = ("servers", "total", "taking users", "load", Column("capacity", drop=2), Column("used", drop=1))
JOBS = (
    "job",
    "state",
    Column("servers", wrap=True),
    "moved",
    Column("users/s", drop=2),
    Column("left", drop=1),
)


def view(found: Overview, recent: int = RECENT) -> Iterator[Part]:
    yield _head(found)
    yield ""
    yield Table(WORLDS, [_world(world) for world in found.worlds])
    yield ""
    yield Table(TYPES, [_type(one) for one in found.servers.by_type])
    yield _servers(found)
    yield _homes(found)
    if found.jobs:
        yield Table(JOBS, [_job_row(found, at) for at in range(len(found.jobs))])
    yield _orders(found)
    yield ""
    yield from map(_attention, found.attention)
    if not found.attention:
        yield Styled("nothing needs attention", "green")
    if recent:
        yield ""
        yield from map(line, reversed(found.recent[:recent]))


def number(value: float | None, unit: str = "") -> str:
    """As people read it; what nobody knows is a question mark, never 0."""
    if value is None:
        return UNKNOWN
    return f"{value:,}{unit}" if isinstance(value, int) else f"{value:,.1f}{unit}"


def _head(found: Overview) -> Part:
    health = found.health
    failing = f", failing: {', '.join(health.loops_failing)}" if health.loops_failing else ""
    text = f"roost at {clock(found.at)}, store {health.store}{failing}"
    return Styled(text, "bold red" if health.store == "away" or failing else "bold")


def _world(world: WorldNumbers) -> tuple[Cell, ...]:
    eta = UNKNOWN if world.eta_seconds is None else f"{world.eta_seconds} s"
    return (
        world.world,
        world.mode or UNKNOWN,
        *map(number, (world.waiting, world.away, world.tickets, world.held, world.inside)),
        *map(number, (world.capacity, world.free, world.issued_per_second, world.entered_per_second)),
        eta,
        *map(number, (world.consumed_total, world.expired_total)),
        world.message or "",
    )


def _type(one: TypeNumbers) -> tuple[Cell, ...]:
    used = f"{one.load / one.capacity:.0%}" if one.capacity else "-"
    capacity = number(one.capacity) if one.capacity else "-"
    return one.type, number(one.total), number(one.accepting), number(one.load), capacity, used


def _servers(found: Overview) -> str:
    servers = found.servers
    parts = (
        ("suspect", servers.suspect),
        ("draining", servers.draining),
        ("full", servers.full),
        ("out of service", servers.out_of_service),
    )
    said = ", ".join(f"{number(count)} {word}" for word, count in parts if count is None or count)
    return f"{number(servers.total)} servers" + (f": {said}" if said else "")


def _homes(found: Overview) -> str:
    homes = found.homes
    return f"{number(homes.users)} users have a home, {number(homes.moves_per_second)} moves/s"


def _job_row(found: Overview, at: int) -> tuple[Cell, ...]:
    job = found.jobs[at]
    eta = UNKNOWN if job.eta_seconds is None else f"{job.eta_seconds} s"
    moved = f"{number(job.moved)} of {number(job.users)}"
    return job.id, job.state, ", ".join(job.servers), moved, number(job.rate_now), eta


def _orders(found: Overview) -> str:
    orders = found.orders
    if orders.depth is None:
        return f"{number(orders.owned)} of {number(orders.shards)} shards of orders have an owner"
    said = (
        f"{number(orders.owned)} of {number(orders.shards)} shards have an owner",
        f"depth {number(orders.depth)}",
        f"{number(orders.accepted_per_second)} accepted/s",
        f"{number(orders.rejected_per_second)} rejected/s",
        f"{number(orders.violations)} out of order",
    )
    return ", ".join(said)


def _attention(one: Attention) -> Styled:
    return Styled(f"! {one.what}  ({one.todo})", STYLES.get(one.level, ""))
