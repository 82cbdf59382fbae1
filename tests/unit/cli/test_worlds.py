"""`roost queue <verb> [WORLD]`: which world a request is about."""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner

from roost.cli.app import app
from roost.cli.context import Context
from roost.core.errors import InvalidInput

VERBS = (
    ("hold",),
    ("resume",),
    ("mode", "closing"),
    ("cap", "500"),
    ("rate", "20"),
    ("message", "back at 20:00"),
    ("open",),
    ("kick", "u-17"),
)


class Asked(Exception):
    """The path that would have been asked for."""


@pytest.fixture(autouse=True)
def _no_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(self: Context, method: str, path: str, *_: Any, **__: Any) -> None:
        raise Asked(path)

    monkeypatch.setattr(Context, "ask", ask)


def asked(*args: str) -> str:
    error = CliRunner().invoke(app, ["queue", *args]).exception
    assert isinstance(error, Asked), error
    return str(error).removesuffix("/people/u-17")


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_a_world_is_an_argument_or_an_option_and_main_without(verb: tuple[str, ...]) -> None:
    assert asked(*verb) == "/queue/v1/worlds/main"
    assert asked(*verb, "eu-1") == "/queue/v1/worlds/eu-1"
    assert asked(*verb, "--world", "eu-1") == "/queue/v1/worlds/eu-1"
    assert asked(*verb, "eu-1", "--world", "eu-1") == "/queue/v1/worlds/eu-1"


@pytest.mark.parametrize("verb", ["status", "watch"])
def test_without_a_world_all_are_shown(verb: str) -> None:
    assert asked(verb) == "/queue/v1/worlds"
    assert asked(verb, "eu-1") == "/queue/v1/worlds/eu-1"
    assert asked(verb, "--world", "eu-1") == "/queue/v1/worlds/eu-1"


def test_the_message_of_another_world_is_cleared_with_the_option() -> None:
    assert asked("message", "--clear", "--world", "eu-1") == "/queue/v1/worlds/eu-1"


@pytest.mark.parametrize("verb", [*VERBS, ("status",), ("watch",)], ids=lambda verb: verb[0])
def test_two_worlds_are_one_too_many(verb: tuple[str, ...]) -> None:
    error = CliRunner().invoke(app, ["queue", *verb, "eu-1", "--world", "main"]).exception
    assert isinstance(error, InvalidInput)
    assert "'eu-1'" in error.message
    assert "'main'" in error.message
