"""Stories: readable transcripts that are run and compared with what really happens.

A story is a text file in the options of etcd raft's `testdata`. Commands stand above a line `----`, below it
stands what they answer; a blank line ends the block. Lines that begin with `#` are for the reader.

    # A drained server takes nobody new.
    register 501 capacity=2
    drain 501
    ----
    501 ready, accepting
    501 draining, not accepting

    stories = StoryRunner({"register": scene.register, "drain": scene.drain}, Names({"id": ULID}))
    await stories.run(Path("drain.txt"), rewrite=False)

A story that tells something else than what happened fails with a diff; with `rewrite` the file is put right
instead, and the difference is reviewed as a change of the file.
"""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

RULE = "----"


class StoryFault(Exception):
    """The story itself cannot be run: its file and line, and what is wrong there."""


@dataclass(frozen=True)
class Command:
    """One line of a story: `enter ann class=vip` is the verb `enter` with one argument and one option."""

    verb: str
    args: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)


Verb = Callable[[Command], Awaitable[str]]
"""Does what a command says and returns what is to be read of it: lines of text, none of them blank."""


class Names:
    """Stable names for what is new in every run, such as ids and times.

    Each kind has a pattern; the first thing that matches becomes `<kind-1>`, the next different one
    `<kind-2>`. In a command these names stand for what they replaced.
    """

    def __init__(self, patterns: Mapping[str, str] | None = None) -> None:
        self._patterns = {kind: re.compile(pattern) for kind, pattern in (patterns or {}).items()}
        self._names: dict[tuple[str, str], str] = {}

    def hide(self, text: str) -> str:
        """The text with stable names in place of what the patterns match."""
        for kind, pattern in self._patterns.items():
            text = pattern.sub(partial(self._name, kind), text)
        return text

    def reveal(self, text: str) -> str:
        """The text with what the names stand for; an unknown name stays as it is."""
        for (_, real), name in self._names.items():
            text = text.replace(name, real)
        return text

    def _name(self, kind: str, found: re.Match[str]) -> str:
        known = sum(kind == of for of, _ in self._names)
        return self._names.setdefault((kind, found.group()), f"<{kind}-{known + 1}>")


class StoryRunner:
    """Runs stories with the verbs of one scene. Every story needs a runner, and so names, of its own."""

    def __init__(self, verbs: Mapping[str, Verb], names: Names | None = None) -> None:
        self._verbs = verbs
        self._names = names or Names()

    async def run(self, path: Path, *, rewrite: bool = False) -> None:
        """Fail with a readable diff where the file tells something else than what happened.

        With `rewrite` the file is made to tell what happened. Raises `StoryFault` for a command that
        cannot be understood; an exception of a verb is passed on with the line that caused it.
        """
        told = path.read_text(encoding="utf-8")
        happened = await self.happens(told, str(path))
        if happened == told:
            return
        if rewrite:
            path.write_text(happened, encoding="utf-8")
            return
        diff = difflib.unified_diff(
            told.splitlines(),
            happened.splitlines(),
            f"{path.name}, as it is told",
            "as it happens",
            lineterm="",
        )
        raise AssertionError("\n".join([f"{path} does not tell what happens:", *diff]))

    async def happens(self, told: str, where: str = "story") -> str:
        """The story as it really goes: its commands and remarks, with the answers that they got."""
        lines: list[str] = []
        for part in _parts(told, where):
            lines += part.lines
            if part.commands:
                lines.append(RULE)
                for number, text in part.commands:
                    lines += await self._answer(text, f"{where}:{number}")
        return "\n".join(lines).rstrip("\n") + "\n"

    async def _answer(self, text: str, where: str) -> list[str]:
        command = parse_command(self._names.reveal(text), where)
        if command.verb not in self._verbs:
            raise StoryFault(f"{where}: no verb {command.verb!r}; there are {', '.join(sorted(self._verbs))}")
        try:
            said = self._names.hide(await self._verbs[command.verb](command))
        except Exception as error:
            error.add_note(f"{where}: {text}")
            raise
        lines = said.splitlines()
        if any(not line.strip() for line in lines):
            raise StoryFault(f"{where}: an answer with a blank line would end its block: {said!r}")
        return lines


def parse_command(text: str, where: str = "story") -> Command:
    """`verb arg … name=value …`, quoted as in a shell."""
    try:
        verb, *words = shlex.split(text)
    except ValueError as error:
        raise StoryFault(f"{where}: {error}") from error
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return Command(verb, tuple(word for word in words if "=" not in word), options)


@dataclass
class _Part:
    """Lines that are kept as they are, and the commands among them that were followed by an answer."""

    lines: list[str]
    commands: list[tuple[int, str]]


def _parts(told: str, where: str) -> Iterator[_Part]:
    part, in_answer = _Part([], []), False
    for number, line in enumerate(told.splitlines(), 1):
        if in_answer and line.strip():
            continue
        if in_answer:
            yield part
            part, in_answer = _Part([], []), False
        if line == RULE:
            if not part.commands:
                raise StoryFault(f"{where}:{number}: {RULE} without a command above it")
            in_answer = True
            continue
        if not line.strip() and part.commands:
            raise StoryFault(f"{where}:{number}: a command without {RULE} below it")
        part.lines.append(line)
        if line.strip() and not line.startswith("#"):
            part.commands.append((number, line))
    if part.commands and not in_answer:
        raise StoryFault(f"{where}: the last command has no {RULE} below it")
    yield part
