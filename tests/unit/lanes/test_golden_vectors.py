"""docs/lane-vectors.json is what other languages test against: it is fresh, and the same in every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roost.lanes import ids
from roost.lanes.selector import SELECTORS
from roost.lanes.vectors import document

FILE = Path(__file__).resolve().parents[3] / "docs" / "lane-vectors.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))


def test_the_document_is_fresh() -> None:
    assert document() == FILE.read_text(encoding="utf-8"), (
        "run: python -m roost.lanes.vectors > docs/lane-vectors.json; "
        "but a difference means that symbols or ids have moved, which must never happen"
    )


@pytest.mark.parametrize("seed", ["0", "1", "4242", "random"])
def test_it_is_the_same_under_every_hash_seed(seed: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "roost.lanes.vectors"],
        env=os.environ | {"PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("vector", VECTORS["places"], ids=lambda vector: ascii(vector["symbol"]))
def test_a_symbol_has_its_place(vector: dict[str, Any]) -> None:
    for name, selector in SELECTORS.items():
        shard, lane = selector.spot(vector["symbol"])
        assert f"{shard}:{lane}" == vector[name]


@pytest.mark.parametrize("vector", VECTORS["ids"], ids=lambda vector: vector["id"])
def test_an_id_has_its_parts_and_is_a_text(vector: dict[str, Any]) -> None:
    parts = (int(vector["ms"]), vector["shard"], vector["lane"], vector["sequence"])
    assert isinstance(vector["id"], str)
    assert ids.pack(*parts) == int(vector["id"])
    assert ids.unpack(int(vector["id"])) == parts


def test_the_ring_has_all_its_points_in_order() -> None:
    points = [tuple(map(int, point.split(":"))) for point in VECTORS["ring"]]
    assert len(points) == 16 * 8
    assert points == sorted(points)
