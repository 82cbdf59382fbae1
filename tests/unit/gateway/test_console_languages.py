"""What the gateway says in English the console says in its other languages: everything that is finite."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import getsource
from pathlib import Path
from typing import get_args

import pytest

from roost.api.audit import Outcome
from roost.api.events import EVENT_SCOPES
from roost.balancing.server import Fleet, Server
from roost.binding.drain.certificate import GateReport, reconcile
from roost.binding.drain.model import DrainRequest
from roost.binding.drain.pace import Pace
from roost.binding.drain.plan import make_plan
from roost.demo.fleet import Fleet as Demo
from roost.gateway.live import fleet, sentences
from roost.gateway.routes.console import languages, read_files
from roost.lanes import committing
from roost.lanes.work import SAID
from roost.servers.orders import intake
from tests.unit.binding.drain.test_plan import server
from tests.unit.binding.drain.test_views import job

FILES = read_files()
TEXTS: dict[str, dict[str, str]] = {
    lang: json.loads(FILES[f"lang/{lang}.json"].body) for lang in languages(FILES)
}
OTHERS = sorted(TEXTS.keys() - {"en"})
BLANK = re.compile(r"\{(\w+)\}")
ERRORS = Path(__file__).parents[3] / "docs" / "errors.md"

EVENTS: dict[str, tuple[str, ...]] = {
    "discovery": get_args(fleet.InstanceEvent),
    "queue": get_args(sentences.WorldEvent),
    "binding": tuple(sentences.MOVES),
    "drain": tuple(sentences.JOBS),
    "orders": (*sentences.PLACES, *get_args(sentences.ShardEvent)),
    "audit": get_args(Outcome),
}
"""Every event that a gateway makes; those of the audit log are told by how they ended."""


@pytest.mark.parametrize("lang", OTHERS)
@pytest.mark.parametrize("scope", sorted(EVENTS))
def test_every_event_has_a_sentence_and_no_sentence_is_without_an_event(lang: str, scope: str) -> None:
    known = {name for name in TEXTS[lang] if name.startswith(f"event.{scope}.")}
    assert known == {f"event.{scope}.{event}" for event in EVENTS[scope]}


def test_these_are_the_events_of_every_scope() -> None:
    assert EVENTS.keys() == set(EVENT_SCOPES) - {"overview"}  # which is no event


def patterns(lang: str) -> list[re.Pattern[str]]:
    """As `said` of i18n.js makes them."""
    return [pattern(name.removeprefix("said.")) for name in TEXTS[lang] if name.startswith("said.")]


def pattern(saying: str) -> re.Pattern[str]:
    parts = BLANK.split(saying)
    found = (r"[\d.%]+" if part == "n" else ".+?" for part in parts[1::2])
    blanks = (*found, "")
    texts = (re.escape(part) for part in parts[::2])
    return re.compile("".join(a + b for a, b in zip(texts, blanks, strict=True)), re.DOTALL)


def paces() -> Iterator[str]:
    for number, (freeze_ms, database_ms, aborts) in enumerate(
        [(0.0, 0.0, 0.5), (0.0, 500.0, 0.0), (900.0, 0.0, 0.0), (0.0, 0.0, 0.0)]
    ):
        pace = Pace(100.0, 500.0, rate=50.0)
        pace.judge(0.0, 0.0, 0.0, 0.0)
        yield pace.judge(freeze_ms, database_ms, aborts, 10.0 + number)[1]
    yield Pace(100.0, 500.0).why


def plans() -> Iterator[str]:
    standings = {
        "501": server("501", 100, schema=1),
        "502": server("502", 0, "2.0", capacity=50, schema=2, min_reader=2),
    }
    found = make_plan(DrainRequest(servers=["501"], canary=5, rate=50), standings, [])
    assert len(found.notes) == 3
    yield from (*found.notes, found.schema_point, found.rollback_until)
    yield "7 users are pinned: they move when that ends, or at the deadline"


def notes() -> Iterator[str]:
    reports = [
        GateReport(gate="early@1"),
        GateReport(gate="wrong@1", answered=5, is_final=True),
        GateReport(gate="lost@1", uncounted=3, is_final=True),
        GateReport(gate="late@1", is_final=True),
    ]
    by_gate = {report.gate: report for report in reports}
    found = reconcile(job(), by_gate, [*by_gate, "silent@1"], ["late@1"])
    assert len(found.notes) == 5
    yield from found.notes
    yield from reconcile(job(), {}, []).notes


def refusals() -> Iterator[str]:
    one = Server("501", load=3, capacity=3)
    away = [replace(one, weight=0), replace(one, healthy=False), replace(one, open=False), one]
    yield from (server.why_not for server in away)
    yield from (Fleet([server]).refusal().reason for server in away)
    yield Fleet().refusal().reason


def demo() -> Iterator[str]:
    """The f-strings of what its acts answer, with something in every blank."""
    source = getsource(Demo)
    for answer in re.findall(r"return \(\n(.*?)\n        \)|return (f?\"The demo.*?\")", source, re.DOTALL):
        whole = "".join(re.findall(r'f?"(.*?)"\n?', answer[0] + answer[1]))
        described = whole.replace("{self._described(old)}", "a (version 1)").replace(
            "{self._described(new)}", "b (version 2)"
        )
        yield re.sub(r"\{[^{}]*(\{[^{}]*\}[^{}]*)*\}", "7", described)


def hints() -> Iterator[str]:
    for row in re.findall(r"^\| \d+ \|.*\|$", ERRORS.read_text(encoding="utf-8"), re.MULTILINE):
        if hint := row.split("|")[4].strip():
            yield hint


@pytest.mark.parametrize("lang", OTHERS)
@pytest.mark.parametrize("told", [paces, plans, notes, refusals, demo, hints])
def test_what_it_explains_is_said_too(lang: str, told: Callable[[], Iterator[str]]) -> None:
    known = patterns(lang)
    said = list(told())
    assert said
    for sentence in said:
        assert any(one.fullmatch(sentence) for one in known), sentence


@pytest.mark.parametrize("lang", OTHERS)
def test_a_saying_fills_the_blanks_that_it_has(lang: str) -> None:
    for name, text in TEXTS[lang].items():
        if name.startswith("said."):
            assert set(BLANK.findall(text)) <= set(BLANK.findall(name)), name


@pytest.mark.parametrize("lang", OTHERS)
def test_every_code_of_an_error_is_said_in_words(lang: str) -> None:
    codes = set(re.findall(r"^\| \d+ \| `(\w+)`", ERRORS.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name for name in TEXTS[lang] if name.startswith("errorCode.")} == {
        f"errorCode.{c}" for c in codes
    }


@pytest.mark.parametrize("lang", sorted(TEXTS))
def test_every_reason_of_a_reject_is_said_in_words(lang: str) -> None:
    counted = {
        name for part in (intake, committing) for name in re.findall(r'\["([A-Z_]+)"\]', getsource(part))
    }
    reasons = SAID.keys() | counted
    assert {name for name in TEXTS[lang] if name.startswith("reject.")} == {f"reject.{r}" for r in reasons}
