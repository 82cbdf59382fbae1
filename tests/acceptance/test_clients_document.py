"""Every block of docs/clients.md is run, in order, in one shell; what it shows is what comes back."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from roost.testing import free_port, wait_until
from tests.acceptance.conftest import Home, http

DOCUMENT = Path(__file__).parents[2] / "docs" / "clients.md"
BLOCK = re.compile(r"^```sh\n(.+?)^```(?:\n\n^```(json)?\n(.+?)^```)?", re.MULTILINE | re.DOTALL)
END = "-- end of block --"


def blocks() -> list[tuple[str, str, str]]:
    """(commands, kind of the answer, answer) of each; an empty answer is none."""
    return [(m[1], m[2] or "text", m[3] or "") for m in BLOCK.finditer(DOCUMENT.read_text(encoding="utf-8"))]


def is_shown(kind: str, expected: str, said: str) -> bool:
    """Whether the answer is the documented one; a JSON answer may have more fields, and other secrets."""
    if kind == "text":
        lines = said.replace("\r", "").splitlines()
        return [line[: len(want)] for line, want in zip(lines, expected.splitlines(), strict=False)] == (
            expected.splitlines()
        )
    got, want = json.loads(said), json.loads(expected)
    return all(name in got and fits(value, got[name]) for name, value in want.items())


def fits(want: Any, got: Any) -> bool:
    if isinstance(want, str) and "…" in want:
        begin, _, end = want.partition("…")
        return str(got).startswith(begin) and str(got).endswith(end) and got != ""
    if isinstance(want, int) and not isinstance(want, bool) and want > 1000:
        return bool(0 < got <= 2 * want)  # a time, which nobody can promise to the millisecond
    return bool(want == got)


@pytest.mark.skipif(not Path("/usr/bin/curl").exists(), reason="no curl here")
def test_every_block_of_the_document_works_in_the_order_in_which_it_stands(home: Home) -> None:
    up = home.up(ROOST_QUEUE__TICKET_SECONDS="60")
    home.start("gameserver", "--port", str(free_port()), "--capacity", "5", "--url", up.url)

    def has_capacity() -> bool:
        return bool(http(f"{up.url}/queue/v1/worlds/main", token=home.token()).json["capacity"])

    wait_until(has_capacity, "the game server to be in the ledger")
    found = blocks()
    assert len(found) >= 9
    assert "curl" in found[1][0]
    script = "set -u\n" + "".join(f"{commands}\necho '{END}'\n" for commands, *_ in found)
    roost = f'roost() {{ "{sys.executable}" -m roost "$@" > /dev/null; }}\n'
    done = subprocess.run(
        ["bash", "-c", roost + script.replace("http://127.0.0.1:8400", up.url)],
        env=home.environment() | {"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    said = done.stdout.split(END + "\n")
    assert len(said) == len(found) + 1, done.stderr
    for (commands, kind, expected), answer in zip(found, said, strict=False):
        assert is_shown(kind, expected, answer), f"{commands}\nanswered\n{answer}"


def test_every_curl_of_the_document_is_in_a_block_that_is_run() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    fenced = sum(commands.count("curl -s") for commands, *_ in blocks())
    assert text.count("curl -s") == fenced > 0
