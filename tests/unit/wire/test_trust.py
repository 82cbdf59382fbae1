"""The secret of profile dev is made once; certificates that cannot be read stop a start with the reason."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from roost.core.errors import StartFailed
from roost.wire.settings import WireSettings
from roost.wire.trust import client_tls, server_tls, wire_secret


def test_the_configured_secret_is_the_secret(tmp_path: Path) -> None:
    assert wire_secret("sixteen letters!", tmp_path) == b"sixteen letters!"
    assert list(tmp_path.iterdir()) == []


def test_profile_dev_makes_one_and_finds_it_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    made = wire_secret("", folder)
    assert len(made) >= 32
    assert wire_secret("", folder) == made
    (file,) = folder.iterdir()
    assert file.name == "wire-secret"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_processes_that_start_at_once_have_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: wire_secret("", tmp_path), range(16)))
    assert len(found) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["wire-secret"]


def test_another_profile_must_be_given_one() -> None:
    with pytest.raises(StartFailed, match="ROOST_WIRE_SECRET"):
        wire_secret("", None)


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff" * 40])
def test_a_file_without_a_secret_stops_the_start_and_is_not_repeated(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "wire-secret").write_bytes(content)
    with pytest.raises(StartFailed, match="wire-secret") as failed:
        wire_secret("", tmp_path)
    assert "short" not in failed.value.message


def test_without_files_there_is_no_tls() -> None:
    assert server_tls("", "") is None
    assert client_tls("") is None


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing.pem")
    with pytest.raises(StartFailed, match=r"missing\.pem"):
        server_tls(missing, missing)
    with pytest.raises(StartFailed, match=r"missing\.pem"):
        client_tls(missing)


def test_settings_become_limits_in_seconds() -> None:
    limits = WireSettings(wait_ms=250, max_frame_bytes=2048).limits()
    assert (limits.wait_s, limits.max_frame_bytes, limits.handshake_s) == (0.25, 2048, 5.0)


def test_settings_that_do_not_fit_are_named() -> None:
    assert WireSettings().faults() == []
    assert WireSettings(silence_ms=9000).faults() == [
        "silence_ms is 9000, must be at least three times ping_ms"
    ]
    assert WireSettings(tls_cert="a.pem").faults() == ["tls_cert and tls_key belong together"]
    assert WireSettings(max_frame_bytes=10).faults() == ["max_frame_bytes is 10, must be at least 1024"]
