"""Dashboards, alert rules and Prometheus' configuration name only what exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.settings import Settings
from roost.web.catalogue import declared
from roost.web.ops import OPS_PORT_ABOVE

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "rules.yml"
BOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))

FOREIGN = frozenset({"up", "process_cpu_seconds_total", "process_resident_memory_bytes"})
"""Of Prometheus itself and of its client library."""
WORDS = frozenset(
    {"by", "on", "unless", "and", "or", "sum", "max", "min", "rate", "increase", "count", "topk"}
    | {"histogram_quantile", "group_left"}
)
LABELS = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\b(?:by|on|group_left)\s*\([^)]*\)")
NAME = re.compile(r"\b[a-z_][a-z0-9_]*\b")


def metrics_in(query: str) -> set[str]:
    return set(NAME.findall(LABELS.sub(" ", query))) - WORDS


def queries_of(board: Path) -> Iterator[str]:
    content = json.loads(board.read_text(encoding="utf-8"))
    for panel in content["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def rule_queries() -> list[str]:
    lines = RULES.read_text(encoding="utf-8").splitlines()
    found = [line.partition("expr: ")[2] for line in lines if "expr: " in line]
    return [json.loads(one) if one.startswith('"') else one for one in found]


KNOWN = FOREIGN | {sample for one in declared() for sample in one.samples}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.stem)
def test_every_metric_of_a_dashboard_exists(board: Path) -> None:
    assert {name for query in queries_of(board) for name in metrics_in(query)} <= KNOWN


def test_every_metric_of_an_alert_exists() -> None:
    queries = rule_queries()
    assert len(queries) > 20
    assert {name for query in queries for name in metrics_in(query)} <= KNOWN


def test_a_metric_that_does_not_exist_would_be_found() -> None:
    query = 'sum by (le) (rate(no_such_bucket{job=~"a|b"}[5m]) * on (x) group_left (role) roost_info)'
    assert metrics_in(query) - KNOWN == {"no_such_bucket"}


OF_EVERY_SCRAPE = frozenset({"instance", "job", "le", "datasource"})
SCRAPES = {
    name: DEPLOY / path
    for name, path in {
        "prometheus": "prometheus/prometheus.yml",
        "compose": "compose/prometheus.yml",
        "collector": "otel/collector.yaml",
        "kubernetes": "kubernetes/components/monitoring/servicemonitor.yaml",
    }.items()
}
GROUPED = re.compile(r"\b(?:by|on|group_left)\s*\(([^)]*)\)")
SHOWN = re.compile(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}")


def labels_in(*texts: str) -> set[str]:
    grouped = {name.strip() for text in texts for found in GROUPED.findall(text) for name in found.split(",")}
    return (grouped | {name for text in texts for name in SHOWN.findall(text)}) - {""}


def labels_of(query: str) -> set[str]:
    """Those that the metrics of a query have by themselves."""
    names = metrics_in(query)
    return {label for one in declared() if names & {*one.samples} for label in one.labels}


def named_by(scrape: str) -> set[str]:
    """Labels that a scrape configuration gives to the series of servers."""
    text = SCRAPES[scrape].read_text(encoding="utf-8")
    return set(re.findall(r"target_?[lL]abel: (\w+)", text))


def queries_with_legends() -> Iterator[tuple[str, str]]:
    for board in BOARDS:
        for panel in json.loads(board.read_text(encoding="utf-8"))["panels"]:
            yield from ((target["expr"], target.get("legendFormat", "")) for target in panel["targets"])
    for block in re.split(r"- alert: ", RULES.read_text(encoding="utf-8"))[1:]:
        (query,) = re.findall(r"expr: (.*)", block)
        yield (
            (json.loads(query) if query.startswith('"') else query),
            "".join(re.findall(r"summary: .*", block)),
        )


@pytest.mark.parametrize("scrape", SCRAPES)
def test_every_label_by_which_boards_and_alerts_group_is_on_the_series(scrape: str) -> None:
    unknown = {
        (query, label)
        for query, legend in queries_with_legends()
        for label in labels_in(query, legend) - labels_of(query) - OF_EVERY_SCRAPE - named_by(scrape)
    }
    assert unknown == set()


def test_a_label_that_no_series_has_would_be_found() -> None:
    query, legend = "max by (world, nobody) (queue_waiting_size)", "{{world}} {{nothing}}"
    assert labels_in(query, legend) - labels_of(query) == {"nobody", "nothing"}


def test_no_metric_has_a_label_that_prometheus_sets_itself() -> None:
    """It would be renamed to `exported_job`, and no query find it."""
    assert {one.name for one in declared() if {"job", "instance"} & {*one.labels}} == set()


def test_the_four_panels_of_document_002_are_on_the_first_board() -> None:
    content = json.loads((DEPLOY / "grafana" / "dashboards" / "roost-overview.json").read_text())
    panels = {panel["title"]: panel for panel in content["panels"]}
    wanted = ("Waiting Queue Trend", "Ticket Issue Rate", "WebSocket Sessions", "Redis Latency Heatmap")
    assert list(panels)[:4] == list(wanted)
    sessions = [target["expr"] for target in panels["WebSocket Sessions"]["targets"]]
    assert any("roost_gameserver_idle_disconnects_total" in query for query in sessions)
    quantiles = [target["legendFormat"] for target in panels["Redis Latency P50–P99.9"]["targets"]]
    assert quantiles == ["P50", "P90", "P99", "P99.9"]


def test_there_is_a_board_for_each_capability_and_no_two_share_an_id() -> None:
    contents: list[dict[str, Any]] = [json.loads(board.read_text(encoding="utf-8")) for board in BOARDS]
    assert {one["uid"] for one in contents} >= {
        f"roost-{name}" for name in ("overview", "waitingroom", "discovery", "bindings", "orders", "store")
    }
    assert len({one["uid"] for one in contents}) == len(contents)
    for one in contents:
        assert len({panel["id"] for panel in one["panels"]}) == len(one["panels"])


def test_every_alert_says_what_to_do() -> None:
    text = RULES.read_text(encoding="utf-8")
    assert text.count("- alert: ") == text.count("runbook: ") == text.count("severity: ")


def promtool(*args: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool here (Debian: prometheus)")
    told = subprocess.run(["promtool", *args], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stdout + told.stderr


def test_prometheus_takes_the_rules() -> None:
    promtool("check", "rules", str(RULES))


def test_prometheus_takes_the_configuration() -> None:
    promtool("check", "config", str(DEPLOY / "prometheus" / "prometheus.yml"))


@pytest.mark.parametrize("file", ["prometheus", "compose"])
def test_roles_that_register_nowhere_have_targets_to_take_out_of_their_comments(file: str) -> None:
    text = (DEPLOY / file / "prometheus.yml").read_text(encoding="utf-8")
    settings = Settings()
    for port in (settings.dns.port + OPS_PORT_ABOVE, settings.forward.port):
        assert re.search(rf"^ +# - targets: .*:{port}\"", text, re.MULTILINE), port
