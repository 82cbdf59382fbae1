"""`roost` and its nouns. Each is a module of `nouns/` with an `app`, loaded when it is called."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import typer
import typer.main
from typer.core import TyperGroup

from roost.cli import nouns

UNDERSCORED = frozenset({"entity_hotfix"})
"""Commands whose name is that of a document, underscore and all."""


def noun_modules() -> dict[str, str]:
    """Name of the command → its module; a hyphen stands for an underscore."""
    found = (module.name for module in pkgutil.iter_modules(nouns.__path__))
    return {name if name in UNDERSCORED else name.replace("_", "-"): name for name in sorted(found)}


class Nouns(TyperGroup):
    """Every module of `nouns/` under its own name: a new one is a new file, and nothing is edited.

    An `app` with one command and no callback is a verb (`roost status`), any other is a noun with verbs.
    """

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        self._modules = noun_modules()
        self.commands: dict[str, Any] = dict.fromkeys(self._modules)  # None until it is called

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            module = import_module(f"{nouns.__name__}.{self._modules[cmd_name]}")
            self.commands[cmd_name] = typer.main.get_command(module.app)
            self.commands[cmd_name].name = cmd_name
        return self.commands.get(cmd_name)


app = typer.Typer(
    name="roost",
    cls=Nouns,
    help="A session control plane for stateful servers: who may enter, where each user lives.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def roost() -> None:
    """Makes it a group; what is shown is the help above."""
