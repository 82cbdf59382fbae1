"""What a job would do, and why it is refused. Pure: from what was asked for and how the servers stand."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Mapping, Sequence

from roost.api import drain as api
from roost.api.binding import UnknownHolder
from roost.api.drain import LastServer, NowhereToMove, SchemaPoint, WrongJobState
from roost.api.limits import MAX_TEXT
from roost.binding.drain.model import MOVES_NOBODY, DrainRequest, Job, Plan, PlannedServer, RunningJob
from roost.binding.drain.standing import Standing, Standings
from roost.binding.rules import check_version
from roost.core.errors import InvalidInput
from roost.core.ids import check_name

SLACK = 0.05
"""A server that is so little above its share is not crowded."""
QUIET_S = 5
"""How long an emptied server waits for stale routes where nobody has set it; it alone knows what is set."""
STEPS = 1000
"""In how many steps a plan shares users out."""


def check_request(request: DrainRequest) -> None:
    """Refuse what cannot be meant, naming the field."""
    check_name(request.type, "type")
    for what, servers in (("servers", request.servers), ("to", request.to)):
        for server in servers:
            check_name(server, "serverId")
        if len(set(servers)) != len(servers):
            raise InvalidInput(f"{what} names a server twice")
        if len(servers) > api.MAX_SERVERS:
            raise InvalidInput(f"{what} has {len(servers)} servers, at most {api.MAX_SERVERS} are allowed")
    if both := sorted(set(request.servers) & set(request.to)):
        raise InvalidInput(f"{', '.join(both)} cannot be emptied and filled at once")
    if request.kind == "drain" and not request.servers and not request.emptiest:
        raise InvalidInput("no server is named", hint="roost drain start 501 502")
    if request.emptiest and (request.servers or request.kind != "drain"):
        raise InvalidInput("the emptiest are drained where no server is named", hint="give one of the two")
    check_version(request.version, MAX_TEXT)
    if len(request.by) > MAX_TEXT or not request.by.isprintable():
        raise InvalidInput(f"by has at most {MAX_TEXT} characters, none of them control characters")
    for name, value, least, most in (
        ("rate", request.rate, 0, api.MAX_DRAIN_RATE),
        ("canary", request.canary, 0, 100),
        ("emptiest", request.emptiest, 0, api.MAX_SERVERS),
        ("users", request.users, 0, 2**31),
        ("maxBlockMs", request.max_block_ms, 0, api.MAX_BLOCK_MS),
        ("deadlineSeconds", request.deadline_s, 0, api.MAX_DEADLINE_S),
    ):
        if not least <= value <= most:
            raise InvalidInput(f"{name} is {value:g}, must be {least} to {most}")


def check_answer(job: Job, request: DrainRequest, standings: Standings) -> None:
    """Whether this job, which has one of the servers, does what is asked for; raises what is in the way.

    Who asks relies on the answer and ends the server: a rebalance leaves users there, a rollback brings some.
    """
    theirs = [server for server in request.servers if server in job.lives] or job.sources
    name, of = f"the {job.kind} {job.id}", ", ".join(theirs)
    hint = f"wait until it is over (`roost drain status {job.id}`), or cancel it, then order again"
    if job.state in MOVES_NOBODY:
        raise WrongJobState(f"{name} is ending", hint="try again shortly")
    if job.state == "rolling-back":
        raise WrongJobState(f"{name} of {of} is being rolled back", hint=hint)
    if job.kind != request.kind:
        raise WrongJobState(f"{name} moves users of {of}", hint=hint)
    if job.kind == "rebalance":  # promises nothing of any one server
        return
    if request.emptiest > len(job.sources):
        raise WrongJobState(f"{name} empties {of}, and not {request.emptiest} servers", hint=hint)
    if others := [server for server in request.servers if server not in job.lives]:
        others_only = f"order {', '.join(others)} without {of}: that job empties what it has"
        raise WrongJobState(f"{name} empties {of}, and not {', '.join(others)}", hint=others_only)
    if again := [server for server in theirs if _lives_anew(standings.get(server), job.lives[server])]:
        raise WrongJobState(f"{name} empties an earlier {', '.join(again)}, which has ended", hint=hint)


def _lives_anew(here: Standing | None, life: str) -> bool:
    """Whether it is another process by now. One that was frozen registers again by itself, and is known to
    the job a moment later."""
    return here is not None and here.owner.life != life and not here.is_drained_alone


def make_plan(request: DrainRequest, standings: Standings, running: Collection[RunningJob]) -> Plan:
    """The plan of a drain or rebalance; raises why it is refused."""
    check_request(request)
    if request.kind == "rebalance":
        return _rebalance(request, standings, busy_servers(running, request.type))
    return _drain(request, standings, running)


def busy_servers(running: Iterable[RunningJob], type_: str) -> set[str]:
    """Servers whose users a job moves away."""
    return {
        source.server_id
        for job in running
        if job.type == type_ and not job.moves_nobody
        for source in job.sources
    }


def targets_for(
    to: Collection[str],
    version: str,
    sources: Collection[str],
    standings: Standings,
    busy: Collection[str],
) -> list[Standing]:
    """Who may take users of these sources now, full or not."""
    return [
        one
        for one in standings.values()
        if one.willing
        and one.address is not None
        and one.server_id not in sources
        and one.server_id not in busy
        and is_wanted(one, to, version)
    ]


def is_wanted(one: Standing, to: Collection[str], version: str) -> bool:
    """Whether an order for these targets and this version, if it named any, means it."""
    return (not to or one.server_id in to) and (not version or one.version == version)


def schema_point(sources: Iterable[Standing], targets: Iterable[Standing]) -> str:
    """From where on a rollback is refused, as far as servers say what they read and write."""
    for source in sources:
        for target in targets:
            if not source.can_read(target.min_reader):
                return (
                    f"whoever {target.server_id} (version {target.version}) has saved once cannot go back to "
                    f"{source.server_id}: it writes rows for readers from schema {target.min_reader} on, and "
                    f"{source.server_id} reads up to schema {source.schema}"
                )
    return ""


def emptiest(standings: Standings, count: int, left_out: Collection[str] = ()) -> list[str]:
    """The servers to take out first when fewer are needed: those whose users are moved soonest."""
    fit = [one for one in standings.values() if one.willing and one.server_id not in left_out]
    if len(fit) < count:
        raise NowhereToMove(f"{count} servers are to be emptied, and only {len(fit)} take users")
    return [one.server_id for one in sorted(fit, key=lambda one: (one.users, one.server_id))[:count]]


# -- a drain


def _drain(request: DrainRequest, standings: Standings, running: Collection[RunningJob]) -> Plan:
    sources = [_known(server, standings) for server in request.servers]
    busy = busy_servers(running, request.type)
    targets = _readable(request, sources, _targets(request, standings, busy))
    _check_last(request, sources, standings, running, busy)
    users = sum(source.users for source in sources)
    return _plan(request, {one.server_id: one.users for one in sources}, sources, targets, users)


def _known(server: str, standings: Standings) -> Standing:
    if server not in standings:
        raise UnknownHolder(f"no server {server} is registered")
    return standings[server]


def _targets(request: DrainRequest, standings: Standings, busy: Collection[str]) -> list[Standing]:
    for server in request.to:
        if not _known(server, standings).willing:
            raise NowhereToMove(f"{server} takes no users: it is closed, draining or unhealthy")
    found = targets_for(request.to, request.version, request.servers, standings, busy)
    if not found:
        wanted = f" of version {request.version}" if request.version else ""
        raise NowhereToMove(f"no other server{wanted} of type {request.type} takes users")
    return found


def _readable(
    request: DrainRequest, sources: Sequence[Standing], targets: Sequence[Standing]
) -> list[Standing]:
    """The targets whose class reads what all sources have written."""
    needed = max((one.min_reader for one in sources), default=0)
    fit = [one for one in targets if one.can_read(needed)]
    if not fit:
        have = max(one.schema for one in targets)
        raise SchemaPoint(
            f"the servers write rows for readers from schema {needed} on, and the others read up to {have}"
        )
    return fit


def _check_last(
    request: DrainRequest,
    sources: Sequence[Standing],
    standings: Standings,
    running: Collection[RunningJob],
    busy: Collection[str],
) -> None:
    """Refuse to take the last server of a version away from those who have nowhere else to go."""
    leaving = {one.server_id for one in sources}
    stay = {
        one.version
        for one in standings.values()
        if one.willing and one.server_id not in leaving and one.server_id not in busy
    }
    for source in sources:
        if source.version in stay or not source.willing:
            continue
        needing = [
            one
            for one in standings.values()
            if one.version == source.version
            and one.users
            and one.server_id not in leaving
            and one.server_id not in busy
        ]
        if needing:
            names = ", ".join(f"{one.server_id} ({one.users} users)" for one in needing)
            raise LastServer(
                f"{source.server_id} is the last server of version {source.version} that takes users, and "
                f"{names} of the same version may need it",
                hint=f"drain them together: roost drain start {' '.join(sorted(leaving))} "
                + " ".join(sorted(one.server_id for one in needing)),
            )
    for job in running:
        if job.type == request.type and not job.moves_nobody:
            _check_not_needed_by(job, sources, stay)


def _check_not_needed_by(job: RunningJob, sources: Sequence[Standing], stay: Collection[str]) -> None:
    leaving = {one.server_id for one in sources}
    its_last = bool(job.to) and leaving >= set(job.to)
    its_version = job.version not in stay and job.version in {one.version for one in sources}
    if its_last or its_version:
        where = ", ".join(job.to) if its_last else f"version {job.version}"
        raise LastServer(
            f"the drain {job.id} moves its users to {where}, and nobody else would be left there",
            hint=f"wait until it is done, or cancel it: roost drain cancel {job.id}",
        )


# -- a rebalance


def _rebalance(request: DrainRequest, standings: Standings, busy: Collection[str]) -> Plan:
    """Within each version users go from those above their share to those below it."""
    for server in (*request.servers, *request.to):
        _known(server, standings)
    open_ = targets_for((), request.version, (), standings, busy)
    quota: dict[str, int] = {}
    below: list[Standing] = []
    for version in sorted({one.version for one in open_}):
        alike = [one for one in open_ if one.version == version]
        above, short = _shares(alike)
        if above and short:
            quota |= above
            below += short
    if request.servers:
        quota = {server: moves for server, moves in quota.items() if server in request.servers}
    if request.to:
        below = [one for one in below if one.server_id in request.to]
    if not quota or not below:
        raise NowhereToMove(
            "the servers hold about as many users as each other",
            hint="`roost bindings servers` shows how many; only servers of one version share their users",
        )
    quota = _within(quota, request.users)
    sources = [standings[server] for server in quota]
    return _plan(request, quota, sources, below, sum(quota.values()))


def _shares(alike: Sequence[Standing]) -> tuple[dict[str, int], list[Standing]]:
    """(server → how many it has too many, servers that have too few), of one version."""
    total = sum(one.users for one in alike)
    seats = [one.capacity for one in alike]
    weights = seats if all(seats) else [1] * len(alike)
    above: dict[str, int] = {}
    below: list[Standing] = []
    for one, weight in zip(alike, weights, strict=True):
        share = total * weight / sum(weights)
        if one.users > share + max(1.0, share * SLACK):
            above[one.server_id] = one.users - round(share)
        elif one.users < share:
            below.append(one)
    return above, below


def _within(quota: Mapping[str, int], budget: int) -> dict[str, int]:
    """No more than the budget in all, the most crowded first; 0: no bound."""
    left, kept = budget or sum(quota.values()), dict[str, int]()
    for server, moves in sorted(quota.items(), key=lambda one: (-one[1], one[0])):
        if left > 0:
            kept[server] = min(moves, left)
            left -= kept[server]
    return kept


# -- both


def _plan(
    request: DrainRequest,
    moves: Mapping[str, int],
    sources: Sequence[Standing],
    targets: Sequence[Standing],
    users: int,
) -> Plan:
    rooms = [one.room for one in targets]
    seats = None if None in rooms else sum(room for room in rooms if room is not None)
    slowest = max(moves.values(), default=0)
    point = schema_point(sources, targets)
    notes = [f"after that no way back: {point}"] if point else []
    if seats is not None and seats < users:
        notes.append(f"{users - seats} of {users} users have no seat yet: they wait until there is room")
    if request.canary:
        notes.append(f"it pauses after the first {request.canary} % of the users, until it is resumed")
    return Plan(
        type=request.type,
        kind=request.kind,
        users=users,
        sources=[_planned(one, moves.get(one.server_id, 0)) for one in sources],
        targets=[_planned(one, count) for one, count in _shared_out(users, targets)],
        seats=seats,
        seconds=slowest / (request.rate or api.RATE),
        pinned={},
        later=0,
        schema_point=point,
        rollback_until=_rollback_until(request, sources),
        notes=notes,
    )


def _rollback_until(request: DrainRequest, sources: Sequence[Standing]) -> str:
    if request.kind != "drain":
        return "as long as the servers live"
    names = ", ".join(one.server_id for one in sources)
    return (
        f"until the end of {names}: an emptied server leaves when nobody came to it for {QUIET_S} s "
        "(ROOST_ENTITY__RETIRE_QUIET_SECONDS where it runs)"
    )


def _planned(one: Standing, moves: int) -> PlannedServer:
    return PlannedServer(one.server_id, one.version, one.users, moves, one.capacity)


def _shared_out(users: int, targets: Sequence[Standing]) -> list[tuple[Standing, int]]:
    """As the job does it: each time the emptiest with room gets the next."""
    given = dict.fromkeys((one.server_id for one in targets), 0)
    by_id = {one.server_id: one for one in targets}
    heap = [(*one.crowding, one.server_id) for one in targets if one.room != 0]
    heapq.heapify(heap)
    left, step = users, max(1, users // STEPS)
    while left > 0 and heap:
        server = heapq.heappop(heap)[2]
        one = by_id[server]
        room = left if one.room is None else one.room - given[server]
        given[server] += min(step, left, room)
        left -= min(step, left, room)
        if room > step or one.room is None:
            heapq.heappush(heap, (*one._replace(users=one.users + given[server]).crowding, server))
    return [(by_id[server], count) for server, count in given.items()]
