"""The header of a script is its contract: what is well-formed is read, the rest does not load."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.store.contract import Contract, ContractError, Parameter, Reply, parse_script

GOOD = """\
#!lua
-- Do a thing. Then explain it
-- at some length.
--
-- KEYS
--   thing     hash    what it is about
--   bit*      string  one for each id
-- ARGV
--   id        string  which
--   amount    int
--   raw       bytes   as it is
--   rest...   string  and more
-- REPLY
--   DONE at:int names:[string]   it was done
--   NOT_DONE                     it was not
-- FLAGS idempotent bulk

-- @include outer

return { 'NOT_DONE' }
"""


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "inner.lua").write_text("-- Inner.\nlocal function inner()\nend\n")
    (tmp_path / "outer.lua").write_text("-- Outer.\n-- @include inner\nlocal function outer()\nend\n")
    return tmp_path


def parse(text: str, shared: Path) -> Contract:
    return parse_script("thing_do", text, shared)


def test_a_contract_says_everything_that_a_caller_needs(shared: Path) -> None:
    contract = parse(GOOD, shared)

    assert contract.name == "thing_do"
    assert contract.purpose == "Do a thing"
    assert contract.keys == (
        Parameter("thing", "hash", "what it is about"),
        Parameter("bit", "string", "one for each id", prefix=True),
    )
    assert contract.args == (
        Parameter("id", "string", "which"),
        Parameter("amount", "int", ""),
        Parameter("raw", "bytes", "as it is"),
        Parameter("rest", "string", "and more", many=True),
    )
    assert contract.replies == (
        Reply("DONE", (("at", "int"), ("names", "[string]")), "it was done"),
        Reply("NOT_DONE", (), "it was not"),
    )
    assert contract.flags == {"idempotent", "bulk"}
    assert contract.writes


def test_the_source_holds_each_include_once_before_its_user(shared: Path) -> None:
    source = parse(GOOD.replace("@include outer", "@include outer\n-- @include inner"), shared).source

    assert source.splitlines() == [
        "#!lua",
        "local function inner()",
        "end",
        "local function outer()",
        "end",
        "return { 'NOT_DONE' }",
    ]


def test_names_become_positions_and_ints_numbers(shared: Path) -> None:
    uses = (
        "local a = keys.bit .. args.id .. args.amount .. #args.rest .. ctx.keys.thing\nreturn { 'NOT_DONE' }"
    )
    lines = parse(GOOD.replace("return { 'NOT_DONE' }", uses), shared).source.splitlines()

    assert {"local keys = KEYS", "local args = ARGV", "local args_rest = rest(args, 4)"} <= set(lines)
    assert "local a = keys[2] .. args[1] .. tonumber(args[2]) .. #args_rest .. ctx.keys[1]" in lines


def test_an_indented_include_stands_where_it_is_written(shared: Path) -> None:
    """With what it needs, but for what is above already: a rare branch costs the others nothing."""
    text = GOOD.replace(
        "-- @include outer\n\nreturn { 'NOT_DONE' }",
        "-- @include inner\n\nif x then\n  -- @include outer\n  outer()\nend\nreturn { 'NOT_DONE' }",
    )
    alone = text.replace("-- @include inner\n\n", "")

    assert parse(text, shared).source.splitlines()[1:-1] == [
        *("local function inner()", "end", "if x then", "local function outer()", "end", "  outer()", "end")
    ]
    assert parse(alone, shared).source.splitlines()[1:5] == [
        *("if x then", "local function inner()", "end", "local function outer()")
    ]


def test_the_name_of_the_source_is_its_sha1(shared: Path) -> None:
    contract = parse(GOOD, shared)
    assert len(contract.sha) == 40
    assert contract.sha != parse(GOOD.replace("'NOT_DONE'", "'DONE'"), shared).sha


def test_comments_do_not_change_what_the_store_runs(shared: Path) -> None:
    assert parse(GOOD.replace("what it is about", "something"), shared).sha == parse(GOOD, shared).sha


def test_a_script_may_promise_not_to_write(shared: Path) -> None:
    assert not parse(GOOD.replace("#!lua\n", "#!lua flags=no-writes\n"), shared).writes


def test_keys_and_arguments_may_be_missing(shared: Path) -> None:
    contract = parse("#!lua\n-- Say hello.\n-- REPLY\n--   HELLO  always\nreturn { 'HELLO' }\n", shared)
    assert (contract.keys, contract.args, contract.flags) == ((), (), frozenset())


BAD = {
    "no shebang": ("#!lua\n", "", "first line"),
    "another shebang": ("#!lua\n", "#!js\n", "first line"),
    "a shebang with words": ("#!lua\n", "#!lua name=x\n", "first line"),
    "no purpose": ("-- Do a thing. Then explain it\n-- at some length.\n", "", "purpose"),
    "an unknown key type": ("hash    what", "table   what", "not `name type meaning`"),
    "an unknown argument type": ("int\n", "float\n", "not `name type meaning`"),
    "a name in capitals": ("--   thing ", "--   Thing ", "not `name type meaning`"),
    "a line that is not indented": ("--   id  ", "-- id    ", "not `name type meaning`"),
    "a parameter after the list": ("--   raw  ", "--   raw...", "only the last may be many"),
    "an unknown reply type": ("at:int", "at:float", "'float' is none of"),
    "a reply in small letters": ("--   NOT_DONE ", "--   not_done ", "not `WORD field:type"),
    "a field without a type": ("at:int", "at", "not `WORD field:type"),
    "an unknown flag": ("idempotent bulk", "idempotent fast", r"unknown FLAGS \['fast'\]"),
    "an include that is not there": ("@include outer", "@include other", "no function file other.lua"),
    "a name given twice": ("--   raw  ", "--   id   ", "id is given twice"),
    "a key and an argument of one name": ("--   raw  ", "--   thing", "thing is given twice"),
    "a reply word given twice": ("--   NOT_DONE ", "--   DONE     ", "DONE is given twice"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_well_formed_does_not_load(case: str, shared: Path) -> None:
    good, bad, message = BAD[case]
    assert good in GOOD
    with pytest.raises(ContractError, match=message) as caught:
        parse(GOOD.replace(good, bad, 1), shared)
    assert str(caught.value).startswith("thing_do: ")


def test_a_script_without_replies_does_not_load(shared: Path) -> None:
    with pytest.raises(ContractError, match="REPLY"):
        parse("#!lua\n-- Do it.\nreturn 1\n", shared)


def test_an_empty_file_does_not_load(shared: Path) -> None:
    with pytest.raises(ContractError, match="first line"):
        parse("", shared)
