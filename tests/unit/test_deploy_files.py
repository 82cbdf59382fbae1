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
