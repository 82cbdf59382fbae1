"""Calling scripts by name: typed answers, honest errors, reloading, counting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from roost.core.errors import StoreRefused
from roost.store.contract import ContractError, parse_script
from roost.store.scripts import SHARED, Script
from roost.store.store import Store
from roost.testing import RunningServer

LUA = Path(__file__).parent / "lua"
SOURCE = Path(__file__).parents[2] / "src" / "roost"
SCRIPTS = [file for file in sorted(SOURCE.rglob("*.lua")) if file.read_text("utf-8").startswith("#!lua")]


@dataclass(frozen=True, slots=True)
class Echo:
    number: int
    text: str
    blob: bytes
    numbers: list[int]
    texts: list[str]
    blobs: list[bytes]


@dataclass(frozen=True, slots=True)
class Counted:
    keys: int
    args: int


@dataclass(frozen=True, slots=True)
class Nothing:
    pass


@dataclass(frozen=True, slots=True)
class Now:
    value: int


Probe = Script[Echo | Counted | Nothing]
KEY = b"test:{scripts}"


def probe_of(store: Store) -> Probe:
    probe: Probe = store.library.script("tests", "probe", Echo, Counted, Nothing, folder=LUA)
    return probe


def asked(**changes: Any) -> dict[str, Any]:
    return {"one": KEY, "rest": [], "word": "none", "number": 0, "blob": b"", "more": []} | changes


async def test_every_reply_type_becomes_its_python_type(any_store: Store) -> None:
    blob = bytes(range(256))

    answer = await probe_of(any_store)(**asked(word="echo", number=-(2**53), blob=blob, more=["a", "größe"]))

    assert answer == Echo(-(2**53), "echo", blob, [1, 7], ["a", "größe"], [b"a", "größe".encode()])


async def test_a_word_without_fields_is_an_empty_answer(any_store: Store) -> None:
    assert await probe_of(any_store)(**asked()) == Nothing()


@pytest.mark.parametrize(("keys", "args"), [(0, 0), (1, 0), (0, 2), (3, 5)])
async def test_lists_of_keys_and_of_arguments_may_have_any_length(
    any_store: Store, keys: int, args: int
) -> None:
    rest = [KEY + str(n).encode() for n in range(keys)]

    answer = await probe_of(any_store)(**asked(word="count", rest=rest, more=["x"] * args))

    assert answer == Counted(1 + keys, 3 + args)


async def test_a_missing_and_an_unknown_name_are_told_before_anything_is_sent(store: Store) -> None:
    named = asked(colour="red")
    del named["number"]
    with pytest.raises(TypeError, match=r"probe: missing \['number'\], unknown \['colour'\]"):
        await probe_of(store)(**named)


async def test_a_script_that_the_server_forgot_is_loaded_again_and_runs_once(
    store: Store, server: RunningServer
) -> None:
    increase: Script[Now] = store.library.script("tests", "increase", Now, folder=LUA)
    assert await increase(counter=KEY) == Now(1)

    server.command_reply("SCRIPT", "FLUSH")

    assert await increase(counter=KEY) == Now(2)
    values = await asyncio.gather(*(increase(counter=KEY) for _ in range(100)))
    assert [value.value for value in values] == list(range(3, 103))


async def test_many_first_calls_at_once_each_run_once(store: Store, server: RunningServer) -> None:
    server.command_reply("SCRIPT", "FLUSH")
    increase: Script[Now] = store.library.script("tests", "increase", Now, folder=LUA)

    values = await asyncio.gather(*(increase(counter=KEY) for _ in range(200)))

    assert sorted(value.value for value in values) == list(range(1, 201))


async def test_an_error_inside_a_script_is_the_stores_refusal(store: Store) -> None:
    increase: Script[Now] = store.library.script("tests", "increase", Now, folder=LUA)
    await store.call("LPUSH", KEY, "x")

    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        await increase(counter=KEY)


async def test_words_errors_and_times_are_counted(store: Store) -> None:
    increase: Script[Now] = store.library.script("tests", "increase", Now, folder=LUA)
    for _ in range(3):
        await increase(counter=KEY)
    await store.call("LPUSH", b"other:{scripts}", "x")
    with pytest.raises(StoreRefused):
        await increase(counter=b"other:{scripts}")

    assert increase.stats.words == {"NOW": 3, "StoreRefused": 1}
    assert increase.stats.latency.count == 4
    assert store.library.scripts["tests", "increase"] is increase


async def test_a_script_is_read_once(store: Store) -> None:
    assert probe_of(store) is probe_of(store)


@dataclass(frozen=True, slots=True)
class Other:
    pass


def _without_fields() -> type[Any]:
    @dataclass(frozen=True)
    class Now:
        pass

    return Now


def _renamed_field() -> type[Any]:
    @dataclass(frozen=True)
    class Now:
        number: int

    return Now


def _no_dataclass() -> type[Any]:
    class Now:
        value: int

    return Now


@pytest.mark.parametrize("make", [_without_fields, _renamed_field, _no_dataclass])
async def test_an_answer_class_that_does_not_fit_its_contract_is_found_on_loading(
    store: Store, make: Callable[[], type[Any]]
) -> None:
    with pytest.raises(ContractError, match="increase: Now has fields"):
        store.library.script("tests", "increase", make(), folder=LUA)


async def test_missing_and_foreign_answer_classes_are_found_on_loading(store: Store) -> None:
    with pytest.raises(ContractError, match="do not match REPLY"):
        store.library.script("tests", "probe", Echo, Counted, folder=LUA)
    with pytest.raises(ContractError, match="do not match REPLY"):
        store.library.script("tests", "increase", Now, Other, folder=LUA)
    with pytest.raises(ContractError, match="do not match REPLY"):
        store.library.script("tests", "increase", folder=LUA)


async def test_other_answer_classes_for_a_loaded_script_are_found_too(store: Store) -> None:
    store.library.script("tests", "increase", Now, folder=LUA)
    with pytest.raises(ContractError, match="other answer classes"):
        store.library.script("tests", "increase", _without_fields(), folder=LUA)


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_every_script_of_ours_compiles_on_the_server(file: Path, server: RunningServer) -> None:
    contract = parse_script(file.stem, file.read_text("utf-8"), file.parent, SHARED)

    assert server.command_reply("SCRIPT", "LOAD", contract.source).decode() == contract.sha


async def test_on_a_cluster_a_key_of_another_slot_is_refused_and_not_written(any_store: Store) -> None:
    if any_store.topology.shape != "cluster":
        pytest.skip("one server has no slots")
    with pytest.raises(StoreRefused):
        await probe_of(any_store)(**asked(rest=[b"test:{elsewhere}"]))
