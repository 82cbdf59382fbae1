from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from roost.api.discovery import Change, HealthCheck, Instance, Probe, Status
from roost.balancing import LoadBalancer, Server
from roost.core.errors import InvalidInput
from roost.discovery.health import REGISTER_AGAIN_S, REPORTS_PER_CHECK, HealthChecker
from roost.discovery.probes import REFUSED, Prober
from roost.discovery.voting import Checkers, Finding, Vote

HTTP = HealthCheck("http", "main")
WELL, MUTE, DEAD = Probe(True, 1.0), Probe(False, 2000.0, "no answer within 2 s"), Probe(False, 0.1, REFUSED)
NOT_ASKED = Probe(False, 0.1, "127.0.0.1 is not probed", asked=False)


class Silent:
    """A discovery that says nothing by itself: the tests say it."""

    async def watch(self, type: str, group: str, /) -> AsyncIterator[Change]:  # noqa: A002
        return
        yield


class NoBallot:
    async def vote(self, checker: str, votes: Sequence[Vote], *, leave: bool = False) -> Checkers:
        raise AssertionError("the tests start no loop")


class Ward:
    """A checker and what it told."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.told: list[tuple[str, str]] = []
        self.balancer = LoadBalancer()
        self.checker = HealthChecker(
            Silent(), Prober(allow_local=True), balancer=self.balancer, clock=lambda: self.now, **options
        )
        self.checker.on_server_unhealthy(lambda server: self.told.append(("ill", server)))
        self.checker.on_server_recovered(lambda server: self.told.append(("well", server)))

    def votes(self) -> dict[str, Finding]:
        """What it would tell the others, by server."""
        assert self.checker.voting is not None
        return {vote.instance_id.removeprefix("i-"): vote.finding for vote in self.checker.voting.untold}

    def see(
        self,
        server: str,
        status: Status = "ready",
        life: str = "1",
        health: HealthCheck | None = HTTP,
        unhealthy: bool = False,
        willing: bool = False,
        type_: str = "game",
    ) -> Instance:
        """`willing`: also where it is not ready, as a suspect is in a panic of its service."""
        instance = Instance(
            type_,
            "kr-1",
            server,
            health=health,
            instance_id=f"i-{server}",
            life=life,
            status=status,
            accepting=status == "ready" or willing,
            last_heartbeat="",
            unhealthy=unhealthy,
        )
        self.balancer.register_server(Server(server, life=life))
        self.checker.hear(Change("changed", 1, "1", instance=instance))
        return instance

    def leave(self, server: str, status: str) -> None:
        self.checker.hear(
            Change("removed", 2, "2", instance_id=f"i-{server}", server_id=server, status=status)
        )


@pytest.fixture
async def ward() -> Ward:
    return Ward()


async def test_a_new_server_is_healthy_until_proven_otherwise(ward: Ward) -> None:
    ward.see("501")
    assert ward.checker.is_server_healthy("501")
    ward.see("502", status="initializing")
    assert not ward.checker.is_server_healthy("502")
    assert not ward.checker.is_server_healthy("nobody")


async def test_three_failed_probes_are_told_once_and_two_good_ones_recover(ward: Ward) -> None:
    instance = ward.see("501")
    ward.see("502")
    ward.see("503")
    for probe in (MUTE, MUTE, MUTE, MUTE, MUTE):
        ward.checker.judge(instance, probe)
    assert ward.told == [("ill", "501")]
    assert [s.server_id for s in ward.balancer.healthy_servers] == ["502", "503"]
    ward.checker.judge(instance, WELL)
    ward.checker.judge(instance, WELL)
    assert ward.told == [("ill", "501"), ("well", "501")]
    assert len(ward.balancer.healthy_servers) == 3


async def test_the_documented_fault_a_crashed_server_whose_record_is_gone_is_told_once(ward: Ward) -> None:
    ward.see("501")
    ward.leave("501", "no-response")
    ward.leave("501", "no-response")
    assert ward.told == [("ill", "501")]


async def test_a_server_that_is_suspect_first_and_gone_later_is_told_once(ward: Ward) -> None:
    ward.see("501")
    ward.see("501", status="suspect")
    ward.leave("501", "no-response")
    assert ward.told == [("ill", "501")]


async def test_a_clean_stop_is_no_illness(ward: Ward) -> None:
    ward.see("501")
    ward.leave("501", "terminated")
    assert ward.told == []


async def test_a_snapshot_without_a_server_counts_as_its_death(ward: Ward) -> None:
    ward.see("501")
    ward.checker.hear(Change("snapshot", 9, "9", instances=[]))
    assert ward.told == [("ill", "501")]


async def test_who_beats_again_recovers(ward: Ward) -> None:
    ward.see("501")
    ward.see("501", status="suspect")
    ward.see("501")
    assert ward.told == [("ill", "501"), ("well", "501")]
    assert ward.checker.is_server_healthy("501")


async def test_who_comes_back_from_the_dead_recovers_and_a_newcomer_does_not(ward: Ward) -> None:
    ward.see("501")
    ward.leave("501", "no-response")
    ward.see("501", life="2")
    ward.see("502", life="3")
    assert ward.told == [("ill", "501"), ("well", "501")]


async def test_a_new_life_that_takes_an_unhealthy_ones_place_is_its_recovery(ward: Ward) -> None:
    ward.see("501", status="suspect")
    ward.see("501", life="2")
    assert ward.told == [("ill", "501"), ("well", "501")]


async def test_the_end_of_an_earlier_life_is_not_the_end_of_the_present_one(ward: Ward) -> None:
    ward.see("501", life="2")
    ward.checker.hear(Change("removed", 2, "2", "i-501", "1", "501", "no-response"))
    assert ward.told == []
    assert ward.checker.is_server_healthy("501")


@pytest.mark.parametrize("bad", [DEAD, MUTE])
async def test_a_tcp_connect_refutes_what_tcp_probes_found_and_nothing_else(ward: Ward, bad: Probe) -> None:
    instance = ward.see("501", health=HealthCheck("tcp", "main"))
    ward.see("502")
    ward.see("503")
    for probe in (bad, bad, bad, WELL, WELL):
        ward.checker.judge(instance, probe)
    assert ward.told == [("ill", "501"), ("well", "501")]
    for _ in range(3 * REPORTS_PER_CHECK):
        ward.checker.judge(instance, WELL)
        ward.checker.report("501", ok=False)
    assert ward.told[2:] == [("ill", "501")]
    for _ in range(20):
        ward.checker.judge(instance, WELL)
    assert len(ward.told) == 3


@pytest.mark.parametrize("kind", ["tcp", "http"])
async def test_failures_count_in_a_row_only(ward: Ward, kind: Any) -> None:
    instance = ward.see("501", health=HealthCheck(kind, "main"))
    ward.see("502")
    ward.see("503")
    for probe in (MUTE, MUTE, WELL, MUTE, MUTE, WELL, DEAD, DEAD):
        ward.checker.judge(instance, probe)
    assert ward.told == []
    ward.checker.judge(instance, DEAD)
    assert ward.told == [("ill", "501")]


async def test_what_cannot_be_probed_is_no_evidence(ward: Ward) -> None:
    instance = ward.see("501")
    ward.see("502")
    ward.see("503")
    for _ in range(5):
        ward.checker.judge(instance, NOT_ASKED)
    assert ward.told == []
    for _ in range(3):
        ward.checker.judge(instance, MUTE)
    for _ in range(5):
        ward.checker.judge(instance, NOT_ASKED)
    assert ward.told == [("ill", "501")]
    row = next(row for row in ward.checker.servers() if row.server_id == "501")
    assert row.probe == NOT_ASKED, "an operator sees why"


async def test_with_a_ballot_a_checkers_finding_is_its_vote_and_discovery_tells_the_decision() -> None:
    ward = Ward(ballot=NoBallot())
    instance = ward.see("501")
    ward.see("502")
    ward.see("503")
    for _ in range(3):
        ward.checker.judge(instance, MUTE)
    assert ward.votes() == {"501": "unhealthy"}
    assert ward.told == []
    assert ward.checker.is_server_healthy("501")
    ward.see("501", status="suspect")
    assert ward.told == [("ill", "501")]
    ward.checker.judge(instance, WELL)
    ward.checker.judge(instance, WELL)
    assert ward.votes() == {"501": "healthy"}
    assert ward.told == [("ill", "501")]
    ward.see("501")
    assert ward.told == [("ill", "501"), ("well", "501")]
    assert ward.votes() == {}, "of the healthy there is nothing to say"


async def test_a_checker_that_starts_late_takes_over_what_the_others_decided() -> None:
    ward = Ward(ballot=NoBallot())
    instance = ward.see("501", status="suspect", unhealthy=True)
    assert ward.votes() == {}, "it has judged nothing yet"
    ward.checker.judge(instance, WELL)
    assert ward.votes() == {}
    ward.checker.judge(instance, WELL)
    assert ward.votes() == {"501": "healthy"}


async def test_a_checker_that_starts_late_and_finds_the_same_says_so_when_it_is_sure() -> None:
    ward = Ward(ballot=NoBallot())
    instance = ward.see("501", status="suspect", unhealthy=True)
    for _ in range(2):
        ward.checker.judge(instance, DEAD)
    assert ward.votes() == {}
    ward.checker.judge(instance, DEAD)
    assert ward.votes() == {"501": "unhealthy"}


async def test_a_late_answer_about_an_earlier_life_is_not_heard(ward: Ward) -> None:
    old = ward.see("501", life="1")
    ward.see("501", life="2")
    for _ in range(5):
        ward.checker.judge(old, DEAD)
    assert ward.told == []


async def test_soft_evidence_stops_at_half_of_the_fleet_and_hard_evidence_does_not(ward: Ward) -> None:
    fleet = [ward.see(f"50{n}") for n in range(4)]
    for instance in fleet:
        for _ in range(3):
            ward.checker.judge(instance, MUTE)
    assert len(ward.told) == 2
    for instance in fleet:
        for _ in range(3):
            ward.checker.judge(instance, DEAD)
    assert len(ward.told) == 4


async def test_failed_requests_of_callers_count_in_the_end(ward: Ward) -> None:
    ward.see("501")
    ward.see("502")
    ward.see("503")
    for _ in range(3 * REPORTS_PER_CHECK - 1):
        ward.checker.report("501", ok=False)
    assert ward.told == []
    ward.checker.report("501", ok=False)
    assert ward.told == [("ill", "501")]
    ward.checker.report("nobody", ok=False)


def _fail(server_id: str) -> None:
    raise ZeroDivisionError(server_id)


def _cancelled(server_id: str) -> None:
    raise asyncio.CancelledError(server_id)


@pytest.mark.parametrize("bad", [_fail, _cancelled])
async def test_a_callback_that_fails_does_not_silence_the_others(bad: Callable[[str], None]) -> None:
    ward = Ward()
    ward.checker.on_server_unhealthy(bad)
    heard: list[str] = []
    ward.checker.on_server_unhealthy(heard.append)
    ward.see("501")
    ward.leave("501", "no-response")
    assert heard == ["501"]


async def test_servers_of_two_types_may_bear_one_name() -> None:
    ward = Ward()
    game = ward.see("501")
    chat = Instance(
        "chat",
        "kr-1",
        "501",
        instance_id="i-chat",
        life="9",
        status="ready",
        accepting=True,
        last_heartbeat="",
    )
    ward.checker.hear(Change("added", 3, "3", instance=chat))
    ward.leave("501", "no-response")
    assert ward.told == [("ill", "501")]
    assert ward.checker.is_server_healthy("501"), "the chat server lives"
    ward.checker.judge(game, WELL)
    assert [row.type for row in ward.checker.servers()] == ["chat"]


async def test_good_reports_in_a_row_count_as_much_as_bad_ones(ward: Ward) -> None:
    ward.see("501", health=None)
    ward.see("502", health=None)
    ward.see("503", health=None)
    for _ in range(3 * REPORTS_PER_CHECK):
        ward.checker.report("501", ok=False)
    assert ward.told == [("ill", "501")]
    for _ in range(2 * REPORTS_PER_CHECK):
        ward.checker.report("501", ok=True)
    assert ward.told == [("ill", "501"), ("well", "501")]


async def test_a_late_checker_believes_a_connection_where_others_met_a_refusal() -> None:
    ward = Ward(ballot=NoBallot())
    instance = ward.see("501", status="suspect", unhealthy=True, health=HealthCheck("tcp", "main"))
    ward.checker.judge(instance, WELL)
    ward.checker.judge(instance, WELL)
    assert ward.votes() == {"501": "healthy"}


async def test_a_snapshot_taken_in_panic_is_nobodys_recovery(ward: Ward) -> None:
    ill = ward.see("501", status="suspect")
    ill.accepting = True
    ward.checker.hear(Change("snapshot", 9, "9", instances=[ill]))
    assert ward.told == [("ill", "501")]


# -- whom the balancer is told to leave out


async def test_the_balancer_is_told_what_discovery_answers_also_in_a_panic(ward: Ward) -> None:
    for server in "abcd":
        ward.see(server)
    for server in "abc":
        ward.see(server, status="suspect")
    assert ward.balancer.available == ["d"]
    for server in "abc":
        ward.see(server, status="suspect", willing=True)
    assert ward.balancer.available == ["a", "b", "c", "d"]
    assert len(ward.told) == 3, "a panic is nobody's recovery"
    ward.see("a")
    for server in "bc":
        ward.see(server, status="suspect")
    assert ward.balancer.available == ["a", "d"]


async def test_the_doubt_about_one_service_hides_no_finding_about_another(ward: Ward) -> None:
    for server in ("chat-1", "chat-2", "chat-3"):
        ward.see(server, status="suspect", type_="chat")
    bad, *_ = [ward.see(f"50{n}") for n in range(3)]
    for _ in range(3):
        ward.checker.judge(bad, DEAD)
    assert ward.balancer.available == ["501", "502"]


async def test_a_panic_overrules_what_the_checker_found_and_its_end_does_not(ward: Ward) -> None:
    bad, *_ = [ward.see(server) for server in "abc"]
    for _ in range(3):
        ward.checker.judge(bad, DEAD)
    assert ward.balancer.available == ["b", "c"]
    ward.see("a", status="suspect", willing=True)
    assert ward.balancer.available == ["a", "b", "c"]
    ward.see("a")
    assert ward.balancer.available == ["b", "c"]


async def test_what_a_checker_finds_leaves_half_of_the_servers_in_the_balancer(ward: Ward) -> None:
    """Its host may have lost the way to all of them."""
    fleet = [ward.see(f"50{n}") for n in range(4)]
    for instance in fleet:
        for _ in range(3):
            ward.checker.judge(instance, DEAD)
    assert ward.balancer.available == ["502", "503"]
    for _ in range(2):
        ward.checker.judge(fleet[0], WELL)
    ward.checker.judge(fleet[2], DEAD)
    assert ward.balancer.available == ["500", "503"]


async def test_the_only_server_is_left_out_too(ward: Ward) -> None:
    instance = ward.see("501")
    for _ in range(3):
        ward.checker.judge(instance, DEAD)
    assert ward.balancer.available == []


async def test_what_others_decided_before_it_began_is_no_finding_of_its_own(ward: Ward) -> None:
    ward.see("501", status="suspect", unhealthy=True)
    ward.see("501")
    assert ward.told == [("ill", "501"), ("well", "501")]
    assert ward.balancer.available == ["501"]


async def test_who_comes_back_under_another_instance_id_is_offered_again(ward: Ward) -> None:
    ward.see("501")
    ward.leave("501", "no-response")
    assert ward.balancer.available == []
    back = Instance(
        "game", "kr-1", "501", instance_id="i-2", life="9", status="ready", accepting=True, last_heartbeat=""
    )
    ward.checker.hear(Change("added", 3, "3", instance=back))
    assert ward.balancer.available == ["501"]


class _BadBalancer:
    def mark_server_healthy(self, server_id: str, healthy: bool = True) -> bool:
        raise ZeroDivisionError(server_id)


async def test_a_balancer_that_fails_does_not_end_the_listener() -> None:
    checker = HealthChecker(Silent(), Prober(allow_local=True), balancer=_BadBalancer())
    heard: list[str] = []
    checker.on_server_unhealthy(heard.append)
    ward = Ward()
    for server in ("501", "502"):
        checker.hear(Change("changed", 1, "1", instance=ward.see(server)))
    checker.hear(Change("removed", 2, "2", instance_id="i-501", server_id="501", status="no-response"))
    assert heard == ["501"]


async def test_a_checker_with_a_ballot_is_for_every_service() -> None:
    """It would be assigned instances that it never sees."""
    with pytest.raises(InvalidInput):
        HealthChecker(Silent(), Prober(allow_local=True), "game", ballot=NoBallot())


# -- a store that lost its memory


async def test_a_wiped_store_makes_nobody_unhealthy_who_registers_again(ward: Ward) -> None:
    ward.see("501")
    ward.see("502")
    ward.checker.hear(Change("snapshot", 0, "0", instances=[]))
    assert ward.told == []
    ward.now += REGISTER_AGAIN_S - 1
    ward.see("501", life="7")
    ward.checker.give_up_missing()
    assert ward.told == []
    ward.now += 1
    ward.checker.give_up_missing()
    assert ward.told == [("ill", "502")], "who does not come back is dead"
    assert ward.checker.is_server_healthy("501")


async def test_a_wipe_is_seen_also_where_the_new_history_is_longer_already(ward: Ward) -> None:
    ward.see("501")
    ward.see("502")
    ward.see("503")
    back = Ward().see("503", life="9")
    ward.checker.hear(Change("snapshot", 500, "500", instances=[back]))
    assert ward.told == []


async def test_a_store_that_has_its_memory_back_makes_nobody_unhealthy(ward: Ward) -> None:
    """The same lives are there as before: they have nothing to register again for."""
    there = [ward.see("501"), ward.see("502")]
    ward.checker.hear(Change("snapshot", 0, "0", instances=[]))
    ward.checker.hear(Change("snapshot", 1, "1", instances=there))
    ward.now += REGISTER_AGAIN_S + 1
    ward.checker.give_up_missing()
    assert ward.told == []
    assert ward.checker.is_server_healthy("501")


async def test_a_second_snapshot_does_not_cut_the_grace_short(ward: Ward) -> None:
    ward.see("501")
    ward.see("502")
    for revision in (0, 3):
        ward.checker.hear(Change("snapshot", revision, "0", instances=[]))
    assert ward.told == []
