"""What the metrics page shows of the audit log."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from roost.audit.writing import AuditWriter


class AuditMetrics:
    def __init__(self, writer: AuditWriter) -> None:
        self._writer = writer

    def collect(self) -> Iterator[Metric]:
        acts = CounterMetricFamily(
            "roost_audit_acts", "Acts of operators by what became of their entry", labels=["result"]
        )
        for result, count in self._writer.counts.items():
            acts.add_metric([result], count)
        yield acts
        waiting = GaugeMetricFamily("roost_audit_waiting", "Acts that wait for the store to keep them")
        waiting.add_metric([], self._writer.waiting)
        yield waiting
