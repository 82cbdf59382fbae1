"""Keys that sign: those that were configured, or one that a machine of a developer makes for itself."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from roost.api.queue import EntryInput
from roost.core.errors import TokenRefused, WorldClosed
from roost.core.passes import Receipt, sign_entry
from roost.core.signing import parse_keys
from roost.waitingroom.keyring import KeyRing
from tests.unit.waitingroom.desk import KEY

RECEIPT = Receipt("main", "ann", 1, 2, "", 3)


def test_without_keys_nothing_is_signed_outside_of_profile_dev() -> None:
    for ring in (KeyRing("", KEY), KeyRing(KEY, "")):
        assert not ring.takes_unsigned
        with pytest.raises(WorldClosed, match="KEYS is not set"):
            _ = ring.passes


def test_in_profile_dev_a_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    first, second = KeyRing("", "", dev_folder=folder), KeyRing("", "", dev_folder=folder)
    assert not folder.exists(), "nothing is made before it is used"
    token = first.passes.sign_receipt(RECEIPT)
    assert second.passes.receipt(token, "main", "ann") == RECEIPT
    assert stat.S_IMODE((folder / "dev-keys").stat().st_mode) == 0o600
    assert [path.name for path in folder.iterdir()] == ["dev-keys"]


def test_an_entry_without_a_signature_is_taken_in_profile_dev_without_keys_only(tmp_path: Path) -> None:
    given = EntryInput("ann", party="p1", party_size=2)
    entry = KeyRing("", "", dev_folder=tmp_path).entry_pass(given)
    assert (entry.user, entry.party, entry.size) == ("ann", "p1", 2)
    for ring in (KeyRing(KEY, KEY), KeyRing(KEY, KEY, dev_folder=tmp_path)):
        with pytest.raises(TokenRefused, match="needs the signature"):
            ring.entry_pass(given)


def test_what_the_login_service_signed_counts_and_not_what_they_say(tmp_path: Path) -> None:
    signature = sign_entry(parse_keys(KEY), user="ann", class_="vip")
    given = EntryInput("ann", signature=signature, party="p1", party_size=2)
    entry = KeyRing(KEY, KEY, dev_folder=tmp_path).entry_pass(given)
    assert (entry.class_, entry.party, entry.size) == ("vip", "", 1)
