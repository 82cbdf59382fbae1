"""The other commands: what they print for people, for programs, and when something is wrong."""

from __future__ import annotations

import json
import os
import tomllib

import pytest

from roost.testing import free_port, run_valkey
from roost.version import __version__
from tests.acceptance.conftest import Home

SECRET = "this-is-a-secret-token"


def test_version(home: Home) -> None:
    assert home.run("version").stdout == f"roost {__version__}\n"
    assert json.loads(home.run("version", "--json").stdout) == {"version": __version__}


@pytest.mark.parametrize("command", ["up", "gateway", "status", "doctor", "config"])
def test_every_command_has_help_with_an_example(home: Home, command: str) -> None:
    result = home.run(command, "--help")
    assert result.returncode == 0
    assert "Example" in result.stdout


def test_status_shows_the_running_roost(home: Home) -> None:
    up = home.up()
    assert up.url in home.run("status").stdout
    found = json.loads(home.run("status", "--json").stdout)
    assert found["pid"] == up.process.pid
    assert found["store"]["nodes"][0]["connected"] is True


def test_status_without_a_roost_says_how_to_start_one(home: Home) -> None:
    result = home.run("status", "--url", f"http://127.0.0.1:{free_port()}")
    assert result.returncode == 1
    assert "roost up" in result.stderr


def test_status_with_a_wrong_token_is_refused_clearly(home: Home) -> None:
    home.up()
    result = home.run("status", ROOST_API_TOKEN="a-token-nobody-issued")
    assert result.returncode == 1
    assert "UNAUTHENTICATED" in result.stderr


def test_config_shows_values_origins_and_no_secret(home: Home) -> None:
    home.folder.joinpath("roost.toml").write_text('log_level = "debug"\n[gateway]\nport = 9100\n')
    env = {
        "ROOST_CONFIG": "roost.toml",
        "ROOST_API_TOKEN": SECRET,
        "ROOST_STORE": "redis://me:hunter2hunter2@localhost",
        "ROOST_LINK__MAX_WAITING": "7",
    }
    rows = {
        row["name"]: (row["value"], row["origin"])
        for row in json.loads(home.run("config", "--json", **env).stdout)
    }
    assert rows["log_level"] == ("debug", "file roost.toml")
    assert rows["gateway.port"] == ("9100", "file roost.toml")
    assert rows["link.max_waiting"] == ("7", "env ROOST_LINK__MAX_WAITING")
    assert rows["api_token"] == ("***", "env ROOST_API_TOKEN")
    assert rows["store"] == ("redis://me:***@localhost:6379", "env ROOST_STORE")
    printed = home.run("config", **env).stdout
    assert SECRET not in printed
    assert "hunter2" not in printed


def test_config_reports_all_faults_at_once(home: Home) -> None:
    result = home.run("config", ROOST_STORE="http://x", ROOST_GATEWAY__PORT="many", ROOST_LOG_LEVEL="loud")
    assert result.returncode == 1
    assert "3 settings to change" in result.stderr
    for name in ("store", "gateway.port", "log_level"):
        assert name in result.stderr


def test_the_example_is_valid_toml_with_every_line_uncommented(home: Home) -> None:
    text = home.run("config", "--example").stdout
    lines = [line.removeprefix("# ") if " = " in line else line for line in text.splitlines()]
    values = tomllib.loads("\n".join(lines))
    assert values["gateway"]["port"] == 8400
    home.folder.joinpath("roost.toml").write_text("\n".join(lines))
    assert home.run("config", "--config", "roost.toml").returncode == 0


def test_doctor_is_content_with_a_running_roost(home: Home) -> None:
    up = home.up()
    result = home.run("doctor", "--json", "--port", up.url.rpartition(":")[2])
    findings = {finding["what"]: finding for finding in json.loads(result.stdout)}
    assert result.returncode == 0
    wanted = {
        "python",
        "data folder",
        "port",
        "store",
        "store server",
        "persistence",
        "eviction",
        "latency",
        "clock",
    }
    assert wanted <= findings.keys()
    assert findings["store server"]["found"].startswith("Valkey")


def test_doctor_names_what_is_wrong_with_a_store_and_what_to_do(home: Home) -> None:
    with run_valkey(options=("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")) as server:
        result = home.run("doctor", "--json", "--store", server.url)
    findings = {finding["what"]: finding for finding in json.loads(result.stdout)}
    assert result.returncode == 1
    assert findings["eviction"]["state"] == "fail"
    assert "noeviction" in findings["eviction"]["advice"]
    assert findings["persistence"]["state"] == "warn"


def test_doctor_names_a_data_folder_that_it_may_not_look_into(home: Home) -> None:
    home.folder.joinpath("private").mkdir(mode=0o000)
    result = home.run_unprivileged("doctor", "--json", "--data", "private/roost/data")
    findings = {finding["what"]: finding for finding in json.loads(result.stdout or "[]")}
    assert result.returncode == 1, result.stderr
    assert findings["data folder"]["state"] == "fail"


def test_doctor_finds_a_store_that_is_away(home: Home) -> None:
    result = home.run("doctor", "--store", f"redis://127.0.0.1:{free_port()}")
    assert result.returncode == 1
    assert "FAIL" in result.stdout
    assert "check that a server runs there" in result.stdout


def test_no_command_shows_a_traceback_for_a_wrong_setting(home: Home) -> None:
    for command in ("up", "gateway", "status", "doctor", "config"):
        result = home.run(command, ROOST_PROFILE="moon", PATH=os.environ["PATH"])
        assert result.returncode == 1
        assert "profile is 'moon', must be one of dev, lan, cloud" in result.stderr
        assert "Traceback" not in result.stderr
