"""What every benchmark hands back: cases beside their peers, the machine, and whether a promise was kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NoReturn


@dataclass
class Case:
    """One question, the rounds of each contender (a rate: more is better), and the promised ratios."""

    name: str
    promised: dict[str, float] = field(default_factory=dict)
    ours: list[float] = field(default_factory=list)
    peers: dict[str, list[float]] = field(default_factory=dict)

    def add(self, contender: str, rate: float) -> None:
        rounds = self.ours if contender == "ours" else self.peers.setdefault(contender, [])
        rounds.append(rate)

    def ratio(self, peer: str) -> float:
        return median(self.ours) / median(self.peers[peer])

    def kept(self, peer: str) -> bool:
        return self.ratio(peer) >= self.promised.get(peer, 0.0)

    def kept_all(self) -> bool:
        return all(self.kept(peer) for peer in self.peers)

    def lines(self) -> list[str]:
        rows = [f"{self.name:<40} {'ours':<14} {_rounds(self.ours)}"]
        for peer, rounds in self.peers.items():
            rows.append(f"{'':<40} {peer:<14} {_rounds(rounds)}   ours is {_verdict(self, peer)}")
        return rows

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.name,
            "ours": round(median(self.ours)),
            "peers": {peer: round(median(rounds)) for peer, rounds in self.peers.items()},
            "ratio": {peer: round(self.ratio(peer), 2) for peer in self.peers},
        }


@dataclass
class Figure:
    """A number of ours alone, in a unit of its own: less is better, and more than `most` breaks a promise."""

    name: str
    unit: str
    rounds: list[float]
    most: float | None = None

    def kept_all(self) -> bool:
        return self.most is None or median(self.rounds) <= self.most

    def lines(self) -> list[str]:
        verdict = ""
        if self.most is not None:
            verdict = f"   promised at most {self.most:g}: {'met' if self.kept_all() else 'missed'}"
        return [f"{self.name:<40} {self.unit:<14} {_rounds(self.rounds)}{verdict}"]

    def as_json(self) -> dict[str, Any]:
        ours = float(f"{median(self.rounds):.4g}")
        promise = {} if self.most is None else {"bound": self.most, "met": self.kept_all()}
        return {"case": self.name, "unit": self.unit, "ours": ours, **promise, "peers": {}, "ratio": {}}


def machine() -> dict[str, str | int]:
    """Enough to judge the numbers by; nothing that tells whose machine it is."""
    return {
        "cpus": os.cpu_count() or 0,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


def result_file() -> Path | None:
    """Where `run.py` wants the JSON; None when the benchmark is run by hand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", type=Path, default=None)
    path: Path | None = parser.parse_args().json
    return path


def publish(name: str, unit: str, method: str, cases: Sequence[Case | Figure], path: Path | None) -> int:
    """Print the table, write the JSON, and return the exit status: 1 if a promise was missed."""
    print(f"\n{name}, {unit}\n")
    for case in cases:
        for line in case.lines():
            print(f"  {line}")
    print(f"\n{method}\n{machine()}\n")
    if path is not None:
        rows = [case.as_json() for case in cases]
        text = {"name": name, "unit": unit, "method": method, "machine": machine(), "cases": rows}
        path.write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")
    return 0 if all(case.kept_all() for case in cases) else 1


def _rounds(rounds: list[float]) -> str:
    shown = f"{_number(median(rounds)):>9}"
    return f"{shown}  ({_number(min(rounds))} to {_number(max(rounds))})" if len(rounds) > 1 else shown


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _verdict(case: Case, peer: str) -> str:
    ratio = case.ratio(peer)
    text = f"{ratio:.1f} ×" if ratio >= 2 else f"{ratio:.2f} ×"
    if peer not in case.promised:
        return text
    return f"{text}, promised {case.promised[peer]:g} ×: {'met' if case.kept(peer) else 'missed'}"


def need(package: str) -> NoReturn:
    """End with a clear message where a peer is not installed."""
    sys.exit(f"this benchmark needs the package {package}: `make bench` installs it (extra `bench`)")
