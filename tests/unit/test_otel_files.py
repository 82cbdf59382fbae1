"""The Collector's configuration hangs together, and its ports are those of our settings and documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from roost.tracing.settings import TracingSettings

ROOT = Path(__file__).parents[2]
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "deploy/otel/collector.yaml").read_text(encoding="utf-8"))
PROMETHEUS: dict[str, Any] = yaml.safe_load(
    (ROOT / "deploy/prometheus/prometheus.yml").read_text(encoding="utf-8")
)
PARTS = ("receivers", "processors", "exporters")


@pytest.mark.parametrize("part", PARTS)
def test_what_pipelines_name_is_defined_and_what_is_defined_is_used(part: str) -> None:
    named = {name for pipeline in CONFIG["service"]["pipelines"].values() for name in pipeline[part]}
    assert named == set(CONFIG[part])


def test_there_is_a_way_to_each_of_prometheus_loki_and_tempo() -> None:
    pipelines = CONFIG["service"]["pipelines"]
    ways = {kind: pipelines[kind]["exporters"] for kind in ("traces", "metrics", "logs")}
    assert ways == {
        "traces": ["otlp/tempo"],
        "metrics": ["prometheusremotewrite"],
        "logs": ["otlphttp/loki"],
    }


def test_spans_are_taken_where_roost_sends_them() -> None:
    taken = CONFIG["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    assert taken == urlsplit(TracingSettings().endpoint).netloc
    assert TracingSettings().endpoint in (ROOT / "docs/operations.md").read_text(encoding="utf-8")


def test_a_collector_beside_tempo_fights_over_no_port() -> None:
    own = [each["endpoint"] for each in CONFIG["receivers"]["otlp"]["protocols"].values()]
    out = [each["endpoint"] for each in CONFIG["exporters"].values()]
    assert len({*own, *out}) == len(own) + len(out)


def test_metrics_are_scraped_from_where_prometheus_scrapes_them() -> None:
    def targets(jobs: list[dict[str, Any]]) -> dict[str, list[Any]]:
        return {
            job["job_name"]: [
                *(one["targets"] for one in job.get("static_configs", ())),
                *(one["url"] for one in job.get("http_sd_configs", ())),
            ]
            for job in jobs
        }

    ours = targets(CONFIG["receivers"]["prometheus"]["config"]["scrape_configs"])
    theirs = targets(PROMETHEUS["scrape_configs"])
    assert ours.items() <= theirs.items()


def test_log_fields_are_those_that_our_logs_have() -> None:
    [parser] = CONFIG["receivers"]["filelog"]["operators"]
    trace = parser["trace"]
    assert trace["trace_id"]["parse_from"] == "attributes.trace_id"
    assert trace["span_id"]["parse_from"] == "attributes.span_id"
    assert parser["timestamp"]["parse_from"] == "attributes.time"
    assert parser["severity"]["parse_from"] == "attributes.level"
