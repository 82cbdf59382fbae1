"""What a client remembers of lists, and what it doubts."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from roost.api.discovery import Instance, InstanceList
from roost.sdk import memory
from roost.sdk.memory import CONFIRM_AFTER_S, ListDisk, ListGuard


def listed(ids: str, revision: int) -> InstanceList:
    """One instance per letter."""
    instances = [
        Instance("game", "eu", instance_id=id_, life="1", status="ready", accepting=True, last_heartbeat="")
        for id_ in ids
    ]
    return InstanceList(instances, revision)


EMPTY = ""
TEN = "abcdefghij"


@pytest.fixture
def guard() -> ListGuard:
    guard = ListGuard()
    guard.believe(listed(TEN, 100), 0.0)
    return guard


# -- the guard


def test_the_first_list_is_believed_also_when_it_is_empty() -> None:
    first = listed(EMPTY, 0)
    guard = ListGuard()
    assert guard.believe(first, 0.0) is first
    assert not guard.doubts


@pytest.mark.parametrize(
    ("ids", "revision"),
    [
        (TEN, 100),
        (TEN + "klm", 103),
        ("abcde", 100),  # half is gone: not more than half
        ("abcd", 106),  # six are gone and there were six changes
        (EMPTY, 110),
        (EMPTY, 5000),
    ],
)
def test_a_list_that_the_revisions_account_for_is_believed_at_once(
    guard: ListGuard, ids: str, revision: int
) -> None:
    fresh = listed(ids, revision)
    assert guard.believe(fresh, 1.0) is fresh
    assert not guard.doubts


@pytest.mark.parametrize(
    ("ids", "revision"),
    [(EMPTY, 0), (EMPTY, 100), (EMPTY, 109), ("abcd", 105), ("abcd", 3), ("xyz", 3)],
)
def test_a_list_that_lost_more_than_the_revisions_explain_is_doubted(
    guard: ListGuard, ids: str, revision: int
) -> None:
    believed = guard.believe(listed(ids, revision), 1.0)
    assert [i.instance_id for i in believed.instances] == list(TEN)
    assert guard.doubts


def test_g3_a_wiped_store_is_believed_only_ten_seconds_later(guard: ListGuard) -> None:
    wiped = listed(EMPTY, 0)
    for now in (1.0, 2.0, 1.0 + CONFIRM_AFTER_S - 0.001):
        assert guard.believe(wiped, now).revision == 100
        assert guard.doubts
    assert guard.believe(wiped, 1.0 + CONFIRM_AFTER_S) is wiped
    assert not guard.doubts


def test_a_doubt_that_a_good_list_ends_begins_anew_with_the_next(guard: ListGuard) -> None:
    guard.believe(listed(EMPTY, 0), 1.0)
    good = listed(TEN, 100)
    assert guard.believe(good, 5.0) is good
    assert not guard.doubts
    assert guard.believe(listed(EMPTY, 0), 12.0) is good
    assert guard.doubts


def test_a_store_that_was_wiped_and_fills_again_is_believed_as_soon_as_it_holds_half(
    guard: ListGuard,
) -> None:
    """The instances register again by themselves."""
    assert guard.believe(listed("ab", 2), 1.0).revision == 100
    assert guard.believe(listed("abcde", 5), 4.0).revision == 5


def test_a_single_instance_that_is_gone_without_a_change_is_doubted() -> None:
    guard = ListGuard()
    guard.believe(listed("a", 1), 0.0)
    assert len(guard.believe(listed(EMPTY, 0), 1.0).instances) == 1
    assert guard.believe(listed(EMPTY, 2), 2.0).instances == []


# -- the disk


def test_what_was_saved_is_loaded_with_its_age(tmp_path: Path) -> None:
    ListDisk(tmp_path / "new", "here").save("game", "eu", listed("ab", 7))
    found = ListDisk(tmp_path / "new", "here").load("game", "eu")
    assert found is not None
    assert found[0] == listed("ab", 7)
    assert 0 <= found[1] < 60


def test_the_age_is_that_of_the_file(tmp_path: Path) -> None:
    disk = ListDisk(tmp_path, "here")
    disk.save("game", "eu", listed("ab", 7))
    (file,) = tmp_path.iterdir()
    os.utime(file, (time.time() - 500, time.time() - 500))
    found = disk.load("game", "eu")
    assert found is not None
    assert 499 < found[1] < 560
    os.utime(file, (time.time() + 500, time.time() + 500))
    found = disk.load("game", "eu")
    assert found is not None
    assert found[1] == 0.0


def test_every_question_and_every_store_has_a_file_of_its_own(tmp_path: Path) -> None:
    here, there = ListDisk(tmp_path, "here"), ListDisk(tmp_path, "there")
    here.save("game", "eu", listed("a", 1))
    here.save("game", "*", listed("b", 2))
    there.save("game", "eu", listed("c", 3))
    revisions = [
        found[0].revision
        for disk, group in ((here, "eu"), (here, "*"), (there, "eu"))
        if (found := disk.load("game", group)) is not None
    ]
    assert revisions == [1, 2, 3]
    assert there.load("game", "*") is None


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\x00", b"[]", b'{"instances":[{}],"revision":1}'])
def test_a_damaged_file_is_no_list(tmp_path: Path, content: bytes) -> None:
    disk = ListDisk(tmp_path, "here")
    disk.save("game", "eu", listed("ab", 7))
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert disk.load("game", "eu") is None


def test_it_writes_at_most_once_a_second_per_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(memory, "time", SimpleNamespace(monotonic=lambda: now, time=time.time))
    disk = ListDisk(tmp_path, "here")

    def revision() -> int:
        found = disk.load("game", "eu")
        assert found is not None
        return found[0].revision

    disk.save("game", "eu", listed("a", 1))
    now += 0.9
    disk.save("game", "eu", listed("a", 2))
    disk.save("game", "us", listed("a", 9))
    assert revision() == 1
    now += 0.2
    disk.save("game", "eu", listed("a", 3))
    assert revision() == 3


def test_nothing_is_left_beside_the_lists(tmp_path: Path) -> None:
    disk = ListDisk(tmp_path, "here")
    disk.save("game", "eu", listed("a", 1))
    assert [file.suffix for file in tmp_path.iterdir()] == [".json"]


def test_a_disk_that_refuses_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    disk = ListDisk(tmp_path / "file", "here")
    disk.save("game", "eu", listed("a", 1))
    assert disk.load("game", "eu") is None


def test_the_folder_is_private(tmp_path: Path) -> None:
    ListDisk(tmp_path / "new", "here").save("game", "eu", listed("a", 1))
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
