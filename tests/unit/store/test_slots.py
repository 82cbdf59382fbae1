"""Which cluster slot a key belongs to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.store.topology.cluster import SLOTS, slot_of


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        (b"123456789", 12739),
        (b"foo", 12182),
        (b"bar", 5061),
        (b"", 0),
        (b"{user1000}.following", 3443),
        (b"{user1000}.followers", 3443),
        (b"user1000", 3443),
    ],
)
def test_known_keys_are_in_their_known_slots(key: bytes, slot: int) -> None:
    assert slot_of(key) == slot


@pytest.mark.parametrize(
    ("key", "part"),
    [
        (b"foo{bar}{zap}", b"bar"),
        (b"foo{{bar}}zap", b"{bar"),
        (b"}x{bar}", b"bar"),
    ],
)
def test_the_first_tag_decides(key: bytes, part: bytes) -> None:
    assert slot_of(key) == slot_of(part)


@pytest.mark.parametrize("key", [b"foo{}{bar}", b"foo{bar", b"foo}bar{", b"{}"])
def test_a_key_without_a_proper_tag_counts_as_a_whole(key: bytes) -> None:
    assert slot_of(key) == slot_of(b"{" + key.replace(b"}", b"%") + b"}") or b"}" in key
    assert slot_of(key) != slot_of(b"bar")


@given(st.binary(max_size=40))
def test_every_key_has_a_slot(key: bytes) -> None:
    assert 0 <= slot_of(key) < SLOTS
