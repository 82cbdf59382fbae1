"""A real Prometheus, with the configuration that we ship, finds a running fleet and scrapes all of it."""

from __future__ import annotations

import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from roost.testing import START_S, free_port, wait_until
from roost.web.catalogue import Declared, declared
from tests.acceptance.conftest import Home, Started, http, open_home

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"
SERVERS = {"demo-gate": 1, "demo-game": 1, "demo-entity": 2, "demo-orders": 1}
FOREIGN = ("process_", "python_")
"""What the client library adds to every page."""
SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? \S+$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')
"""The library's own parser appends _total to names that are documented without it."""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, Started]]:
    """The demo is a fleet with a server of every kind, on ports of its own."""
    with open_home(tmp_path_factory.mktemp("fleet")) as home:
        up = home.up_with_demo()
        wait_until(lambda: len(targets_of(up)) == 5, "every server", lambda: up.text, START_S)
        yield home, up


def targets_of(up: Started) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = http(f"{up.url}/sd/v1/prometheus?port=metrics").json
    return found


def test_every_page_shows_what_is_declared_and_nothing_else(fleet: tuple[Home, Started]) -> None:
    home, up = fleet
    known = {sample: one for one in declared() for sample in one.samples}
    pages = [f"{up.url}/metrics", *(f"{url}/metrics" for url in outside_discovery(home))]
    pages += [f"http://{target['targets'][0]}/metrics" for target in targets_of(up)]
    seen: set[str] = set()
    for page in pages:
        seen |= shown_well(http(page).body.decode(), known)
    missing = [one.name for one in declared() if one.name not in seen and not needs_more(one)]
    assert missing == []


def outside_discovery(home: Home) -> list[str]:
    """Roles that register nowhere, and that `roost up` does not start: where each shows its metrics."""
    ports = free_port(), free_port()
    home.start("dns", "--port", str(ports[0]))
    home.start("forward", "--to", "webhook:http://127.0.0.1:9/nobody", "--port", str(ports[1]))
    return [f"http://127.0.0.1:{ports[0] + 1000}", f"http://127.0.0.1:{ports[1]}"]


def shown_well(page: str, known: dict[str, Declared]) -> set[str]:
    """The declared metrics of a page; each sample must be one, with the labels that it declares."""
    seen = set()
    for name, labels in SAMPLE.findall(page):
        if not name.startswith(FOREIGN):
            one = known[name]
            assert set(LABEL.findall(labels)) - {"le"} == set(one.labels), name
            seen.add(one.name)
    return seen


def needs_more(one: Declared) -> bool:
    """Shown only after something happened: counters by reason, jobs, webhooks, a lease in the database; or
    where a gateway has several workers."""
    rare = (
        "roost_worker",
        "roost_drain_",
        "roost_move_phase",
        "roost_alerts",
        "roost_entity_database",
        "roost_gate_drain",
    )
    return one.name.startswith(rare) or (one.kind == "counter" and bool(one.labels))


def test_a_real_prometheus_scrapes_a_fleet_through_discovery(
    fleet: tuple[Home, Started], tmp_path: Path
) -> None:
    if shutil.which("prometheus") is None:
        pytest.skip("no prometheus here (Debian: prometheus)")
    _, up = fleet
    with running_prometheus(tmp_path, up) as url:

        def ask(query: str) -> dict[str, float]:
            answer = http(f"{url}/api/v1/query?query={urllib.parse.quote(query)}").json
            return {
                ",".join(sorted(one["metric"].values())): float(one["value"][1])
                for one in answer["data"]["result"]
            }

        wait_until(
            lambda: ask('sum by (type) (up{job="roost-servers"})') == SERVERS,
            "every server to be scraped",
            lambda: http(f"{url}/api/v1/targets").body.decode()[:3000],
            START_S,
        )
        for job in ("roost", "roost-performance"):
            wait_until(partial(is_up, ask, job), job)
        assert ask("max by (world) (queue_capacity)")["demo"] == 12
        roles = {"gateway+manager", "gate", "gameserver", "entity", "orders"}
        assert set(ask("count by (role) (roost_info)")) == roles
        lag = (
            "sum by (role) (roost_event_loop_lag_seconds_count * on (instance) group_left (role) roost_info)"
        )
        assert set(ask(lag)) == roles
        assert ask("sum by (command) (redis_command_latency_count)")["admit"] > 0
        assert ask("sum by (server) (roost_instance_capacity)")["demo-game"] == 12
        groups = http(f"{url}/api/v1/rules").json["data"]["groups"]
        unwell = [rule for group in groups for rule in group["rules"] if rule.get("lastError")]
        assert len(groups) == 5
        assert unwell == []


def is_up(ask: Callable[[str], dict[str, float]], job: str) -> bool:
    return ask(f'sum by (job) (up{{job="{job}"}})') == {job: 1}


class running_prometheus:  # noqa: N801
    """Prometheus with our files, only with the address of this fleet and without patience."""

    def __init__(self, folder: Path, up: Started) -> None:
        self._folder = folder
        text = (PROMETHEUS / "prometheus.yml").read_text(encoding="utf-8")
        ours = up.url.removeprefix("http://")
        assert text.count("127.0.0.1:8400") == 3
        text = text.replace("127.0.0.1:8400", ours).replace("10s", "1s").replace("15s", "1s")
        (folder / "prometheus.yml").write_text(text, encoding="utf-8")
        shutil.copy(PROMETHEUS / "rules.yml", folder)
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> str:
        port = free_port()
        self._process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={self._folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ],
            text=True,
        )
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: is_ready(f"{url}/-/ready"), "Prometheus to be ready", timeout_s=START_S)
        return url

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=20)


def is_ready(url: str) -> bool:
    try:
        return http(url).status == 200
    except OSError:
        return False
