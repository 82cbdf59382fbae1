"""What the metrics page shows of alerts."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric

from roost.alerts.notifier import Notifier


class AlertMetrics:
    def __init__(self, notifier: Notifier) -> None:
        self._notifier = notifier

    def collect(self) -> Iterator[Metric]:
        alerts = CounterMetricFamily(
            "roost_alerts", "Alerts by what became of them", labels=["webhook", "outcome"]
        )
        counts = self._notifier.counts
        for outcome in ("sent", "failed", "dropped", "elsewhere"):
            for webhook, count in getattr(counts, outcome).items():
                alerts.add_metric([webhook, outcome], count)
        yield alerts
