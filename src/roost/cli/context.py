"""One call of the command line: what its flags make of the settings, whom it asks, how it shows.

    @app.command(epilog="Example:  roost status --json")
    @takes(URL, DATA, JSON)
    def status(cli: Context) -> None:
        cli.show(cli.ask("GET", "/admin/v1/status", Status), view)

NB: nothing heavy is imported here until it is needed; every command starts with this module.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from roost.cli.flags import JSON, Flag
from roost.cli.printable import printable

if TYPE_CHECKING:
    from roost.cli.tables import Part
    from roost.settings import Loaded, Settings

Own = ParamSpec("Own")
Reply = TypeVar("Reply")
Value = TypeVar("Value")

NOTHING = type(None)
"""The reply of a request whose answer is not read."""


class Context:
    """Made once per call, from the flags that the command shares with others."""

    def __init__(self, given: Mapping[Flag, Any]) -> None:
        self._given = given
        self.json = bool(given.get(JSON))

    @functools.cached_property
    def loaded(self) -> Loaded:
        """The settings and where each comes from; `InvalidSettings` lists every fault."""
        from roost.settings import Loaded

        chosen = {flag.setting: value for flag, value in self._given.items() if flag.setting}
        return Loaded.load({name: str(v) if isinstance(v, Path) else v for name, v in chosen.items()})

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    def start(self, log_level: str = "") -> Settings:
        """The settings, with logging started: for a command that stays, or that opens the store itself."""
        from roost.logs import start_logging, wants_colour
        from roost.settings import ENVIRONMENT

        level, colour = log_level or self.settings.log_level, wants_colour(ENVIRONMENT)
        start_logging(level, self.settings.log_format, wants_colour=colour)
        return self.settings

    @property
    def gateway_url(self) -> str:
        from roost.local import gateway_url

        return gateway_url(self.settings)

    @property
    def api_token(self) -> str:
        from roost.local import api_token

        return api_token(self.settings)

    def ask(
        self,
        method: str,
        path: str,
        reply: type[Reply],
        *,
        query: Sequence[tuple[str, str]] = (),
        body: Any = None,
    ) -> Reply:
        """One request to the gateway; a refusal is raised as the error that it names."""
        from roost.cli.client import ask

        return ask(self.settings, method, path, reply, query=query, body=body)

    def show(self, value: Value, view: Callable[[Value], Iterable[Part]]) -> None:
        """With --json the value as it is, else what the view makes of it for people."""
        if self.json:
            import msgspec

            print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
            return
        for part in view(value):
            if isinstance(part, str):
                print(printable(part), flush=True)
            else:
                from roost.cli.tables import draw

                draw(part)

    def show_line(self, value: Value, view: Callable[[Value], str] = str) -> None:
        """One of many that follow each other: with --json an object in a line."""
        import msgspec

        print(msgspec.json.encode(value).decode() if self.json else printable(view(value)), flush=True)


def takes(
    *flags: Flag,
) -> Callable[[Callable[Concatenate[Context, Own], None]], Callable[..., None]]:
    """Put these flags after the command's own ones, and the context that they make before them."""

    def decorate(command: Callable[Concatenate[Context, Own], None]) -> Callable[..., None]:
        @functools.wraps(command)
        def call(**values: Any) -> None:
            context = Context({flag: values.pop(flag.name) for flag in flags})
            command(context, **values)  # type: ignore[call-arg]

        _, *own = inspect.signature(command, eval_str=True).parameters.values()
        call.__signature__ = inspect.Signature([*own, *map(_parameter, flags)])  # type: ignore[attr-defined]
        return call

    return decorate


def _parameter(flag: Flag) -> inspect.Parameter:
    default = False if flag.type is bool else None
    return inspect.Parameter(
        flag.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=flag.annotation
    )
