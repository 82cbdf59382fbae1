"""Which texts may become part of a key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.errors import InvalidId
from roost.core.ids import MAX_ID_BYTES, check_id, check_name, check_scope
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
        scope = check_scope(text)
    except InvalidId:
        return
    keys = Keys("space")
    slots = {slot_of(key) for key in (keys.feed(scope), keys.bell(scope), keys.leader(scope))}
    assert slots == {slot_of(text.encode())}
