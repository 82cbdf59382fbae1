"""docs/errors.md is made from the error classes."""

from __future__ import annotations

from roost.web.errors import document, table
from tests.architecture.source import ROOT


def test_the_table_of_errors_is_fresh() -> None:
    text = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert text == document(), "run: .venv/bin/python -m roost.web.errors > docs/errors.md"


def test_every_code_is_in_it_once() -> None:
    codes = [code for _, code, _ in table()]
    assert len(codes) == len(set(codes))
    assert {"OUTCOME_UNKNOWN", "UNAVAILABLE", "TICKET_USED"} <= set(codes)
