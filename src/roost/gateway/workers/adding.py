"""The metrics pages of several processes as one page. Pure.

The rule of each metric is the one that the catalogue has for Prometheus' own queries: what a process counted
itself is added, a number of the store is shown once, and the state of a process gets the label `worker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from prometheus_client.utils import floatToGoString

from roost.web.catalogue import Adds, declared

INFO = "_info"
"""What ends so says what a process is: the same of all workers, and once, so that queries can join it."""


@dataclass(slots=True)
class Family:
    """One metric of a page: its two lines of comment, and its values by series, as the page writes them."""

    kind: str
    comments: tuple[str, ...] = ()
    samples: dict[str, float] = field(default_factory=dict)


Page = dict[str, Family]


def rules() -> Mapping[str, Adds]:
    """How each metric of ours adds up, by name. It reads the source: ask once."""
    return {one.name: one.adds for one in declared()}


def read_page(text: str) -> Page:
    page: Page = {}
    family, comments = Family("untyped"), list[str]()
    for line in text.splitlines():
        if line.startswith("#"):
            comments.append(line)
            if line.startswith("# TYPE "):
                _, _, name, kind = line.split(" ", 3)
                family, comments = page.setdefault(name, Family(kind, tuple(comments))), []
        elif line:
            series, _, value = line.rpartition(" ")
            family.samples[series] = float(value)
    return page


def write_page(page: Page) -> str:
    lines: list[str] = []
    for family in page.values():
        lines += family.comments
        lines += [f"{series} {_written(value)}" for series, value in family.samples.items()]
    return "\n".join([*lines, ""])


def added(pages: Mapping[int, Page], former: Page, adds: Mapping[str, Adds]) -> Page:
    """One page of all workers; `former`: what those counted that are no more."""
    whole: Page = {}
    for number, page in pages.items():
        for name, family in page.items():
            into = whole.setdefault(name, Family(family.kind, family.comments))
            rule = _rule(name, family.kind, adds)
            if rule == "one":
                into.samples |= {_of_worker(series, number): v for series, v in family.samples.items()}
            else:
                _put(into, family, max if rule == "max" else _sum)
    for name, family in former.items():
        _put(whole.setdefault(name, Family(family.kind, family.comments)), family, _sum)
    return whole


def counted(pages: Iterable[Page], adds: Mapping[str, Adds]) -> Page:
    """What must not be forgotten of processes that are gone: else a sum would fall, and a rate be wrong."""
    kept: Page = {}
    for page in pages:
        for name, family in page.items():
            if _rule(name, family.kind, adds) == "sum":
                _put(kept.setdefault(name, Family(family.kind, family.comments)), family, _sum)
    return kept


def _rule(name: str, kind: str, adds: Mapping[str, Adds]) -> Adds:
    if name.endswith(INFO):
        return "max"
    return adds.get(name, "one" if kind == "gauge" else "sum")


def _put(into: Family, family: Family, join: Callable[[float, float], float]) -> None:
    for series, value in family.samples.items():
        before = into.samples.get(series)
        into.samples[series] = value if before is None else join(before, value)


def _written(value: float) -> str:
    return str(floatToGoString(value))  # type: ignore[no-untyped-call]


def _sum(one: float, other: float) -> float:
    return one + other


def _of_worker(series: str, number: int) -> str:
    """The series with the worker's number as its last label."""
    if series.endswith("}"):
        return f'{series[:-1]},worker="{number}"}}'
    return f'{series}{{worker="{number}"}}'
