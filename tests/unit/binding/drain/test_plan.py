"""What is planned, and what is refused with which words."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.api.binding import UnknownHolder
from roost.api.discovery import Override
from roost.api.drain import LastServer, NowhereToMove, SchemaPoint, WrongJobState
from roost.binding.drain.model import DrainRequest, Job, Order, Progress, RunningJob, job_of
from roost.binding.drain.plan import check_answer, emptiest, make_plan
from roost.binding.drain.standing import Standing
from roost.core.errors import InvalidId, InvalidInput, RoostError
from roost.core.owner import Owner
from roost.servers.entity.settings import EntitySettings


def server(server_id: str, users: int = 0, version: str = "1.0", **more: Any) -> Standing:
    given: dict[str, Any] = {
        "address": ("h", 1),
        "willing": True,
        "is_closed": False,
        "capacity": 0,
        "schema": 0,
        "min_reader": 0,
    }
    return Standing(
        owner=Owner(server_id, "7"), instance_id=f"i{server_id}", version=version, users=users, **given | more
    )


def fleet(*servers: Standing) -> dict[str, Standing]:
    return {one.server_id: one for one in servers}


def running(*sources: str, state: Any = "running", to: tuple[str, ...] = (), version: str = "") -> RunningJob:
    return RunningJob("j9", "entity", tuple(Owner(one, "7") for one in sources), state, 1, to, version)


def asked(*servers: str, **more: Any) -> DrainRequest:
    return DrainRequest(servers=list(servers), **more)


def test_a_plan_says_how_many_where_to_and_how_long() -> None:
    plan = make_plan(
        asked("501", rate=50),
        fleet(
            server("501", 100),
            server("502", 40, "2.0"),
            server("503", 0, "2.0"),
            server("504", willing=False),
        ),
        [],
    )
    assert (plan.users, plan.seconds, plan.seats, plan.notes) == (100, 2.0, None, [])
    assert [(one.server_id, one.moves) for one in plan.sources] == [("501", 100)]
    assert {one.server_id: one.moves for one in plan.targets} == {"502": 30, "503": 70}


def test_two_sources_empty_side_by_side() -> None:
    plan = make_plan(
        asked("501", "502", rate=10), fleet(server("501", 100), server("502", 50), server("503")), []
    )
    assert (plan.users, plan.seconds) == (150, 10.0)


def test_too_few_seats_are_named() -> None:
    plan = make_plan(asked("501"), fleet(server("501", 100), server("502", 5, capacity=45)), [])
    assert plan.seats == 40
    assert plan.notes == ["60 of 100 users have no seat yet: they wait until there is room"]
    assert plan.targets[0].moves == 40


def test_the_point_of_no_return_is_named() -> None:
    servers = fleet(server("501", 5, schema=1, min_reader=1), server("502", 0, "2.0", schema=2, min_reader=2))
    plan = make_plan(asked("501"), servers, [])
    assert "cannot go back to 501" in plan.schema_point
    assert plan.notes[0].endswith(plan.schema_point)
    both = fleet(server("501", 5, schema=1, min_reader=1), server("502", 0, "2.0", schema=2, min_reader=1))
    assert make_plan(asked("501"), both, []).schema_point == ""
    unknown = fleet(server("501", 5), server("502", 0, "2.0", schema=2, min_reader=2))
    assert make_plan(asked("501"), unknown, []).schema_point == ""


@pytest.mark.parametrize(
    ("request_", "servers", "jobs", "error", "says"),
    [
        (asked(), fleet(), [], InvalidInput, "no server is named"),
        (asked("501", "501"), fleet(server("501")), [], InvalidInput, "twice"),
        (asked("5{1"), fleet(), [], InvalidId, "holds"),
        (asked("501", to=["501"]), fleet(server("501")), [], InvalidInput, "at once"),
        (asked("501", rate=-1), fleet(server("501")), [], InvalidInput, "rate is -1"),
        (asked("501", canary=101), fleet(server("501")), [], InvalidInput, "canary is 101"),
        (asked("501", emptiest=1), fleet(server("501")), [], InvalidInput, "where no server is named"),
        (asked(kind="rebalance", emptiest=1), fleet(), [], InvalidInput, "where no server is named"),
        (asked(emptiest=65), fleet(), [], InvalidInput, "emptiest is 65"),
        (asked("501", max_block_ms=-1), fleet(server("501")), [], InvalidInput, "maxBlockMs is -1"),
        (asked("501", deadline_s=-1), fleet(server("501")), [], InvalidInput, "deadlineSeconds is -1"),
        (asked("501"), fleet(server("502")), [], UnknownHolder, "no server 501"),
        (asked("501", to=["503"]), fleet(server("501"), server("502")), [], UnknownHolder, "no server 503"),
        (asked("501"), fleet(server("501")), [], NowhereToMove, "no other server"),
        (asked("501", version="2.0"), fleet(server("501"), server("502")), [], NowhereToMove, "version 2.0"),
        (
            asked("501", to=["502"]),
            fleet(server("501"), server("502", willing=False)),
            [],
            NowhereToMove,
            "502 takes no users",
        ),
        (asked("501"), fleet(server("501"), server("502")), [running("502")], NowhereToMove, "no other"),
        (
            asked("501"),
            fleet(server("501", 3), server("502", 4, willing=False), server("503", 0, "2.0")),
            [],
            LastServer,
            "last server of version 1.0 that takes users, and 502 (4 users)",
        ),
        (
            asked("503"),
            fleet(server("501", 3), server("502", 0), server("503")),
            [running("501", to=("503",))],
            LastServer,
            "the drain j9 moves its users to 503",
        ),
        (
            asked("503"),
            fleet(server("501", 3), server("502", 0), server("503", 0, "2.0")),
            [running("501", version="2.0")],
            LastServer,
            "to version 2.0",
        ),
        (
            asked("502"),
            fleet(server("501", 0, schema=1, min_reader=1), server("502", 3, "2.0", schema=2, min_reader=2)),
            [],
            SchemaPoint,
            "from schema 2 on, and the others read up to 1",
        ),
        (
            asked(kind="rebalance"),
            fleet(server("501", 10), server("502", 10)),
            [],
            NowhereToMove,
            "about as many",
        ),
    ],
)
def test_what_is_refused(
    request_: DrainRequest,
    servers: dict[str, Standing],
    jobs: list[RunningJob],
    error: type[RoostError],
    says: str,
) -> None:
    with pytest.raises(error) as refused:
        make_plan(request_, servers, jobs)
    assert says in refused.value.message


def test_the_last_of_a_version_may_go_when_the_others_of_it_go_too() -> None:
    servers = fleet(server("501", 3), server("502", 4, willing=False), server("503", 0, "2.0"))
    assert make_plan(asked("501", "502"), servers, []).users == 7
    assert make_plan(asked("501"), servers, [running("502")]).users == 3


def test_a_job_that_moves_nobody_any_more_needs_no_server() -> None:
    servers = fleet(server("501"), server("502"), server("503"))
    assert make_plan(asked("503"), servers, [running("501", state="reconciling", to=("503",))]).users == 0


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.sampled_from(["1", "2"]), st.integers(0, 400)),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 200),
)
def test_a_rebalance_evens_out_within_its_budget(rows: list[tuple[int, str, int]], budget: int) -> None:
    servers = fleet(
        *(
            server(f"s{number}", users, version, capacity=max(users, capacity) if capacity else 0)
            for number, (users, version, capacity) in enumerate(rows)
        )
    )
    try:
        plan = make_plan(asked(kind="rebalance", users=budget), servers, [])
    except NowhereToMove:
        return
    sources = {one.server_id for one in plan.sources}
    assert not sources & {one.server_id for one in plan.targets}
    assert plan.users == sum(one.moves for one in plan.sources)
    assert 0 < plan.users <= (budget or 10**9)
    assert all(0 < one.moves <= one.users for one in plan.sources)
    assert sum(one.moves for one in plan.targets) <= plan.users
    versions = {one.version for one in plan.targets}
    assert all(one.version in versions for one in plan.sources), "users stay with their version"


@given(
    st.integers(0, 5000),
    st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900)), min_size=1, max_size=6),
)
def test_a_plan_never_overfills_a_target(users: int, rows: list[tuple[int, int]]) -> None:
    targets = [server(f"t{number}", held, capacity=seats) for number, (held, seats) in enumerate(rows)]
    plan = make_plan(asked("501"), fleet(server("501", users), *targets), [])
    for one in plan.targets:
        assert one.moves == 0 or not one.capacity or one.users + one.moves <= one.capacity
    planned = sum(one.moves for one in plan.targets)
    assert planned == (users if plan.seats is None else min(users, plan.seats))


def test_the_emptiest_go_first_when_fewer_are_needed() -> None:
    servers = fleet(server("501", 9), server("502", 1), server("503", 5), server("504", 0, willing=False))
    assert emptiest(servers, 2) == ["502", "503"]
    assert emptiest(servers, 1, {"502"}) == ["503"]
    with pytest.raises(NowhereToMove, match="3 servers are to be emptied, and only 2 take users"):
        emptiest(servers, 3, {"501"})


def test_a_plan_says_until_when_there_is_somewhere_to_go_back_to() -> None:
    servers = fleet(server("501", 9), server("502", 1), server("503", 0))
    told = make_plan(asked("501", "502"), servers, []).rollback_until
    assert told.startswith("until the end of 501, 502: ")
    assert f"for {EntitySettings().retire_quiet_seconds} s" in told
    assert make_plan(asked(kind="rebalance"), servers, []).rollback_until == "as long as the servers live"


def job(*sources: str, kind: Any = "drain", state: Any = "running") -> Job:
    lives = dict.fromkeys(sources, "7")
    order = Order(
        id="j9",
        type="entity",
        kind=kind,
        sources=list(sources),
        lives=lives,
        to=[],
        version="",
        rate=100,
        canary=0,
        max_block_ms=500,
        deadline_s=10.0,
        quota={},
        by="",
    )
    return job_of(order, Progress(), state, "", 1, 0)


@pytest.mark.parametrize(
    ("has", "wanted"),
    [
        (job("501", "502"), asked("502")),
        (job("501", "502"), asked("502", "501")),
        (job("501", state="paused"), asked("501")),
        (job("501", "502"), asked(emptiest=2)),
        (job("501", kind="rebalance"), asked("501", "502", kind="rebalance")),
    ],
)
def test_a_job_that_does_what_is_asked_for_is_the_answer(has: Job, wanted: DrainRequest) -> None:
    check_answer(has, wanted, fleet(server("501"), server("502")))


@pytest.mark.parametrize(
    ("has", "wanted", "says"),
    [
        (job("501", kind="rebalance"), asked("501"), "the rebalance j9 moves users of 501"),
        (job("501"), asked("501", kind="rebalance"), "the drain j9 moves users of 501"),
        (job("501", state="rolling-back"), asked("501"), "the drain j9 of 501 is being rolled back"),
        (job("501", state="rolling-back"), asked(emptiest=1), "the drain j9 of 501 is being rolled back"),
        (job("501", state="cancelled"), asked("501"), "the drain j9 is ending"),
        (job("502", "503"), asked("501", "502"), "the drain j9 empties 502, and not 501"),
        (job("502"), asked(emptiest=3), "the drain j9 empties 502, and not 3 servers"),
        (job("504"), asked("504"), "the drain j9 empties an earlier 504, which has ended"),
    ],
)
def test_a_job_that_does_not_is_in_the_way(has: Job, wanted: DrainRequest, says: str) -> None:
    another_life = server("504")._replace(owner=Owner("504", "8"))
    with pytest.raises(WrongJobState) as refused:
        check_answer(has, wanted, fleet(server("501"), server("502"), another_life))
    assert (refused.value.message, bool(refused.value.hint)) == (says, True)


def test_a_drained_server_that_registered_again_by_itself_is_the_one_that_is_drained() -> None:
    frozen = Override(drain=True, drain_life="8")
    back = server("501", override=frozen)._replace(owner=Owner("501", "8"))
    check_answer(job("501"), asked("501"), fleet(back))
