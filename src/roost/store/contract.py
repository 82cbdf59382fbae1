"""The contract at the top of a Lua script, read once and held by caller and test alike.

    #!lua [flags=no-writes]
    -- Purpose in a sentence, then whatever a reader must know.
    --
    -- KEYS @discovery
    --   index leases records     names of `store/keys/discovery.py`; leader, feed, bell of every scope
    -- KEYS
    --   name     type    meaning
    --   many...  type    the rest of KEYS, zero or more; last line only
    --   stem*    type    a key prefix: the script appends an id of the same slot
    -- ARGV
    --   name     type    meaning; types are string, int, bytes; `many...` as above
    --   now      int     test override of the server's clock; may be left out of a call
    -- REPLY
    --   WORD field:type field:[type]   meaning; types are string, int, bytes, or a [list] of one of them
    -- FLAGS idempotent bulk

    -- @include function_file

`idempotent`: carrying it out twice does what once does, so a lost reply is retried. `bulk`: its reply
may exceed 256 KB, so it goes over the second connection. Every heading but REPLY may be missing.

A script finds what it was given by name: `keys.index`, `args.id`; an `int` is a number, everything else a
string, `many...` a list. The loader writes the position in place of the name (`keys[2]`): tables of names,
made at every call, would cost a heartbeat a tenth. Functions that touch keys take `keys` as first parameter.

An include at the margin stands above the whole script, with what it needs itself. An indented one stands
where it is written: making a function takes 0.16 µs of every call, so those of a rare branch are included
inside it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from roost.store.keys import SCOPE, group_of

FLAGS = frozenset({"idempotent", "bulk"})
KEY_TYPES = frozenset({"string", "hash", "set", "zset", "stream", "list", "channel"})
ARG_TYPES = frozenset({"string", "int", "bytes"})
REPLY_TYPES = frozenset({"string", "int", "bytes", "[string]", "[int]", "[bytes]"})

_SHEBANG = re.compile(r"#!lua(?: flags=(?P<flags>[a-z,-]+))?")
_PARAMETER = re.compile(
    r"--   (?P<name>[a-z][a-z0-9_]*)(?P<form>\.\.\.|\*)? +(?P<type>\S+)(?: +(?P<meaning>\S.*))?"
)
_GROUP = re.compile(r"KEYS @(?P<group>[a-z]+)")
_REPLY = re.compile(r"--   (?P<word>[A-Z][A-Z_]*)(?P<fields>(?: [a-z_]+:\S+)*)(?: {2,}(?P<meaning>\S.*))?")
_NAMED = re.compile(r"\b(?:keys|args)\.[a-z][a-z0-9_]*")
_INCLUDE = re.compile(r"-- @include ([a-z0-9_]+)")
_AT_THE_MARGIN = re.compile(r"^-- @include ([a-z0-9_]+)$", re.MULTILINE)
_IN_A_BRANCH = re.compile(r"^ +-- @include ([a-z0-9_]+)$", re.MULTILINE)


_REST = """\
local function rest(array, from)
  local list = {}
  for at = from, #array do
    list[at - from + 1] = array[at]
  end
  return list
end"""
"""Not `unpack`, which takes no more than some thousand values."""


class ContractError(Exception):
    """A script that does not keep to its form. Raised while loading, so in every test run."""


@dataclass(frozen=True, slots=True)
class Parameter:
    name: str
    type: str
    meaning: str
    many: bool = False
    prefix: bool = False
    group: str = ""
    """Of keys: the file of `store/keys/` that declares it; empty where the caller decides."""


@dataclass(frozen=True, slots=True)
class Reply:
    word: str
    fields: tuple[tuple[str, str], ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class Contract:
    """A script as a caller needs to know it."""

    name: str
    purpose: str
    keys: tuple[Parameter, ...]
    args: tuple[Parameter, ...]
    replies: tuple[Reply, ...]
    flags: frozenset[str]
    writes: bool
    includes: tuple[str, ...]
    body: str
    """The script's own text below the header, without includes."""
    source: str
    """What the store runs: shebang, includes, body."""

    @property
    def sha(self) -> str:
        return hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()


def parse_script(name: str, text: str, *folders: Traversable) -> Contract:
    """Read one script; its includes are looked for in the folders, in this order."""
    lines = text.splitlines()
    shebang = _SHEBANG.fullmatch(lines[0]) if lines else None
    if shebang is None:
        raise ContractError(f"{name}: the first line must be #!lua or #!lua flags=no-writes")
    header = _leading_comments(lines[1:])
    body = "\n".join(lines[1 + len(header) :]).strip() + "\n"
    sections = _sections(name, header)
    includes = tuple(_INCLUDE.findall(body))
    code = _Functions(name, folders).expand(body)
    keys = (*_named_keys(name, sections["NAMED"]), *_parameters(name, sections["KEYS"], KEY_TYPES))
    args = _parameters(name, sections["ARGV"], ARG_TYPES)
    replies = _replies(name, sections["REPLY"])
    _check_unique(name, [p.name for p in (*keys, *args)])
    _check_unique(name, [reply.word for reply in replies])
    return Contract(
        name=name,
        purpose=" ".join(sections["PURPOSE"]).partition(". ")[0].rstrip("."),
        keys=keys,
        args=args,
        replies=replies,
        flags=_flags(name, sections["FLAGS"]),
        writes=shebang["flags"] != "no-writes",
        includes=includes,
        body=body,
        source="\n".join([lines[0], *_by_position(keys, args, code)]) + "\n",
    )


def _leading_comments(lines: list[str]) -> list[str]:
    header: list[str] = []
    for line in lines:
        if not line.startswith("--"):
            break
        header.append(line)
    return header


def _sections(name: str, header: list[str]) -> dict[str, list[str]]:
    sections: dict[str, list[str]] = {
        "PURPOSE": [],
        "NAMED": [],
        "KEYS": [],
        "ARGV": [],
        "REPLY": [],
        "FLAGS": [],
    }
    current, group = "PURPOSE", ""
    for line in header:
        text = line.removeprefix("--").strip()
        word = text.partition(" ")[0]
        if word == "FLAGS":
            sections["FLAGS"] = text.split()[1:]
        elif found := _GROUP.fullmatch(text):
            current, group = "NAMED", found["group"]
        elif text in sections:
            current = text
        elif current == "NAMED":
            sections[current] += [f"{group}.{word}" for word in text.split()]
        elif current == "PURPOSE":
            sections[current].append(text)
        elif text:
            sections[current].append(line)
    if not any(sections["PURPOSE"]) or not sections["REPLY"]:
        raise ContractError(f"{name}: the header needs a purpose and a REPLY section")
    return sections


def _parameters(name: str, lines: list[str], types: frozenset[str]) -> tuple[Parameter, ...]:
    parameters: list[Parameter] = []
    for line in lines:
        found = _PARAMETER.fullmatch(line)
        if not found or found["type"] not in types:
            raise ContractError(f"{name}: not `name type meaning` with a type of {sorted(types)}: {line!r}")
        if parameters and parameters[-1].many:
            raise ContractError(f"{name}: only the last may be many: {line!r}")
        form = found["form"]
        parameters.append(
            Parameter(found["name"], found["type"], found["meaning"] or "", form == "...", form == "*")
        )
    return tuple(parameters)


def _named_keys(name: str, words: list[str]) -> list[Parameter]:
    """The keys of a group, by the names that its capability declares."""
    parameters: list[Parameter] = []
    for word in words:
        group, _, key = word.partition(".")
        try:
            family = group_of(group).family(key) or SCOPE.family(key)
        except ImportError:
            raise ContractError(f"{name}: there is no group of keys @{group}") from None
        if family is None:
            raise ContractError(f"{name}: store/keys/{group}.py declares no key {key!r}")
        parameters.append(Parameter(key, family.type, family.meaning, prefix=family.is_prefix, group=group))
    return parameters


def _by_position(keys: tuple[Parameter, ...], args: tuple[Parameter, ...], texts: list[str]) -> Iterator[str]:
    """The texts with positions in place of names, and before them what these refer to."""
    values: dict[str, str] = {}
    for table, array, parameters in (("keys", "KEYS", keys), ("args", "ARGV", args)):
        if not any(re.search(rf"\b{table}\b", text) for text in texts):
            continue
        values |= {f"{table}.{p.name}": _value(p, table, at) for at, p in enumerate(parameters, start=1)}
        yield f"local {table} = {array}"
        if parameters and parameters[-1].many:
            yield _REST
            yield f"local {table}_{parameters[-1].name} = rest({table}, {len(parameters)})"
    for text in texts:
        yield _NAMED.sub(lambda found: values.get(found[0], found[0]), text)


def _value(parameter: Parameter, table: str, at: int) -> str:
    if parameter.many:
        return f"{table}_{parameter.name}"
    is_number = table == "args" and parameter.type == "int"
    return f"tonumber({table}[{at}])" if is_number else f"{table}[{at}]"


def _replies(name: str, lines: list[str]) -> tuple[Reply, ...]:
    replies: list[Reply] = []
    for line in lines:
        found = _REPLY.fullmatch(line)
        if not found:
            raise ContractError(f"{name}: not `WORD field:type  meaning`: {line!r}")
        fields = tuple(
            (field, kind) for field, _, kind in (f.partition(":") for f in found["fields"].split())
        )
        for _, kind in fields:
            if kind not in REPLY_TYPES:
                raise ContractError(f"{name}: {kind!r} is none of {sorted(REPLY_TYPES)}: {line!r}")
        replies.append(Reply(found["word"], fields, found["meaning"] or ""))
    return tuple(replies)


def _check_unique(name: str, words: list[str]) -> None:
    """Callers fill parameters in by name, and replies are known by their word."""
    if twice := [word for word in words if words.count(word) > 1]:
        raise ContractError(f"{name}: {twice[0]} is given twice")


def _flags(name: str, words: list[str]) -> frozenset[str]:
    if unknown := set(words) - FLAGS:
        raise ContractError(f"{name}: unknown FLAGS {sorted(unknown)}; known are {sorted(FLAGS)}")
    return frozenset(words)


class _Functions:
    """The function files that one script includes, looked for in the folders, in this order."""

    def __init__(self, script: str, folders: tuple[Traversable, ...]) -> None:
        self._script = script
        self._folders = folders
        self._texts: dict[str, str] = {}

    def expand(self, body: str) -> list[str]:
        """What the store runs: the functions, each after what it needs itself, and the body."""
        above = self._closure(_AT_THE_MARGIN.findall(body))
        functions = [self._code(name, above[:at]) for at, name in enumerate(above)]
        return [*functions, self._with_branches(_AT_THE_MARGIN.sub("", body).strip(), above)]

    def _closure(self, names: list[str], without: Sequence[str] = ()) -> list[str]:
        found: list[str] = []
        for name in names:
            if name not in without:
                needs = self._closure(_AT_THE_MARGIN.findall(self._text(name)), without)
                found += [one for one in (*needs, name) if one not in found]
        return found

    def _code(self, name: str, visible: Sequence[str]) -> str:
        lines = (line for line in self._text(name).splitlines() if line and not line.startswith("--"))
        return self._with_branches("\n".join(lines), visible)

    def _with_branches(self, code: str, visible: Sequence[str]) -> str:
        """The code with the functions of its branches in their places, unless they are visible there."""

        def in_place(found: re.Match[str]) -> str:
            needed = self._closure([found[1]], visible)
            return "\n".join(self._code(name, [*visible, *needed[:at]]) for at, name in enumerate(needed))

        return _IN_A_BRANCH.sub(in_place, code)

    def _text(self, name: str) -> str:
        if name not in self._texts:
            files = (folder.joinpath(f"{name}.lua") for folder in self._folders)
            file = next((file for file in files if file.is_file()), None)
            if file is None:
                raise ContractError(f"{self._script}: no function file {name}.lua")
            self._texts[name] = file.read_text(encoding="utf-8")
        return self._texts[name]
