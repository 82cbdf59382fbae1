"""The error tree: what is drawn is what there is."""

from __future__ import annotations

import inspect
import re

import pytest

from roost.core import errors
from roost.core.errors import InvalidSettings, RoostError, StoreOverloaded, StoreUnavailable

CLASSES = [
    cls
    for _, cls in inspect.getmembers(errors, inspect.isclass)
    if issubclass(cls, Exception) and cls.__module__ == errors.__name__
]


def drawn() -> dict[str, str]:
    """Class → parent, as the drawing in the docstring says it."""
    tree: dict[str, str] = {"RoostError": "Exception"}
    path = {0: "RoostError"}
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"    ((?:│   |    )*)[├└]── (\w+)", line):
            depth = len(found[1]) // 4 + 1
            tree[found[2]] = path[depth - 1]
            path[depth] = found[2]
    return tree


def test_the_drawing_is_the_tree() -> None:
    assert drawn() == {cls.__name__: cls.__bases__[0].__name__ for cls in CLASSES}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_the_docstring_opens_with_the_message(cls: type[RoostError]) -> None:
    error = cls(["x must be y"]) if cls is InvalidSettings else cls()
    first_line = (cls.__doc__ or "").splitlines()[0]
    assert first_line.endswith(".")
    assert error.message == first_line or cls is InvalidSettings
    assert str(error) == error.message


def test_a_message_and_a_hint_of_its_own_take_the_place_of_the_defaults() -> None:
    error = StoreUnavailable("gone", hint="wait")
    assert (error.message, error.hint) == ("gone", "wait")
    assert StoreUnavailable.hint != "wait"


def test_an_error_without_a_hint_keeps_that_of_its_class() -> None:
    assert StoreOverloaded("full").hint == StoreOverloaded.hint != ""


def test_all_faults_of_the_settings_are_told_at_once() -> None:
    error = InvalidSettings(["a is wrong", "b is wrong"])
    assert error.faults == ["a is wrong", "b is wrong"]
    assert str(error) == "2 settings to change:\n  - a is wrong\n  - b is wrong"
    assert str(InvalidSettings(["a is wrong"])).startswith("1 setting to change:")
