"""Every metric, read from the source, and `docs/metrics.md` made of them.

A metric is declared where it is made: a call that names it, says what it means, and lists its labels. Numbers
of the store, which every gateway and manager shows alike, are made in functions named `_store_…`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

Kind = Literal["counter", "gauge", "histogram", "summary"]
Adds = Literal["sum", "max", "one"]

PACKAGE = Path(__file__).parent.parent
MAKERS: dict[str, Kind] = {
    "CounterMetricFamily": "counter",
    "GaugeMetricFamily": "gauge",
    "HistogramMetricFamily": "histogram",
    "SummaryMetricFamily": "summary",
    "counter": "counter",
    "labelled": "counter",
    "gauge": "gauge",
    "_counter": "counter",
    "_gauge": "gauge",
    "_summary": "summary",
}
MAKES_METRICS = re.compile(r"^from (prometheus_client|roost\.web\.metrics)\b", re.MULTILINE)
OF_STORE = "_store_"
WORLD = "waitingroom"
"""Its helpers `_gauge`, `_counter` and `_summary` label by world."""

GATEWAYS = "gateway, manager"
HTTP = "roost_http_"
SHOWN_BY = (
    ("servers/gate/", "gate"),
    ("servers/entity/", "entity"),
    ("servers/orders/", "orders"),
    ("servers/dns/", "dns"),
    ("forward/", "forward"),
    ("servers/", "gameserver"),
    ("web/metrics.py", "all"),
    ("store/", "all"),
    ("gateway/workers/", "gateway"),
    ("", GATEWAYS),
)
"""Where it is made → which roles show it; the first that fits."""

ADDS_UP = {"sum": "sum", "max": "max", "one": "of each process"}


@dataclass(frozen=True, slots=True, order=True)
class Declared:
    """One metric as its source declares it."""

    name: str
    """As queries name it: a counter with its `_total`, a histogram without `_bucket`."""
    kind: Kind
    labels: tuple[str, ...]
    help: str
    roles: str
    adds: Adds
    """How the pages of several processes make one number."""

    @property
    def samples(self) -> tuple[str, ...]:
        """The names that stand on a page."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{part}" for part in ("bucket", "sum", "count"))
        return tuple(f"{self.name}_{p}" for p in ("sum", "count")) if self.kind == "summary" else (self.name,)


@cache
def declared() -> tuple[Declared, ...]:
    """All of them, by name."""
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    trees = {
        path: ast.parse(text)
        for path, text in texts.items()
        if MAKES_METRICS.search(text) and path != Path(__file__)
    }
    exact = frozenset(name for tree in trees.values() for name in _exact_names(tree))
    return tuple(sorted({one for path, tree in trees.items() for one in _in_file(path, tree, exact)}))


def _exact_names(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and _called(node.targets[0]) == "EXACT_NAMES":
            yield from ast.literal_eval(node.value)


def _in_file(path: Path, tree: ast.Module, exact: frozenset[str]) -> Iterator[Declared]:
    where = path.relative_to(PACKAGE).as_posix()
    roles = next(roles for start, roles in SHOWN_BY if where.startswith(start))
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            texts = dict(_texts(function))
            for node in ast.walk(function):
                if (made := _made(node, texts)) is not None:
                    name, kind, help_, labels = made
                    if not labels and where.startswith(WORLD):
                        labels = _labels_of_entries(name)
                    full = f"{name}_total" if kind == "counter" and name not in exact else name
                    adds = _adds(kind, is_of_store=function.name.startswith(OF_STORE))
                    shown_by = GATEWAYS if name.startswith(HTTP) else roles
                    yield Declared(full, kind, labels, help_, shown_by, adds)


def _labels_of_entries(name: str) -> tuple[str, ...]:
    return ("world", "outcome") if name == "queue_entry_throughput" else ("world",)


def _adds(kind: Kind, *, is_of_store: bool) -> Adds:
    if is_of_store:
        return "max"
    return "one" if kind == "gauge" else "sum"


def _made(node: ast.AST, texts: dict[str, str]) -> tuple[str, Kind, str, tuple[str, ...]] | None:
    """Name, kind, meaning and labels, if the node makes a metric by name."""
    if not isinstance(node, ast.Call) or len(node.args) < 2:
        return None
    maker, name = _called(node.func), _text(node.args[0], {})
    kind = MAKERS.get(maker)
    if maker == "Metric" and len(node.args) > 2 and _text(node.args[2], {}) == "counter":
        kind = "counter"
    help_ = _text(node.args[1], texts)
    if kind is None or not name or not help_:
        return None
    given = [keyword.value for keyword in node.keywords if keyword.arg == "labels"] or node.args[2:3]
    return name, kind, help_, _literals(given[0]) if given and maker != "Metric" else ()


def _literals(node: ast.expr) -> tuple[str, ...]:
    """The label, or labels, that a literal names."""
    if isinstance(node, ast.List | ast.Tuple):
        return tuple(text for one in node.elts if (text := _text(one, {})))
    text = _text(node, {})
    return (text,) if text else ()


def _texts(function: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    """Local names that stand for a text."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and (text := _text(node.value, {})):
            yield _called(node.targets[0]), text


def _text(node: ast.expr, texts: dict[str, str]) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return texts.get(node.id, "") if isinstance(node, ast.Name) else ""


def _called(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


HEAD = """# Metrics

Every process shows its own page at `/metrics`: a gateway on its port (8400), a manager on 9400 and a
forwarder on 9460, which have no other, servers and `roost dns` on the port 1000 above their own. Outside
profile `dev` a token is needed: `ROOST_READ_TOKEN` where it is set; a gateway or manager also takes any that
may `read`, the others the one that they were started with. `GET /sd/v1/prometheus` names all servers to
Prometheus ([deploy/prometheus](../deploy/prometheus/prometheus.yml)); gateways, managers, `roost dns` and
`roost forward` register nowhere and are listed by address. No user, account, symbol or ticket is ever a
label.

Made from the source by `python -m roost.web.catalogue > docs/metrics.md`.

## How several processes add up

There is no page of pages: Prometheus scrapes each process, and a query puts them together. The last column of
the table says how. Only the workers of one `roost gateway --workers N` share a page, as they share a port: it
shows what the last column says of them, with the label `worker` on what is of each process. What a worker
counted that has ended stays in the sums, but for its last five seconds, so no counter falls.

- **sum**: what this process counted itself. `sum(rate(…[5m]))` over all of them is the whole, however many
  gateways or servers there are.
- **max**: a number of the store, which every gateway and manager shows alike, at most 15 s old. Adding them
  would count it once for each process: `max by (world) (queue_waiting_size)`, and for a counter
  `max by (world) (rate(ticket_issued_count[5m]))`.
- **of each process**: its own state. Add where the whole is meant (`sum(gameserver_client_count)`), else look
  at each (`roost_store_up == 0`).

The role of a process is in `roost_info`, so failures of loops by role are

    sum by (role) (rate(roost_loop_failures_total[5m]) * on (instance) group_left (role) roost_info)

and the event-loop lag by role, at the 99th percentile,

    histogram_quantile(0.99, sum by (le, role) (
      rate(roost_event_loop_lag_seconds_bucket[5m]) * on (instance) group_left (role) roost_info))

It is measured where loops pause anyway; a role of which none does has a loop for it. `redis_command_latency`
is a histogram for each script, seen by the caller: from the call to the reply, the wait for the connection
included. `command` is the script, and unique only together with `capability`. The label `job` has the last
twenty drain jobs.

Beside the table each page has the `process_…` and `python_info` of the Prometheus client, and
`/sd/v1/prometheus/performance` shows as `roost_instance_<field>` what instances report of themselves, at most
32 fields.

| Metric | Type | Labels | Meaning | Shown by | Together |
|---|---|---|---|---|---|
"""


def document() -> str:
    """The text of docs/metrics.md."""
    rows = [
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.help} | "
        f"{one.roles} | {ADDS_UP[one.adds]} |"
        for one in declared()
    ]
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(document(), end="")
