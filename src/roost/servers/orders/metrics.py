"""What an order server shows on its metrics page. No symbol and no account is a label: there may be many."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from roost.lanes.clock import IdClock
from roost.lanes.index import OrderIndex
from roost.lanes.outbox import Outbox
from roost.lanes.owner import Ownership
from roost.servers.orders.host import Host
from roost.servers.orders.keeping import Keeping
from roost.web.metrics import counter, gauge, labelled


class OrderMetrics:
    def __init__(
        self,
        host: Host,
        ownership: Ownership,
        keeping: Keeping,
        index: OrderIndex,
        outbox: Outbox,
        ids: IdClock,
    ) -> None:
        self._host = host
        self._ownership = ownership
        self._keeping = keeping
        self._index = index
        self._outbox = outbox
        self._ids = ids

    def collect(self) -> Iterator[Metric]:
        host, keeping = self._host, self._keeping
        yield gauge("roost_orders_shards_owned", "Shards that this server owns", len(self._ownership.owned))
        yield counter("roost_orders_takeovers", "Shards that it took over", self._ownership.takeovers)
        faults = self._ownership.takeover_faults
        yield counter("roost_orders_takeover_faults", "Takeovers of a shard that failed", faults)
        yield from self._by_shard()
        yield from self._became()
        ways = host.dispatch.counts
        yield labelled("roost_orders_found", "How commands without a symbol found their order", "by", ways)
        lost = "Commands that were acknowledged and that the store no longer had at a takeover"
        yield counter("roost_orders_lost", lost, keeping.lost_commands)
        other = "Replays that came to another state than the former owner had"
        yield counter("roost_orders_replay_mismatches", other, keeping.mismatches)
        yield counter("roost_orders_id_clock_jumps", "Steps of the store's clock", self._ids.jumps)
        yield from self._behind()

    def _by_shard(self) -> Iterator[Metric]:
        now_ms, workers = self._ids.now_ms(time.monotonic()), self._host.executor.stats()
        depth = GaugeMetricFamily("roost_orders_depth", "Commands that wait for their turn", labels=["shard"])
        wait = GaugeMetricFamily(
            "roost_orders_wait_seconds", "How long the oldest of them has waited", labels=["shard"]
        )
        done = CounterMetricFamily(
            "roost_orders_commands", "Commands in the log since the takeover", labels=["shard"]
        )
        ahead = GaugeMetricFamily("roost_orders_id_ahead_ms", "Borrowed by order ids", labels=["shard"])
        for number, kept in sorted(self._keeping.kept.items()):
            label, shard = [str(number)], kept.shard
            depth.add_metric(label, self._host.queued(number))
            waits = (worker.oldest_wait_ms for worker in workers.of_shard(number))
            wait.add_metric(label, max(waits, default=0) / 1000)
            done.add_metric(label, shard.commits.seq - shard.commits.first_seq)
            ahead.add_metric(label, shard.ids.ahead_ms(now_ms))
        yield from (depth, wait, done, ahead)

    def _became(self) -> Iterator[Metric]:
        """received = answered + rejected + forwarded + under way: nothing is silent (G14)."""
        host = self._host
        answered = CounterMetricFamily(
            "roost_orders_answered", "Commands that were answered with a receipt", labels=["shard"]
        )
        rejected = CounterMetricFamily(
            "roost_orders_rejected",
            "Commands without a receipt, by reason; shard is empty where none here was named yet",
            labels=["shard", "reason"],
        )
        failed = CounterMetricFamily(
            "roost_orders_failed", "Commands at which the machine failed", labels=["shard"]
        )
        healed = CounterMetricFamily(
            "roost_orders_healed",
            "Times that entries which the store had lost were repeated",
            labels=["shard"],
        )
        violations = CounterMetricFamily(
            "roost_orders_order_violations", "Commands of a lane that ran out of order (0)", labels=["shard"]
        )
        for reason, count in host.intake.unplaced.items():
            rejected.add_metric(["", reason], count)
        for number, tally in sorted(host.routes.tallies.items()):
            label = str(number)
            answered.add_metric([label], tally.answered)
            failed.add_metric([label], tally.failed)
            healed.add_metric([label], tally.healed)
            violations.add_metric([label], tally.violations)
            for reason, count in tally.refused.items():
                rejected.add_metric([label, reason], count)
        yield counter("roost_orders_received", "Commands that came to this server", host.intake.received)
        yield counter(
            "roost_orders_forwarded", "Commands that were sent on to the owner", host.intake.forwarded
        )
        yield gauge("roost_orders_under_way", "Commands that are not answered yet", host.under_way)
        yield from (answered, rejected, failed, healed, violations)

    def _behind(self) -> Iterator[Metric]:
        """What is written after the answer."""
        yield gauge("roost_orders_index_waiting", "Orders that the index lacks yet", self._index.waiting)
        yield counter("roost_orders_index_dropped", "Orders that the index never got", self._index.dropped)
        yield gauge("roost_orders_outbox_waiting", "Orders that the database lacks yet", self._outbox.depth)
        refused = "Rows of orders that no database takes: dropped, and named in the log (0)"
        yield counter("roost_orders_outbox_refused", refused, self._outbox.refused)
