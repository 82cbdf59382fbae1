"""Calling the store's programs by name, with typed answers.

    campaign: Script[Leading | Held] = library.script("store", "leader_campaign", Leading, Held)
    match await campaign(leader=key, holder="m-1", epoch="", ttl_ms=10_000, max_step_ms=2000):
        case Leading(epoch): ...

An answer class is a frozen dataclass whose name is the reply word in CamelCase and whose fields are
those of the contract. A lost or renamed field is found when the script is loaded, not when it is used.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import fields, is_dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Generic, TypeVar

from roost.core.errors import StoreError
from roost.core.histogram import Histogram
from roost.store.call import Call, pack
from roost.store.contract import Contract, ContractError, parse_script
from roost.store.link import LinkOptions
from roost.store.topology import Topology

SHARED: Traversable = files("roost.store") / "lua"

Answer = TypeVar("Answer")


class ScriptStats:
    """What one script did here: how long its calls took and which words came back."""

    __slots__ = ("latency", "words")

    def __init__(self) -> None:
        self.latency = Histogram()
        self.words: Counter[str] = Counter()


class Script(Generic[Answer]):
    """One script, ready to be called with its KEYS and ARGV by name."""

    def __init__(
        self, contract: Contract, answers: tuple[type[Answer], ...], topology: Topology, options: LinkOptions
    ) -> None:
        self.contract = contract
        self.answers = answers
        self.stats = ScriptStats()
        self._topology = topology
        self._timeout_s = options.command_timeout_s
        self._names = tuple(p.name for p in (*contract.keys, *contract.args))
        self._named = frozenset(self._names)
        self._many = frozenset(p.name for p in (*contract.keys, *contract.args) if p.many)
        self._key_count = len(contract.keys)
        self._source = contract.source.encode()
        self._sha = contract.sha
        self._idempotent = "idempotent" in contract.flags
        self._bulk = "bulk" in contract.flags
        self._run, self._load = (b"EVALSHA", b"EVAL") if contract.writes else (b"EVALSHA_RO", b"EVAL_RO")
        self._builders = _builders(contract, answers)

    async def __call__(self, *, timeout_s: float | None = None, **named: Any) -> Answer:
        started = time.perf_counter()
        try:
            parameters, key = self._parameters(named)
            reply = await self.submit(parameters, key, timeout_s)
        except StoreError as error:
            self.stats.words[type(error).__name__] += 1
            raise
        finally:
            self.stats.latency.observe(time.perf_counter() - started)
        return self.answer_of(reply)

    def submit(
        self, parameters: tuple[Any, ...], key: bytes | None, timeout_s: float | None = None
    ) -> asyncio.Future[Any]:
        """Send it; the future ends with the raw reply, for `answer_of`. `parameters`: numkeys, KEYS, ARGV."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        deadline = loop.time() + (self._timeout_s if timeout_s is None else timeout_s)
        packed = pack((self._run, self._sha, *parameters))
        call = Call(future, packed, deadline, key, self._idempotent, self._bulk)
        call.script = (self._load, self._source, parameters)
        self._topology.submit(call)
        return future

    def answer_of(self, reply: list[Any]) -> Answer:
        build = self._builders[reply[0]]
        self.stats.words[build.word] += 1
        answer: Answer = build(reply)
        return answer

    def _parameters(self, named: dict[str, Any]) -> tuple[tuple[Any, ...], bytes | None]:
        """(numkeys, KEYS…, ARGV…) in the order of the contract, and the key that decides the slot."""
        if named.keys() != self._named:
            named = self._completed(named)
        if not self._many:
            values = [named[name] for name in self._names]
            key_count = self._key_count
        else:
            values = []
            key_count = self._key_count
            for position, name in enumerate(self._names):
                if name not in self._many:
                    values.append(named[name])
                    continue
                many = named[name]
                values.extend(many)
                if position < self._key_count:
                    key_count += len(many) - 1
        return (key_count, *values), values[0] if key_count else None

    def _completed(self, named: dict[str, Any]) -> dict[str, Any]:
        missing = self._named - named.keys() - {"now"}
        unknown = named.keys() - self._named
        if missing or unknown:
            raise TypeError(f"{self.contract.name}: missing {sorted(missing)}, unknown {sorted(unknown)}")
        return {"now": "", **named}


class ScopedScript(Generic[Answer]):
    """A script with the keys of its scope already in place."""

    def __init__(self, script: Script[Answer], keys: Mapping[str, bytes]) -> None:
        self._script = script
        self._keys: dict[str, Any] = {p.name: keys[p.name] for p in script.contract.keys}
        self._key_values = tuple(self._keys.values())
        self._key_count = len(self._key_values)
        if any(parameter.name == "now" for parameter in script.contract.args):
            self._keys["now"] = ""  # else every call would have to find out that it is missing

    def __call__(self, **args: Any) -> Coroutine[Any, Any, Answer]:
        return self._script(**{**self._keys, **args})

    def send(self, *args: Any) -> asyncio.Future[Any]:
        """Call it without waiting, with its ARGV in their order; see `Script.submit`."""
        return self._script.submit((self._key_count, *self._key_values, *args), self._key_values[0])

    def answer_of(self, reply: list[Any]) -> Answer:
        return self._script.answer_of(reply)


class Library:
    """The scripts of one store. Text is read and parsed once; statistics are kept per script."""

    def __init__(self, topology: Topology, options: LinkOptions) -> None:
        self._topology = topology
        self._options = options
        self.scripts: dict[tuple[str, str], Script[Any]] = {}
        """By capability and name: two capabilities may both have a `status`."""

    def script(
        self, capability: str, name: str, *answers: type[Answer], folder: Traversable | None = None
    ) -> Script[Answer]:
        """Load `roost/<capability>/lua/<name>.lua`; `answers` are its reply words as classes."""
        key = (capability, name)
        if key not in self.scripts:
            contract = _shipped(capability, name) if folder is None else _read(folder, name)
            self.scripts[key] = Script(contract, answers, self._topology, self._options)
        elif set(answers) != set(self.scripts[key].answers):
            raise ContractError(f"{name}: it was loaded with other answer classes")
        return self.scripts[key]


@functools.cache
def _shipped(capability: str, name: str) -> Contract:
    """A script of the package, which does not change while the process runs: parsed for its first store."""
    return _read(files(f"roost.{capability}") / "lua", name)


def _read(folder: Traversable, name: str) -> Contract:
    text = folder.joinpath(f"{name}.lua").read_text(encoding="utf-8")
    return parse_script(name, text, folder, SHARED)


class _Builder:
    """Turns a reply into its answer object."""

    __slots__ = ("_answer", "_converters", "word")

    def __init__(self, word: str, answer: type[Any], converters: tuple[Callable[[Any], Any], ...]) -> None:
        self.word = word
        self._answer = answer
        self._converters = converters

    def __call__(self, reply: list[Any]) -> Any:
        return self._answer(
            *[convert(value) for convert, value in zip(self._converters, reply[1:], strict=True)]
        )


def _text(value: bytes) -> str:
    return value.decode()


def _raw(value: Any) -> Any:
    return value


_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "int": int,
    "string": _text,
    "bytes": _raw,
    "[int]": lambda values: [int(value) for value in values],
    "[string]": lambda values: [value.decode() for value in values],
    "[bytes]": _raw,
}


def _builders(contract: Contract, answers: tuple[type[Any], ...]) -> dict[bytes, _Builder]:
    by_name = {answer.__name__: answer for answer in answers}
    expected = {_class_name(reply.word): reply for reply in contract.replies}
    if by_name.keys() != expected.keys():
        raise ContractError(
            f"{contract.name}: answers {sorted(by_name)} do not match REPLY {sorted(expected)}"
        )
    builders: dict[bytes, _Builder] = {}
    for name, reply in expected.items():
        answer = by_name[name]
        have = tuple(field.name for field in fields(answer)) if is_dataclass(answer) else ()
        want = tuple(field for field, _ in reply.fields)
        if have != want:
            raise ContractError(f"{contract.name}: {name} has fields {have}, the contract says {want}")
        converters = tuple(_CONVERTERS[kind] for _, kind in reply.fields)
        builders[reply.word.encode()] = _Builder(reply.word, answer, converters)
    return builders


def _class_name(word: str) -> str:
    return "".join(part.capitalize() for part in word.split("_"))
