"""The numbers of drains, as a manager shows them."""

from __future__ import annotations

from roost.testing.waiting import eventually
from tests.store.drain.town import Town


def samples(town: Town) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for metric in town.drains.metrics.collect()
        for sample in metric.samples
    }


async def test_jobs_users_rate_and_pauses_are_shown(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann", "bob")
    town.lead()
    job = await town.becomes(await town.start("501"), "done", over=True)
    await town.drains.metrics.refresh()

    shown = samples(town)

    assert shown["roost_drain_leading",] == 1
    assert shown["roost_drain_jobs", "running"] == 0
    assert shown["roost_drain_users_total", job.id, "moved"] == 2
    assert shown["roost_drain_pause_seconds_count", job.id] == 2
    assert shown["roost_drain_pause_seconds_sum", job.id] == 0.008
    assert shown["roost_drain_pause_seconds_bucket", job.id, "0.005"] == 2
    assert shown["roost_drain_pause_seconds_bucket", job.id, "0.003"] == 0


async def test_what_is_running_has_a_rate(town: Town) -> None:
    old, _ = await town.open("501"), await town.open("502")
    await town.settle(old, "ann")
    old.gate.clear()
    town.lead()
    job = await town.start("501", rate=50)
    await eventually(lambda: bool(old.at_once), "it moves")
    await town.drains.metrics.refresh()

    shown = samples(town)
    old.gate.set()

    assert shown["roost_drain_jobs", "running"] == 1
    assert shown["roost_drain_rate", job.id] == 50
