"""The systemd units: fresh, accepted by systemd, and made of commands and settings that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roost.cli.app import app
from roost.cli.units import UNITS, file_name, render
from roost.roles import ROLES
from roost.settings import Loaded
from tests.acceptance.conftest import Home

SYSTEMD = Path(__file__).resolve().parents[2] / "deploy" / "systemd"
SHIPPED = sorted(SYSTEMD.glob("*.service"))


def test_every_role_has_a_unit_and_the_committed_ones_are_fresh() -> None:
    assert set(UNITS) == {*ROLES, "dns", "forward"}
    for role in UNITS:
        fresh = "run python -m roost.cli.units deploy/systemd"
        assert (SYSTEMD / file_name(role)).read_text() == render(role), fresh


@pytest.mark.parametrize("unit", SHIPPED, ids=lambda path: path.name)
def test_every_command_of_a_unit_is_one_that_roost_has(unit: Path) -> None:
    found = re.findall(r"^Exec\w+=-?/usr/bin/env roost (.+)$", unit.read_text(), re.MULTILINE)
    assert found
    for line in found:
        words = line.partition(" -- ")[0].split()
        verbs = [word for word in words[:2] if re.fullmatch(r"[a-z][a-z-]*", word)]
        shown = CliRunner().invoke(app, [*verbs, "--help"], env={"COLUMNS": "300"})
        assert shown.exit_code == 0, shown.output
        for flag in (word for word in words if word.startswith("--")):
            assert re.search(rf"{flag}\b", shown.output), (line, flag)


@pytest.mark.parametrize("role", UNITS)
def test_the_settings_that_a_unit_names_are_read(role: str, tmp_path: Path) -> None:
    """As its environment file would have them, with the secrets in files."""
    environment = dict(setting.split("=", 1) for setting in UNITS[role].settings)
    secrets = {
        "store-url": "redis://roost-x:password@10.0.0.7",
        "token": "a-token-of-the-tests",
        "wire-secret": "a-secret-of-the-tests",
        "database-url": "postgresql://roost:password@10.0.0.8/roost",
    }
    for name in [name for name in environment if name.endswith("_FILE")]:
        kind = Path(environment[name]).name.partition(".")[0]
        file = tmp_path / kind
        file.write_text(secrets.get(kind, "k1:" + "a2V5IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMhISE="))
        environment[name] = str(file)
    loaded = Loaded.load(environ=environment)
    origins = {origin for _, _, origin in loaded.rows()}
    assert {f"env {name}" for name in environment} <= origins


@pytest.mark.parametrize("role", UNITS)
def test_a_unit_names_the_token_without_which_nobody_reads_its_metrics(role: str) -> None:
    """Every role shows /metrics, and outside profile dev to holders of a token alone."""
    names = [setting.partition("=")[0] for setting in UNITS[role].settings]
    assert UNITS[role].settings[0] == "ROOST_PROFILE=lan"
    assert "ROOST_API_TOKEN_FILE" in names


@pytest.mark.parametrize("role", UNITS)
def test_a_unit_reloads_where_there_is_a_password_to_read_again(role: str) -> None:
    assert ("ExecReload=/bin/kill -HUP $MAINPID" in render(role)) == (role != "gameserver")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs the Debian package systemd")
def test_systemd_accepts_what_install_units_writes(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "system"
    folder.mkdir()
    done = home.run("install-units", "--output", str(folder))
    assert done.returncode == 0, done.stderr
    shutil.copy(SYSTEMD / "roost-agent@.service", folder)
    files = sorted(folder.iterdir())
    assert len(files) == len(UNITS) + 1
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *map(str, files)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_ours = [line for line in checked.stderr.splitlines() if "roost" in line]
    assert (checked.returncode, about_ours) == (0, [])


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs the Debian package systemd")
def test_a_wrong_unit_would_be_seen(tmp_path: Path) -> None:
    wrong = tmp_path / "roost-wrong.service"
    wrong.write_text(render("gateway", "/no/such/roost").replace("Restart=always", "Restart=sometimes"))
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(wrong)], capture_output=True, text=True, check=False
    )
    assert checked.returncode != 0
    assert "sometimes" in checked.stderr


@pytest.mark.parametrize("role", UNITS)
def test_every_unit_is_closed_in_and_stops_in_its_time(role: str) -> None:
    text = render(role)
    for line in ("DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes", "LimitNOFILE=65536"):
        assert f"\n{line}\n" in text
    (stop_s,) = re.findall(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    settings = Loaded.load(environ={}).settings
    own = {"entity": settings.entity.stop_ms, "orders": settings.orders.stop_ms}
    assert int(stop_s) > 1.5 * own.get(role, 0) / 1000


def test_a_drain_of_a_full_server_fits_into_the_stop_of_its_unit() -> None:
    settings = Loaded.load(environ={}).settings
    needed_s = settings.entity.capacity / settings.binding.drain_rate + 30
    assert 2 * needed_s <= UNITS["entity"].stop_s
    assert "ExecStop=-/usr/bin/env roost drain start %i --follow" in render("entity")


def test_it_prints_the_path_of_the_program_that_runs(home: Home) -> None:
    printed = home.run("install-units", "--role", "gateway", "--etc", "/opt/etc").stdout
    assert re.search(r"^ExecStart=/\S+/roost gateway$", printed, re.MULTILINE)
    assert "EnvironmentFile=/opt/etc/gateway.env" in printed
    assert "/etc/roost" not in printed
    assert "no role nobody" in home.run("install-units", "--role", "nobody").stderr


@pytest.mark.parametrize("command", [("install-units", "--output"), ("acl", "--secrets")])
def test_a_folder_that_cannot_be_written_is_named(home: Home, command: tuple[str, ...]) -> None:
    home.folder.joinpath("file").touch()
    done = home.run(*command, "file/system")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False), done.stderr
    assert "roost: cannot" in done.stderr
    assert "file/system" in done.stderr
