"""Which texts may become part of a key."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidId
from roost.core.ids import MAX_ID_BYTES, check_id, check_name, new_ulid
from roost.store import scopes
from roost.store.keys import Keys
from roost.store.topology.cluster import slot_of


@pytest.mark.parametrize(
    "text", ["a", "501", "u-1", "a:b", "Ærøskøbing", "玩家", "x" * MAX_ID_BYTES, "ü" * 64]
)
def test_an_ordinary_id_is_returned_as_it_is(text: str) -> None:
    assert check_id(text) == text


@pytest.mark.parametrize(
    "text",
    ["", "a b", "a{b", "a}b", "a\x00b", "a\nb", "a\tb", "a\x7fb", "a\x85b", "a\xa0b", "a\u2028b", "a\ud800b"],
)
def test_an_id_that_would_change_or_hide_in_a_key_is_refused(text: str) -> None:
    with pytest.raises(InvalidId):
        check_id(text)


@pytest.mark.parametrize("text", ["x" * (MAX_ID_BYTES + 1), "ü" * 65, "玩" * 43])
def test_the_length_of_an_id_is_counted_in_bytes(text: str) -> None:
    with pytest.raises(InvalidId, match="bytes, at most 128"):
        check_id(text)


def test_the_message_names_what_was_wrong_and_where() -> None:
    with pytest.raises(InvalidId, match=r"user id 'a\{b' holds '\{' at position 1"):
        check_id("a{b", "user id")


def test_the_message_does_not_repeat_an_endless_id() -> None:
    with pytest.raises(InvalidId) as caught:
        check_id("x" * 100_000)
    assert len(caught.value.message) < 200


def test_a_name_is_an_id_without_colons() -> None:
    assert check_name("main") == "main"
    with pytest.raises(InvalidId, match="holds ':'"):
        check_name("a:b")
    with pytest.raises(InvalidId):
        check_name("")


@given(st.text(min_size=1, max_size=80))
def test_whatever_passes_as_a_scope_keeps_its_keys_in_one_slot(text: str) -> None:
    try:
        scope = scopes.world(text)
    except InvalidId:
        return
    keys = Keys("space")
    slots = {slot_of(key) for key in (keys.feed(scope), keys.bell(scope), keys.leader(scope))}
    assert slots == {slot_of(text.encode())}


# -- ULIDs

MAX_ULID_MS = 2**48 - 1


@pytest.mark.parametrize(
    ("now_ms", "entropy", "ulid"),
    [
        (0, bytes(10), "00000000000000000000000000"),
        (MAX_ULID_MS, b"\xff" * 10, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"),
        (1_469_918_176_385, bytes(10), "01ARYZ6S410000000000000000"),
        (1_469_918_176_385, bytes.fromhex("d6764c61efb99302bd5b"), "01ARYZ6S41TSV4RRFFQ69G5FAV"),
    ],
)
def test_a_ulid_is_time_and_chance_in_crockfords_letters(now_ms: int, entropy: bytes, ulid: str) -> None:
    assert new_ulid(now_ms, entropy) == ulid


@given(st.integers(0, MAX_ULID_MS), st.binary(min_size=10, max_size=10))
def test_a_ulid_has_26_characters_and_may_be_an_id(now_ms: int, entropy: bytes) -> None:
    ulid = new_ulid(now_ms, entropy)
    assert len(ulid) == 26
    assert check_name(ulid) == ulid
    assert not set(ulid) & set("ILOU")


@given(st.integers(0, MAX_ULID_MS - 1), st.integers(1, 10**9))
def test_ulids_sort_by_time_whatever_chance_says(now_ms: int, step_ms: int) -> None:
    later_ms = min(now_ms + step_ms, MAX_ULID_MS)
    assert new_ulid(now_ms, b"\xff" * 10) < new_ulid(later_ms, bytes(10))


def test_ulids_of_one_millisecond_differ() -> None:
    assert len({new_ulid(1) for _ in range(1000)}) == 1000


def test_a_ulid_is_made_of_the_present_time() -> None:
    before = new_ulid(time.time_ns() // 1_000_000, bytes(10))
    ulid = new_ulid()
    after = new_ulid(time.time_ns() // 1_000_000, b"\xff" * 10)
    assert before <= ulid <= after
