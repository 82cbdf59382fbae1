"""Whether the command line would take these arguments: parsed by the program itself, nothing is run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer.main

from roost.cli.app import app


def faults_of_command(arguments: Sequence[str]) -> list[str]:
    """What it would say; empty if it would begin."""
    try:
        _parse(typer.main.get_command(app), "roost", list(arguments), None)
    except typer.Exit:
        return [f"{' '.join(arguments)}: it only shows help"]
    except Exception as error:
        if not hasattr(
            error, "format_message"
        ):  # the parser's own; typer brings its classes along or borrows them
            raise
        return [f"{' '.join(arguments)}: {error.format_message()}"]
    return []


def _parse(command: Any, name: str, arguments: list[str], parent: Any) -> None:
    """A group makes a context and passes the rest on, down to the command that takes it."""
    context = command.make_context(name, arguments, parent=parent)
    if hasattr(command, "resolve_command"):
        rest = [
            *vars(context).get("_protected_args", ()),
            *context.args,
        ]  # which a group has no public word for
        verb, found, left = command.resolve_command(context, rest)
        _parse(found, verb, left, context)
