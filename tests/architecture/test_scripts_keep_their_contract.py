"""Every Lua script under src/roost keeps the contract in its header, and the checker would see it if not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.lua_checker import faults_of, include_faults
from tests.architecture.source import PACKAGE, modules

SHARED = PACKAGE / "store" / "lua"
FILES = sorted(PACKAGE.rglob("*.lua"))
SCRIPTS = [file for file in FILES if file.read_text(encoding="utf-8").startswith("#!lua")]
FUNCTIONS = {file.stem: file.read_text(encoding="utf-8") for file in FILES if file not in SCRIPTS}


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_keeps_its_contract(file: Path) -> None:
    assert faults_of(file.stem, file.read_text(encoding="utf-8"), FUNCTIONS, file.parent, SHARED) == []


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_has_a_typed_function_in_python(file: Path) -> None:
    assert file.stem in _loaded_scripts()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_shared_file_is_one_function_of_its_name(name: str) -> None:
    assert include_faults(name, FUNCTIONS[name]) == []


def test_script_names_are_unique() -> None:
    names = [file.stem for file in FILES]
    assert sorted(set(names)) == sorted(names)


# -- the checker itself

HEADER = """\
#!lua
-- Do something.
--
-- KEYS
--   thing   hash    what it is about
--   bit*    string  one for each id
-- ARGV
--   id      string  which
--   now     int     test override
-- REPLY
--   DONE at:int   it was done
--   NOT_DONE      it was not

-- @include now_us
"""
BINDINGS = """
local thing, bit = KEYS[1], KEYS[2]
local id = ARGV[1]
local now = now_us(ARGV[2])
"""
BODY = """
if redis.call('HEXISTS', thing, id) == 1 then
  redis.call('SET', bit .. id, now)
  return { 'DONE', now }
end
return { 'NOT_DONE' }
"""


def faults(text: str) -> str:
    return "\n".join(faults_of("thing_do", text, FUNCTIONS, SHARED))


def test_a_good_script_has_no_faults() -> None:
    assert faults(HEADER + BINDINGS + BODY) == ""


def test_a_list_of_keys_may_be_walked() -> None:
    header = HEADER.replace("--   bit*    string  one for each id", "--   many... string  the rest")
    body = BODY.replace(
        "redis.call('SET', bit .. id, now)", "for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end"
    )
    bindings = BINDINGS.replace("thing, bit = KEYS[1], KEYS[2]", "thing = KEYS[1]")
    assert faults(header + bindings + body) == ""


def test_a_name_made_from_a_prefix_is_a_key() -> None:
    body = BODY.replace(
        "redis.call('SET', bit .. id, now)", "local one = bit .. id\n  redis.call('SET', one, now)"
    )
    assert faults(HEADER + BINDINGS + body) == ""


BAD_BODIES = {
    "a literal key": ("thing, id)", "'roost:other', id)", "'roost:other' is not a declared key"),
    "a key from ARGV": ("thing, id)", "id, id)", "id is not a declared key"),
    "a prefix used as a key": ("bit .. id, now", "bit, now", "bit is not a declared key"),
    "an id before the prefix": ("bit .. id, now", "id .. bit, now", "id .. bit is not a declared key"),
    "an appended key": ("bit .. id, now", "thing .. id, now", "thing .. id is not a declared key"),
    "an undeclared word": ("{ 'NOT_DONE' }", "{ 'MAYBE' }", "MAYBE is not in REPLY"),
    "a word never returned": ("return { 'NOT_DONE' }\n", "", "never returned"),
    "a missing field": ("{ 'DONE', now }", "{ 'DONE' }", "DONE has 1 fields in REPLY and 0 here"),
    "an answer that is no word": ("{ 'NOT_DONE' }", "false", "must be written as return"),
    "an endless loop": ("return { 'NOT", "while true do end\nreturn { 'NOT", "without a `-- bound:`"),
    "a repeat loop": ("return { 'NOT", "repeat local x = 1 until x\nreturn { 'NOT", "without a `-- bound:`"),
    "KEYS": ("'HEXISTS', thing, id", "'KEYS', '*'", "'KEYS' is not allowed"),
    "SCAN": ("'HEXISTS', thing, id", "'SCAN', 0", "'SCAN' is not allowed"),
    "a computed command": ("'SET', bit", "'S' .. 'ET', bit", "the command must be a literal"),
    "a plain PUBLISH": ("'SET', bit .. id", "'PUBLISH', thing", "'PUBLISH' is not allowed"),
    "an unknown function": ("redis.call('SET', bit .. id, now)", "forget(thing)", "forget is no function"),
    "a key bound twice": ("return { 'NOT", "local thing = id\nreturn { 'NOT", "bound once, not 2"),
    "a key assigned anew": ("return { 'NOT", "thing = id\nreturn { 'NOT", "thing is assigned anew"),
    "one more KEYS": ("{ 'DONE', now }", "{ 'DONE', KEYS[3] }", "KEYS has 2 declared"),
    "one more ARGV": ("{ 'DONE', now }", "{ 'DONE', ARGV[3] }", "ARGV has 2 declared"),
    "KEYS as a list": ("{ 'DONE', now }", "{ 'DONE', #KEYS }", "KEYS as a list is not declared"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_a_bad_body_is_found(case: str) -> None:
    good, bad, message = BAD_BODIES[case]
    assert good in BODY
    assert message in faults(HEADER + BINDINGS + BODY.replace(good, bad))


BAD_HEADS = {
    "no header": (HEADER.partition("-- @include")[0], "#!lua\n", "needs a purpose and a REPLY"),
    "no shebang": ("#!lua\n", "", "first line must be #!lua"),
    "an unused ARGV": ("local id = ARGV[1]", "local id = 'x'", "ARGV has 2 declared"),
    "KEYS in another order": ("KEYS[1], KEYS[2]", "KEYS[2], KEYS[1]", "bound in header order"),
    "KEYS under another name": ("local thing, bit", "local thing, other", "under their names"),
    "a KEYS that is hidden in a call": (
        "bit = KEYS[1], KEYS[2]",
        "bit = KEYS[1], string.lower(KEYS[2])",
        "under their",
    ),
    "an include that is not there": ("now_us\n", "now_ns\n", "no function file now_ns"),
    "an include that is not called": ("now_us(ARGV[2])", "ARGV[2]", "includes now_us and does not call it"),
    "no-writes that writes": ("#!lua\n", "#!lua flags=no-writes\n", "writes, but says no-writes"),
    "an ARGV as an include's key": (
        "now_us(ARGV[2])",
        "now_us(ARGV[2])\nlease_drop(id, id, id)",
        "id is not a declared key",
    ),
}


@pytest.mark.parametrize("case", BAD_HEADS)
def test_a_bad_head_is_found(case: str) -> None:
    good, bad, message = BAD_HEADS[case]
    text = (HEADER + BINDINGS + BODY).replace(good, bad)
    if "lease_drop" in bad:
        text = text.replace("-- @include now_us", "-- @include now_us\n-- @include lease_drop")
    assert message in faults(text)


def test_a_script_that_only_reads_must_say_so() -> None:
    body = BODY.replace("redis.call('SET', bit .. id, now)", "redis.call('GET', bit .. id)")

    assert "writes nothing" in faults(HEADER + BINDINGS + body)
    assert faults((HEADER + BINDINGS + body).replace("#!lua\n", "#!lua flags=no-writes\n")) == ""


def test_a_loop_that_states_its_bound_is_allowed() -> None:
    loop = "-- bound: ten\nwhile n < 10 do n = n + 1 end\n"
    assert faults(HEADER + BINDINGS + "local n = 0\n" + loop + BODY) == ""


def test_an_included_function_may_append_to_a_prefix_that_it_is_given() -> None:
    include = (
        "-- Drop one.\nlocal function now_us(now, stem)\n"
        "  local one = stem .. now\n  redis.call('DEL', one)\nend\n"
    )
    text = HEADER + BINDINGS + BODY
    functions = FUNCTIONS | {"now_us": include}

    good = faults_of("thing_do", text.replace("now_us(ARGV[2])", "now_us(ARGV[2], bit)"), functions, SHARED)
    bad = faults_of("thing_do", text.replace("now_us(ARGV[2])", "now_us(ARGV[2], thing)"), functions, SHARED)

    assert good == []
    assert bad == ["thing_do: line 5: thing is not a declared prefix"]


def test_an_included_function_that_makes_a_key_is_found() -> None:
    bad = FUNCTIONS | {
        "now_us": "-- Bad.\nlocal function now_us(now)\n  return redis.call('GET', 'x')\nend\n"
    }

    assert "now_us line 3" in "\n".join(faults_of("thing_do", HEADER + BINDINGS + BODY, bad, SHARED))


@pytest.mark.parametrize(
    "text",
    [
        "-- Two.\nlocal function one()\nend\nlocal function two()\nend\n",
        "-- Other name.\nlocal function two()\nend\n",
        "-- Code outside.\nlocal function one()\nend\nlocal x = 1\n",
        "local function one()\nend\n",
    ],
)
def test_a_shared_file_that_is_not_one_function_is_found(text: str) -> None:
    assert include_faults("one", text) != []


def _loaded_scripts() -> set[str]:
    """First arguments of every `….script("name", …)` in the source."""
    return {
        str(node.args[0].value)
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "script"
        and node.args
        and isinstance(node.args[0], ast.Constant)
    }
