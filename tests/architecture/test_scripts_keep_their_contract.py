"""Every Lua script under src/roost keeps the contract in its header, and the checker would see it if not."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from roost.store.contract import parse_script
from tests.architecture.lua_checker import faults_of, include_faults
from tests.architecture.lua_numbers import joined_numbers
from tests.architecture.source import PACKAGE, modules

SHARED = PACKAGE / "store" / "lua"
FILES = sorted(PACKAGE.rglob("*.lua"))
SCRIPTS = [file for file in FILES if file.read_text(encoding="utf-8").startswith("#!lua")]
SHORT = [file for file in FILES if file not in SCRIPTS]
MAX_LINES = 100


def functions_for(folder: Path) -> dict[str, str]:
    """The function files that a script of this folder may include: its own first, then the shared ones."""
    mine = {file.stem: file.read_text(encoding="utf-8") for file in SHORT if file.parent == folder}
    shared = {file.stem: file.read_text(encoding="utf-8") for file in SHORT if file.parent == SHARED}
    return shared | mine


FUNCTIONS = functions_for(SHARED)


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_keeps_its_contract(file: Path) -> None:
    functions = functions_for(file.parent)
    assert faults_of(file.stem, file.read_text(encoding="utf-8"), functions, file.parent, SHARED) == []


@pytest.mark.parametrize(
    "file", [file for file in FILES if "waitingroom" not in file.parts], ids=lambda file: file.stem
)
def test_no_number_is_joined_to_text_as_it_is(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    args = parse_script(file.stem, text, file.parent, SHARED).args if file in SCRIPTS else ()
    assert joined_numbers(file.stem, text, {p.name for p in args if p.type == "int"}) == []


@pytest.mark.parametrize(
    "body",
    [
        "local n = tonumber('1')\nlocal s = 'a' .. n",
        "local n = x * 1000\nlocal s = n .. 'a'",
        "local n = math.max(1, 2)\nlocal s = table.concat({ 'a', n }, ',')",
        "local s = 'a' .. args.at .. 'b'",
        "local function f(keys, now)\n  return 'a' .. now\nend",
    ],
)
def test_a_number_that_is_joined_as_it_is_is_found(body: str) -> None:
    assert joined_numbers("bad", body, {"at"})


def test_a_number_that_is_written_out_first_may_be_joined() -> None:
    good = "local n = now_us(args.now)\nlocal s = 'a' .. int(n) .. string.format('%.0f', n) .. n.x .. args.id"
    assert joined_numbers("good", good, {"now"}) == []


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.stem)
def test_a_script_has_a_typed_function_in_python(file: Path) -> None:
    assert (file.parent.parent.name, file.stem) in _loaded_scripts()


@pytest.mark.parametrize("name", [file.stem for file in SHORT])
def test_a_shared_file_is_one_function_of_its_name(name: str) -> None:
    for file in SHORT:
        if file.stem == name:
            assert include_faults(name, file.read_text(encoding="utf-8")) == []


def test_script_names_are_unique() -> None:
    """Within a capability, and against the shared ones: two capabilities may both have a `status`."""
    names = [(file.parent.parent.name, file.stem) for file in FILES]
    assert len(set(names)) == len(names)
    shared = {file.stem for file in FILES if file.parent == SHARED}
    assert [file for file in FILES if file.parent != SHARED and file.stem in shared] == []


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
local id = args.id
local now = now_us(args.now)
"""
BODY = """
if redis.call('HEXISTS', keys.thing, id) == 1 then
  redis.call('SET', keys.bit .. id, now)
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
    for walk in (
        "for _, one in ipairs(keys.many) do redis.call('DEL', one) end",
        "for at = 1, #keys.many do redis.call('DEL', keys.many[at]) end",
    ):
        body = BODY.replace("redis.call('SET', keys.bit .. id, now)", walk)
        assert faults(header + BINDINGS + body) == ""


def test_a_name_made_from_a_prefix_is_a_key() -> None:
    body = BODY.replace(
        "redis.call('SET', keys.bit .. id, now)", "local one = keys.bit .. id\n  redis.call('SET', one, now)"
    )
    assert faults(HEADER + BINDINGS + body) == ""


BAD_BODIES = {
    "a literal key": ("keys.thing, id)", "'roost:other', id)", "'roost:other' is not a declared key"),
    "a key from ARGV": ("keys.thing, id)", "id, id)", "id is not a declared key"),
    "a prefix used as a key": ("keys.bit .. id, now", "keys.bit, now", "keys . bit is not a declared key"),
    "an id before the prefix": (
        "keys.bit .. id, now",
        "id .. keys.bit, now",
        "id .. keys . bit is not a declared key",
    ),
    "an appended key": (
        "keys.bit .. id, now",
        "keys.thing .. id, now",
        "keys . thing .. id is not a declared key",
    ),
    "an undeclared key": ("keys.bit .. id, now", "keys.other .. id, now", "keys.other is not declared"),
    "an undeclared argument": ("{ 'DONE', now }", "{ 'DONE', args.other }", "args.other is not declared"),
    "an undeclared word": ("{ 'NOT_DONE' }", "{ 'MAYBE' }", "MAYBE is not in REPLY"),
    "a word never returned": ("return { 'NOT_DONE' }\n", "", "never returned"),
    "a missing field": ("{ 'DONE', now }", "{ 'DONE' }", "DONE has 1 fields in REPLY and 0 here"),
    "an answer that is no word": ("{ 'NOT_DONE' }", "false", "must be written as return"),
    "an endless loop": ("return { 'NOT", "while true do end\nreturn { 'NOT", "without a `-- bound:`"),
    "a repeat loop": ("return { 'NOT", "repeat local x = 1 until x\nreturn { 'NOT", "without a `-- bound:`"),
    "KEYS": ("'HEXISTS', keys.thing, id", "'KEYS', '*'", "'KEYS' is not allowed"),
    "SCAN": ("'HEXISTS', keys.thing, id", "'SCAN', 0", "'SCAN' is not allowed"),
    "a computed command": ("'SET', keys.bit", "'S' .. 'ET', keys.bit", "the command must be a literal"),
    "a plain PUBLISH": ("'SET', keys.bit .. id", "'PUBLISH', keys.thing", "'PUBLISH' is not allowed"),
    "an unknown function": (
        "redis.call('SET', keys.bit .. id, now)",
        "forget(keys.thing)",
        "forget is no function",
    ),
    "a key assigned anew": ("return { 'NOT", "keys.thing = id\nreturn { 'NOT", "keys is assigned anew"),
    "the keys assigned anew": ("return { 'NOT", "keys = {}\nreturn { 'NOT", "keys is assigned anew"),
    "a key by its number": ("{ 'DONE', now }", "{ 'DONE', KEYS[1] }", "what came in is keys.name"),
    "an argument by its number": ("{ 'DONE', now }", "{ 'DONE', ARGV[1] }", "what came in is args.name"),
}


@pytest.mark.parametrize("case", BAD_BODIES)
def test_a_bad_body_is_found(case: str) -> None:
    good, bad, message = BAD_BODIES[case]
    assert good in BODY
    assert message in faults(HEADER + BINDINGS + BODY.replace(good, bad))


BAD_HEADS = {
    "no header": (HEADER.partition("-- @include")[0], "#!lua\n", "needs a purpose and a REPLY"),
    "no shebang": ("#!lua\n", "", "first line must be #!lua"),
    "an unused ARGV": ("local id = args.id", "local id = 'x'", "ARGV declares ['id'], which nobody uses"),
    "an unused key": (
        "redis.call('SET', keys.bit .. id, now)",
        "",
        "KEYS declares ['bit'], which nobody uses",
    ),
    "an include that is not there": ("now_us\n", "now_ns\n", "no function file now_ns"),
    "an include that is not called": ("now_us(args.now)", "args.now", "includes now_us and does not call it"),
    "no-writes that writes": ("#!lua\n", "#!lua flags=no-writes\n", "writes, but says no-writes"),
    "an ARGV as an include's key": (
        "now_us(args.now)",
        "now_us(args.now)\nlease_drop(id, id, id)",
        "id is not a declared key",
    ),
    "a group that is not there": (
        "-- KEYS\n",
        "-- KEYS @nowhere\n--   x\n-- KEYS\n",
        "no group of keys @nowhere",
    ),
    "a name that the group does not have": (
        "-- KEYS\n",
        "-- KEYS @discovery\n--   index wrong\n-- KEYS\n",
        "store/keys/discovery.py declares no key 'wrong'",
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
    body = BODY.replace("redis.call('SET', keys.bit .. id, now)", "redis.call('GET', keys.bit .. id)")

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

    good = faults_of(
        "thing_do", text.replace("now_us(args.now)", "now_us(args.now, keys.bit)"), functions, SHARED
    )
    bad = faults_of(
        "thing_do", text.replace("now_us(args.now)", "now_us(args.now, keys.thing)"), functions, SHARED
    )

    assert good == []
    assert bad == ["thing_do: line 4: keys . thing is not a declared prefix"]


def test_a_function_that_takes_the_keys_is_held_to_the_contract_of_its_caller() -> None:
    include = (
        "-- Look.\nlocal function now_us(keys, now)\n  return redis.call('GET', keys.other .. now)\nend\n"
    )
    text = (HEADER + BINDINGS + BODY).replace("now_us(args.now)", "now_us(keys, args.now)")

    found = faults_of("thing_do", text, FUNCTIONS | {"now_us": include}, SHARED)

    assert found == [
        "thing_do: keys.other is not declared under KEYS",
        "thing_do: now_us line 3: keys . other .. now is not a declared key",
    ]


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


def _loaded_scripts() -> set[tuple[str, str]]:
    """(capability, name) of every `script("name", …)` in a `scripts.py`, and of the store's own calls."""
    return {
        (module.group, str(constant.value))
        for module in modules().values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and _name_of(node.func) == "script"
        for constant in node.args[:2]
        if isinstance(constant, ast.Constant)
    }


def _name_of(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
