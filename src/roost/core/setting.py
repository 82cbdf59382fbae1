"""How a part of Roost declares its settings: a frozen dataclass whose fields say what they mean.

    @dataclass(frozen=True, slots=True)
    class QueueSettings:
        tick_ms: int = setting(1000, "Time between two ticks.", least=50)

        def faults(self) -> list[str]:
            return check_fields(self)

A section knows its own fields and nothing of where their values come from; `roost/settings.py` collects the
sections, reads their values and puts the name of the section before each fault.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, fields
from typing import Any

from roost.core.errors import RoostError

MIN_SECRET_CHARS = 16


def setting(
    default: Any,
    doc: str,
    *,
    secret: bool = False,
    choices: tuple[str, ...] = (),
    least: int = 1,
    most: int | None = None,
) -> Any:
    """A field of a section. `doc` is one paragraph: meaning, unit, formula, trade-off.

    `least` and `most` bound a number, both included; `choices` are all that a text may be; a `secret` is
    never printed.
    """
    said = {"doc": doc, "secret": secret, "choices": choices, "least": least, "most": most}
    return field(default=default, metadata=said)


def check_fields(section: Any) -> list[str]:
    """A line for each value that its field does not allow: `tick_ms is 3, must be at least 50`."""
    faults: list[str] = []
    for declared in fields(section):
        said, name, value = declared.metadata, declared.name, getattr(section, declared.name)
        if "doc" not in said:
            continue  # a section within it, which checks itself
        if said["choices"] and value not in said["choices"]:
            faults.append(f"{name} is {value!r}, must be one of {', '.join(said['choices'])}")
        if isinstance(value, int) and value < said["least"]:
            faults.append(f"{name} is {value}, must be at least {said['least']}")
        if isinstance(value, int) and said["most"] is not None and value > said["most"]:
            faults.append(f"{name} is {value}, must be at most {said['most']}")
    return faults


def secret_faults(name: str, value: str) -> list[str]:
    """A line for a secret that is too short to be one, or that a shell would have mangled; empty is none."""
    if value and (len(value) < MIN_SECRET_CHARS or not value.isascii() or any(c.isspace() for c in value)):
        return [f"{name} needs at least {MIN_SECRET_CHARS} ASCII characters and no spaces"]
    return []


def checked(faults: list[str], name: str, check: Callable[..., Any], *args: Any) -> Any:
    """What `check` returns; where it refuses, None and a line in `faults`: its message, and its hint."""
    try:
        return check(*args)
    except RoostError as error:
        faults.append(f"{name}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        return None
