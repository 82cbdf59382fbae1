"""docs/metrics.md is made from the source, and is the list of metrics that others may rely on."""

from __future__ import annotations

from roost.web.catalogue import declared, document
from tests.architecture.source import ROOT

PERSONAL = frozenset(
    {"user", "userId", "user_id", "account", "symbol", "ticket", "ip", "address", "instance"}
)


def test_the_list_of_metrics_is_fresh() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert text == document(), "run: .venv/bin/python -m roost.web.catalogue > docs/metrics.md"


def test_every_metric_is_declared_once() -> None:
    names = [one.name for one in declared()]
    assert len(names) == len(set(names))


def test_the_documented_names_are_there() -> None:
    """Document 002, section 5.1."""
    kinds = {one.name: one.kind for one in declared()}
    assert {
        "queue_waiting_size": "gauge",
        "queue_entry_throughput": "counter",
        "ticket_issued_count": "counter",
        "ticket_expired_count": "counter",
        "gameserver_client_count": "gauge",
        "redis_command_latency": "histogram",
    }.items() <= kinds.items()


def test_no_label_tells_of_a_person_or_grows_with_the_users() -> None:
    assert [one.name for one in declared() if PERSONAL & set(one.labels)] == []


def test_numbers_of_the_store_are_told_apart_from_those_of_a_process() -> None:
    adds = {one.name: one.adds for one in declared()}
    assert adds["queue_waiting_size"] == adds["ticket_issued_count"] == adds["roost_bindings"] == "max"
    assert adds["queue_entry_throughput"] == adds["redis_command_latency"] == "sum"
    assert adds["gameserver_client_count"] == "one"
