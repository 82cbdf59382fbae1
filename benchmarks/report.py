"""What every benchmark hands back: cases beside their peers, the machine, and whether a promise was kept."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
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

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.name,
            "ours": round(median(self.ours)),
            "peers": {peer: round(median(rounds)) for peer, rounds in self.peers.items()},
            "ratio": {peer: round(self.ratio(peer), 2) for peer in self.peers},
        }


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


def publish(name: str, unit: str, method: str, cases: list[Case], path: Path | None) -> int:
    """Print the table, write the JSON, and return the exit status: 1 if a promise was missed."""
    print(f"\n{name}, {unit}\n")
    for case in cases:
        print(f"  {case.name:<24} {'ours':<14} {_rounds(case.ours)}")
        for peer, rounds in case.peers.items():
            print(f"  {'':<24} {peer:<14} {_rounds(rounds)}   ours is {_verdict(case, peer)}")
    print(f"\n{method}\n{machine()}\n")
    if path is not None:
        rows = [case.as_json() for case in cases]
        text = {"name": name, "unit": unit, "method": method, "machine": machine(), "cases": rows}
        path.write_text(json.dumps(text, indent=2) + "\n", encoding="utf-8")
    return 0 if all(case.kept(peer) for case in cases for peer in case.peers) else 1


def _rounds(rates: list[float]) -> str:
    return f"{median(rates):>9,.0f}  ({min(rates):,.0f} to {max(rates):,.0f})"


def _verdict(case: Case, peer: str) -> str:
    text = f"{case.ratio(peer):.1f} ×"
    if peer not in case.promised:
        return text
    return f"{text}, promised {case.promised[peer]:g} ×: {'met' if case.kept(peer) else 'missed'}"


def need(package: str) -> NoReturn:
    """End with a clear message where a peer is not installed."""
    sys.exit(f"this benchmark needs the package {package}: `make bench` installs it (extra `bench`)")
