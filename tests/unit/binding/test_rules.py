from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.binding.rules import (
    MAX_EPOCH,
    capacity_share,
    check_epoch,
    check_owner,
    check_version,
    parse_types,
    parse_versions,
    partition_of,
)
from roost.binding.settings import BindingSettings
from roost.core.errors import InvalidId, InvalidInput
from roost.core.owner import Owner


def test_a_user_is_in_the_same_partition_in_every_process_and_version() -> None:
    """Another answer would be another home: these are fixed for ever."""
    found = [partition_of("entity", user, 16) for user in ("ann", "bob", "501", "ünï")]
    assert found == [5, 6, 6, 10]
    assert partition_of("room", "ann", 16) != partition_of("entity", "ann", 16)


@given(st.text(min_size=1), st.integers(1, 64))
def test_there_is_always_a_partition(user: str, count: int) -> None:
    assert 0 <= partition_of("entity", user, count) < count


def test_users_spread_evenly() -> None:
    spread = Counter(partition_of("entity", f"user{number}", 16) for number in range(16_000))
    assert min(spread.values()) > 850
    assert max(spread.values()) < 1150


@given(st.integers(0, 2**31), st.integers(1, 64))
def test_the_shares_of_a_capacity_are_no_less_than_the_whole(capacity: int, partitions: int) -> None:
    share = capacity_share(capacity, partitions)
    assert capacity <= share * partitions < capacity + partitions


def test_types_are_names_each_once() -> None:
    assert parse_types("entity, room") == ("entity", "room")
    for bad in ("", "a,,b", "a:b", "a,a", ",".join(map(str, range(33)))):
        with pytest.raises((InvalidInput, InvalidId)):
            parse_types(bad)


def test_versions_are_by_type_each_once() -> None:
    assert parse_versions(" entity=2.0, room = 1.1-rc ") == {"entity": "2.0", "room": "1.1-rc"}
    assert parse_versions("") == {}
    for bad in ("2.0", "entity=", "a:b=1", "a=1,a=2", "a=1,", "a=1\t2", f"a={'1' * 300}"):
        with pytest.raises((InvalidInput, InvalidId)):
            parse_versions(bad)
    assert BindingSettings(versions="entity").faults()


def test_what_cannot_be_an_owner_an_epoch_or_a_version_is_refused() -> None:
    check_owner(Owner("501", "7"))
    for bad in (
        Owner("", "7"),
        Owner("5:1", "7"),
        Owner("5{1", "7"),
        Owner("501", ""),
        Owner("501", "1" * 17),
    ):
        with pytest.raises((InvalidInput, InvalidId)):
            check_owner(bad)
    assert check_epoch(MAX_EPOCH) == MAX_EPOCH
    for epoch in (-1, MAX_EPOCH + 1):
        with pytest.raises(InvalidInput):
            check_epoch(epoch)
    with pytest.raises(InvalidInput):
        check_version("1\n0", 255)


@pytest.mark.parametrize(
    "settings",
    [
        BindingSettings(types=""),
        BindingSettings(partitions=0),
        BindingSettings(partitions=65),
        BindingSettings(lease_ms=1000, beat_ms=500),
        BindingSettings(lease_ms=6000, beat_ms=4000),
        BindingSettings(strategy="magic"),
        BindingSettings(idle_seconds=-1),
    ],
)
def test_a_bad_setting_is_named(settings: BindingSettings) -> None:
    assert len(settings.faults()) == 1


def test_the_defaults_have_no_fault() -> None:
    assert BindingSettings().faults() == []
