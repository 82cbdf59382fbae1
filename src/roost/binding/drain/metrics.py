"""The numbers of drains for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from roost.binding.drain.model import PAUSE_MS, Job
from roost.core.errors import StoreError

if TYPE_CHECKING:
    from roost.binding.drain.jobs import Drains

AGE_S = 15.0
SHOWN = 20
"""The last jobs: what older ones moved is in the records of their own."""
STATES = ("running", "paused", "rolling-back", "reconciling")


class DrainMetrics:
    """How the last jobs are doing, the same in every process, and whether this one runs them."""

    exact_names = ()

    def __init__(self, drains: Drains) -> None:
        self._drains = drains
        self._jobs: Sequence[Job] = ()
        self._read_at = float("-inf")

    async def refresh(self) -> None:
        with suppress(StoreError):
            self._jobs = await self._drains.list(SHOWN)
            self._read_at = time.monotonic()

    def collect(self) -> Iterator[Metric]:
        leading = GaugeMetricFamily("roost_drain_leading", "Whether this process runs the drain jobs")
        leading.add_metric([], self._drains.controller.leading)
        yield leading
        if time.monotonic() - self._read_at < AGE_S:
            yield from self._store_totals()

    def _store_totals(self) -> Iterator[Metric]:
        jobs = GaugeMetricFamily("roost_drain_jobs", "Drain jobs that have not ended", labels=["state"])
        for state in STATES:
            jobs.add_metric([state], sum(one.state == state for one in self._jobs))
        yield jobs
        rate = GaugeMetricFamily("roost_drain_rate", "Users in a second that a job moves", labels=["drain"])
        users = CounterMetricFamily(
            "roost_drain_users", "Users of a job, by what became of them", labels=["drain", "outcome"]
        )
        pauses = HistogramMetricFamily(
            "roost_drain_pause_seconds", "How long the users of a job were held up", labels=["drain"]
        )
        for job in self._jobs:
            if not job.is_over:
                rate.add_metric([job.id], job.rate_now)
            for outcome in ("moved", "returned", "released", "gone", "forced", "back"):
                users.add_metric([job.id, outcome], job.counts.get(outcome, 0))
            pauses.add_metric([job.id], _buckets(job), job.pauses.total_ms / 1000)
        yield from (rate, users, pauses)


def _buckets(job: Job) -> list[tuple[str, float]]:
    seen, rows = 0, list[tuple[str, float]]()
    for bound, count in zip((*(ms / 1000 for ms in PAUSE_MS), "+Inf"), job.pauses.counts, strict=True):
        seen += count
        rows.append((str(bound), seen))
    return rows
