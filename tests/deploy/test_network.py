"""Who may talk to whom in a cluster: every call that the code makes, and no other."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.manifests import (
    KUBERNETES,
    OVERLAYS,
    ROLES,
    Object,
    all_faults,
    named,
    objects_of,
    ports_of,
    rendered,
)

WIRE = {role: ports_of(role)["wire"] for role in ("entity", "orders")}
PAGES = {role: ports_of(role).get("metrics", ports_of(role).get("http", 0)) for role in ROLES}
PLAYERS = {"gate": ports_of("gate")["ws"], "gameserver": ports_of("gameserver")["ws"]}
CHECKED = (*PLAYERS.items(), ("entity", PAGES["entity"]), ("orders", PAGES["orders"]))
"""Where the health checker asks, by what each server declares (`HealthCheck` of its registration)."""
CALLS = {
    *(("gateway", role, port) for role, port in CHECKED),
    *(("manager", role, port) for role, port in CHECKED),
    ("gateway", "orders", WIRE["orders"]),  # what operators ask of the owner of a shard
    ("gateway", "entity", WIRE["entity"]),  # who cannot be moved, for the plan of a drain
    ("manager", "entity", WIRE["entity"]),  # moves of a drain
    ("gate", "entity", WIRE["entity"]),  # messages
    ("entity", "entity", WIRE["entity"]),  # a user's move
    ("entity", "orders", WIRE["orders"]),  # orders of users
    ("orders", "orders", WIRE["orders"]),  # commands that came to the wrong server
    ("entity", "gateway", PAGES["gateway"]),  # the stop hook
    ("gameserver", "gateway", PAGES["gateway"]),  # registration, tickets
}
STORE, DATABASE = (6379, 26379), (5432, 3306)
OPEN_TO_ALL = {
    *(("gateway", 8400), ("gate", 8410), ("gate", 8411), ("gameserver", 8420)),
    *(("gate", 9410), ("gameserver", 9420)),  # a network load balancer looks at the pages
}


def matches(selector: dict[str, Any], role: str) -> bool:
    labels = {"app.kubernetes.io/name": f"roost-{role}", "app.kubernetes.io/part-of": "roost"}
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        row["operator"] == "In" and labels.get(row["key"]) in row["values"]
        for row in selector.get("matchExpressions", ())
    )


def rules(objects: list[Object], role: str, way: str) -> list[dict[str, Any]]:
    policies = [one["spec"] for one in objects if one["kind"] == "NetworkPolicy"]
    mine = [spec for spec in policies if matches(spec["podSelector"], role)]
    assert any(way.capitalize() in spec["policyTypes"] for spec in mine), f"{role} is open"
    return [rule for spec in mine for rule in spec.get(way, ())]


def is_allowed(objects: list[Object], role: str, way: str, peer: str, port: int) -> bool:
    """`peer`: a role, `all` for any address, or the name of a namespace."""
    word = {"ingress": "from", "egress": "to"}[way]
    return any(
        port in (one["port"] for one in rule["ports"]) and _lets(rule.get(word), peer)
        for rule in rules(objects, role, way)
    )


def _lets(peers: list[dict[str, Any]] | None, peer: str) -> bool:
    if peers is None:
        return True
    return any(
        ("ipBlock" in one and peer == "all")
        or ("podSelector" in one and peer in ROLES and matches(one["podSelector"], peer))
        or ("namespaceSelector" in one and peer in one["namespaceSelector"]["matchLabels"].values())
        for one in peers
    )


def calls_allowed(objects: list[Object]) -> set[tuple[str, str, int]]:
    ports = sorted({port for role in ROLES for port in ports_of(role).values()})
    return {
        (caller, called, port)
        for caller in ROLES
        for called in ROLES
        for port in ports
        if is_allowed(objects, caller, "egress", called, port)
        and any(is_allowed(objects, called, "ingress", who, port) for who in (caller, "all"))
    }


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_roles_may_make_the_calls_that_the_code_makes_and_no_other(overlay: str) -> None:
    assert calls_allowed(objects_of(overlay)) == CALLS


def test_a_call_that_is_missing_or_too_many_would_be_found() -> None:
    objects = objects_of("prod")
    named(objects, "NetworkPolicy", "roost-gate")["spec"]["egress"] = []
    assert calls_allowed(objects) == CALLS - {("gate", "entity", WIRE["entity"])}
    named(objects, "NetworkPolicy", "roost-gate")["spec"]["egress"] = [{"ports": [{"port": 8440}]}]
    named(objects, "NetworkPolicy", "roost-orders")["spec"]["ingress"] = [{"ports": [{"port": 8440}]}]
    assert ("gate", "orders", 8440) in calls_allowed(objects)


def test_strangers_reach_what_players_need_and_nothing_else() -> None:
    objects = objects_of("prod")
    ports = {port for role in ROLES for port in ports_of(role).values()}
    reached = {
        (role, port) for role in ROLES for port in ports if is_allowed(objects, role, "ingress", "all", port)
    }
    assert reached == OPEN_TO_ALL


def test_prometheus_reaches_every_page_and_each_role_the_stores_that_it_uses() -> None:
    objects = objects_of("prod")
    for role in ROLES:
        pages = PAGES[role]
        assert any(is_allowed(objects, role, "ingress", who, pages) for who in ("monitoring", "all"))
        for port in STORE:
            assert is_allowed(objects, role, "egress", "", port) == (role != "gameserver")
        for port in DATABASE:
            assert is_allowed(objects, role, "egress", "", port) == (role in WIRE)
        assert is_allowed(objects, role, "egress", "kube-system", 53)


def test_webhooks_are_reached_by_those_who_alert_and_where_alerts_are_wanted_only(tmp_path: Path) -> None:
    def out(objects: list[Object]) -> set[str]:
        return {role for role in ROLES if is_allowed(objects, role, "egress", "all", 443)}

    assert out(objects_of("prod")) == set()
    shutil.copytree(KUBERNETES.parent, tmp_path / "deploy")
    prod = tmp_path / "deploy" / "kubernetes" / "overlays" / "prod"
    text = (prod / "kustomization.yaml").read_text()
    (prod / "kustomization.yaml").write_text(
        text.replace(
            "  - ../../components/keda\n", "  - ../../components/keda\n  - ../../components/alerts\n"
        )
    )
    objects = rendered(prod)
    assert out(objects) == {"gateway", "manager"}
    assert all_faults(objects) == []
    (rule,) = named(objects, "NetworkPolicy", "roost-alerts")["spec"]["egress"]
    assert "10.0.0.0/8" in rule["to"][0]["ipBlock"]["except"]
