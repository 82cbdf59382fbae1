"""The TypeScript client: its form, its generated types, and its own tests against a running Roost."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.core.passes import sign_entry
from roost.core.signing import parse_keys
from roost.testing import RunningServer, free_port, run_valkey, wait_until
from roost.version import __version__
from tests.acceptance.conftest import Home, Started, http, open_home

PACKAGE = Path(__file__).parents[2] / "clients" / "typescript"
KEYS = "k1:" + base64.b64encode(b"k" * 32).decode()
WORLDS = "main,story=ts-story,door=ts-door,shut=ts-none"
ENVIRONMENT = {
    "ROOST_QUEUE_KEYS": KEYS,
    "ROOST_TICKET_KEYS": KEYS,
    "ROOST_QUEUE__WORLDS": WORLDS,
    "ROOST_QUEUE__TICK_MS": "100",
    "ROOST_QUEUE__USER_PER_SECOND": "100",
    "ROOST_QUEUE__USER_BURST": "100",
    "ROOST_QUEUE__IP_PER_SECOND": "1000",
}
ENTRIES = (
    "ann story",
    "bob story",
    "ann door",
    "bob door",
    "eve shut",
    "ann shut",
    "cid main",
    "eve no-such-world",
)
WHERE_NODE_IS = "install Node >= 20.3 with npm from nodejs.org or Debian 13 (Debian 12 has 18)"
UNREACHABLE = {
    *("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH"),
    *("ERR_SOCKET_TIMEOUT", "ENOTCACHED"),
}
LOGINS = ("ways", "push", "twice", "resumed", "body", "killed-0", "killed-1", "killed-2")


def read(name: str) -> Any:
    return json.loads((PACKAGE / name).read_text(encoding="utf-8"))


# -- what needs no Node


def test_it_needs_nothing_at_run_time_but_openapi_fetch_and_has_the_version_of_roost() -> None:
    package = read("package.json")
    assert list(package["dependencies"]) == ["openapi-fetch"]
    assert package["version"] == __version__
    assert package["type"] == "module"


def test_the_lock_file_names_no_registry() -> None:
    locked = read("package-lock.json")["packages"]
    assert len(locked) > 3
    assert [name for name, entry in locked.items() if "resolved" in entry] == []
    assert all("integrity" in entry for name, entry in locked.items() if name)


def test_only_the_modules_of_node_import_what_browsers_do_not_have() -> None:
    imports = re.compile(r'(?:from|import\()\s*"node:')
    found = {file.name for file in (PACKAGE / "src").glob("*.ts") if imports.search(file.read_text("utf-8"))}
    assert found == {"machine.node.ts", "tcp.node.ts"}


# -- what needs it


@pytest.fixture(scope="module")
def npm() -> str:
    """The package with what it is built by. `npm ci` needs a registry; what is there already is used."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip(f"no node and npm here: {WHERE_NODE_IS}")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    major, minor = version[1:].split(".")[:2]
    if (int(major), int(minor)) < (20, 3):
        pytest.skip(f"node {version.strip()} is older than 20.3: {WHERE_NODE_IS}")
    if not (PACKAGE / "node_modules" / ".package-lock.json").exists():
        done = subprocess.run([npm, "ci"], cwd=PACKAGE, capture_output=True, text=True, check=False)
        if done.returncode and is_offline(done.stderr):
            pytest.skip(f"npm ci reaches no registry: {done.stderr[-300:]}")
        assert done.returncode == 0, done.stderr[-3000:]
    return npm


def is_offline(said: str) -> bool:
    """Whether npm gave up because of the network, by the code that it names; a refusal is none."""
    found = re.search(r"^npm (?:error|ERR!) code (\w+)$", said, re.MULTILINE)
    return found is not None and found[1] in UNREACHABLE


@pytest.mark.parametrize(
    ("said", "is_so"),
    [
        ("npm error code ENOTFOUND\nnpm error syscall getaddrinfo", True),
        ("npm WARN old\nnpm ERR! code ECONNREFUSED", True),
        ("npm error code EUSAGE\nnpm error package.json and package-lock.json are not in sync", False),
        ("npm error code E404\nnpm error 404 Not Found", False),
        ("sh: 1: tsc: not found", False),
    ],
)
def test_only_an_unreachable_registry_excuses_npm(said: str, is_so: bool) -> None:
    assert is_offline(said) == is_so


def run(npm: str, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [npm, "run", "--silent", *args],
            cwd=PACKAGE,
            env=os.environ | env,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    except subprocess.TimeoutExpired as hung:
        print(*(text.decode() for text in (hung.stdout, hung.stderr) if isinstance(text, bytes)), sep="\n")
        raise


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_generated_types_are_those_of_the_api(npm: str, tmp_path: Path) -> None:
    fresh = tmp_path / "schema.ts"
    command = f"{sys.executable} -m roost openapi"
    done = run(npm, "generate", "--", str(fresh), ROOST_COMMAND=command)
    assert done.returncode == 0, done.stderr
    kept = (PACKAGE / "src" / "schema.ts").read_text(encoding="utf-8")
    assert fresh.read_text(encoding="utf-8") == kept, "run `npm run generate` in clients/typescript"


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Home, RunningServer]]:
    with run_valkey() as server, open_home(tmp_path_factory.mktemp("typescript")) as home:
        yield home, server


def start_gate(home: Home, env: Mapping[str, str]) -> dict[str, Any]:
    port, tcp_port = free_port(), free_port()
    started = home.start("gate", "--port", str(port), "--tcp-port", str(tcp_port), **env)
    return {
        "ws": f"ws://127.0.0.1:{port}",
        "tcp": f"tcp://127.0.0.1:{tcp_port}",
        "pid": started.process.pid,
    }


def start_all(home: Home, server: RunningServer) -> dict[str, Any]:
    """Everything that the tests talk to, and how they find it."""
    env = ENVIRONMENT | {"ROOST_STORE": server.url, "ROOST_PROFILE": "dev"}
    up: Started = home.up("--profile", "dev", "--store", server.url, **env)
    home.start("entity", "--id", "501", "--port", str(free_port()), **env)
    home.start("gameserver", "--port", str(free_port()), "--capacity", "5", "--url", up.url, **env)
    gates = [start_gate(home, env) for _ in range(2)]

    def has_capacity() -> bool:
        return bool(http(f"{up.url}/queue/v1/worlds/main", token=home.token()).json["capacity"])

    wait_until(has_capacity, "the game server to be in the ledger")
    keys = parse_keys(KEYS)
    return {
        "url": up.url,
        "token": home.token(),
        "storePort": int(server.url.rpartition(":")[2].partition("/")[0]),
        "gates": gates,
        "logins": {user: roost.sign_login(keys, user=user) for user in LOGINS},
        "entries": {one: sign_entry(keys, user=one.split()[0], world=one.split()[1]) for one in ENTRIES},
    }


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_its_own_tests_pass_against_a_running_roost(npm: str, house: tuple[Home, RunningServer]) -> None:
    done = run(npm, "test", ROOST_TEST=json.dumps(start_all(*house)))
    print(done.stdout, done.stderr)
    assert done.returncode == 0
    passed = [int(count) for count in re.findall(r"^(?:# |ℹ )pass (\d+)$", done.stdout, re.MULTILINE)]
    assert len(passed) == 2, "the tests and, after them, what wipes the store"
    assert sum(passed) > 50
