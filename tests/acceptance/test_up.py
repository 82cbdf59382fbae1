"""`roost up` from the first start to kill -9 and back, as its user sees it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import time
from pathlib import Path

import pytest

from roost.testing import START_S, free_port, is_running, run_valkey, wait_until
from tests.acceptance.conftest import Home, http


def test_up_says_where_it_is_and_never_says_the_token(home: Home) -> None:
    up = home.up()
    assert up.text.startswith(f"roost is up: {up.url}\n")
    assert str(home.data / "token") in up.text.replace("~", str(home.folder))
    assert home.token() not in up.text
    assert stat.S_IMODE((home.data / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.data.stat().st_mode) == 0o700
    assert http(f"{up.url}/healthz").json == {"status": "ok"}
    assert http(f"{up.url}/readyz").json["status"] == "ready"


def test_ctrl_c_stops_everything_within_three_seconds(home: Home) -> None:
    up = home.up()
    store = home.store_pid()
    socket_folder = Path(json.loads((home.data / "store" / "server.json").read_text())["socket"]).parent
    assert up.interrupt(signal.SIGINT) == 0
    assert not is_running(store)
    assert not socket_folder.exists()
    assert not (home.data / "up.json").exists()
    assert "Traceback" not in up.text


def test_sigterm_stops_it_too(home: Home) -> None:
    assert home.up().interrupt(signal.SIGTERM) == 0


def test_a_connection_that_is_open_does_not_delay_the_stop(home: Home) -> None:
    up = home.up()
    host, port = up.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as idle:
        idle.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert idle.recv(100).startswith(b"HTTP/1.1 200")
        up.interrupt()


def test_a_second_up_on_the_same_folder_names_the_first(home: Home) -> None:
    first = home.up()
    second = home.run("up", "--port", str(free_port()))
    assert second.returncode == 1
    assert f"process {first.process.pid}" in second.stderr
    assert first.url in second.stderr
    assert "--data" in second.stderr
    assert http(f"{first.url}/readyz").status == 200


def test_a_taken_port_names_its_holder(home: Home) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = home.run("up", "--port", str(port))
    assert result.returncode == 1
    assert f"port {port} is taken by" in result.stderr
    assert f"(pid {os.getpid()})" in result.stderr
    assert "--port" in result.stderr


def test_after_kill_9_the_next_up_finds_the_running_store_with_its_data(home: Home) -> None:
    up = home.up()
    store = home.store_pid()
    token = home.token()
    up.process.kill()
    up.process.wait()
    assert is_running(store)

    again = home.up()
    assert home.store_pid() == store
    assert home.token() == token
    assert http(f"{again.url}/readyz").status == 200
    assert again.interrupt() == 0
    wait_until(lambda: not is_running(store), "the adopted store to stop")


def test_after_kill_9_of_both_the_next_up_starts_afresh(home: Home) -> None:
    up = home.up()
    os.kill(home.store_pid(), signal.SIGKILL)
    up.process.kill()
    up.process.wait()
    assert http(f"{home.up().url}/readyz").status == 200


def test_a_store_that_dies_is_started_again(home: Home) -> None:
    up = home.up()
    before = home.store_pid()
    os.kill(before, signal.SIGKILL)

    def has_a_new_store() -> bool:
        try:
            return home.store_pid() != before
        except FileNotFoundError:  # while the old one is being cleared away
            return False

    wait_until(has_a_new_store, "a new store")
    wait_until(lambda: http(f"{up.url}/readyz").status == 200, "readiness to return", lambda: up.text)


def test_a_store_that_hangs_makes_no_gateway_unready_and_its_calls_are_refused_for_a_while(
    home: Home,
) -> None:
    up = home.up()
    os.kill(home.store_pid(), signal.SIGSTOP)
    try:
        answer = http(f"{up.url}/readyz")
        assert (answer.status, answer.json) == (200, {"status": "ready", "store": "away"})
        refused = http(f"{up.url}/sd/v1/instances", token=home.token())
        assert refused.status == 503
        assert refused.json["error"]["code"] == "STORE_AWAY"
        assert refused.headers["Retry-After"] == "1"
        assert http(f"{up.url}/healthz").status == 200
    finally:
        os.kill(home.store_pid(), signal.SIGCONT)
    wait_until(lambda: http(f"{up.url}/readyz").status == 200, "readiness to return", lambda: up.text)


def test_up_on_a_store_that_is_not_there_fails_at_once_and_says_what_to_do(home: Home) -> None:
    started = time.monotonic()
    result = home.run("up", "--store", f"redis://127.0.0.1:{free_port()}", "--port", str(free_port()))
    assert result.returncode == 1
    assert "cannot connect to 127.0.0.1" in result.stderr
    assert "Traceback" not in result.stderr
    assert time.monotonic() - started < 10


def test_up_with_a_wrong_password_says_so_without_the_password(home: Home) -> None:
    with run_valkey(password="right-password") as server:
        url = f"redis://:wrong-password@127.0.0.1:{server.port}"
        result = home.run("up", "--store", url, "--port", str(free_port()))
    assert result.returncode == 1
    assert "refuses access" in result.stderr
    assert "wrong-password" not in result.stderr


def test_the_default_profile_stays_on_this_machine(home: Home) -> None:
    result = home.run("up", "--host", "0.0.0.0", "--store", "redis://store.example")
    assert result.returncode == 1
    assert "gateway.host 0.0.0.0 is reachable by others" in result.stderr
    assert "store redis://store.example:6379 is another machine" in result.stderr
    assert "--profile" in result.stderr


def test_a_data_folder_that_cannot_be_written_is_named(home: Home) -> None:
    home.folder.joinpath("file").write_text("not a folder")
    result = home.run("up", "--data", str(home.folder / "file" / "data"), "--port", str(free_port()))
    assert result.returncode == 1
    assert "cannot write to the data folder" in result.stderr
    assert "--data" in result.stderr


def test_missing_permission_on_the_data_folder_is_named(home: Home) -> None:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root may write everywhere, and there is no setpriv to give that up")
    home.data.mkdir(mode=0o500)
    result = home.run_unprivileged("up", "--port", str(free_port()))
    assert result.returncode == 1
    assert "cannot write to the data folder" in result.stderr


def test_without_an_unknown_role_lists_the_roles(home: Home) -> None:
    result = home.run("up", "--without", "kitchen")
    assert result.returncode == 1
    assert "no role kitchen" in result.stderr
    assert "gateway" in result.stderr


def test_without_gateway_only_the_store_runs(home: Home) -> None:
    up = home.start("up", "--without", "gateway")
    assert "store only" in up.text
    assert up.interrupt() == 0


def test_a_gateway_joins_the_store_of_up(home: Home) -> None:
    up = home.up()
    gateway = home.start("gateway", "--port", str(free_port()))
    assert http(f"{gateway.url}/readyz").status == 200
    assert gateway.interrupt() == 0
    assert http(f"{up.url}/readyz").status == 200


def test_a_gateway_waits_for_its_store(home: Home) -> None:
    with run_valkey() as server:
        server.stop()
        gateway = home.start("gateway", "--store", server.url, "--port", str(free_port()), until="store away")
        server.start()
        wait_until(lambda: "is up" in gateway.text, "the gateway to be up", lambda: gateway.text, START_S)
        assert gateway.interrupt() == 0


def test_a_manager_serves_health_and_metrics_and_nothing_else(home: Home) -> None:
    up = home.up("--without", "manager")
    manager = home.start("manager", "--port", str(free_port()))
    assert http(f"{manager.url}/healthz").status == 200
    assert http(f"{manager.url}/readyz").status == 200
    page = http(f"{manager.url}/metrics").body.decode()
    assert "queue_ticks_total" in page
    assert http(f"{manager.url}/sd/v1/instances", token=home.token()).status == 404
    assert http(f"{up.url}/healthz").status == 200
    taken = home.run("manager", "--port", manager.url.rpartition(":")[2])
    assert taken.returncode == 1
    assert "is taken by" in taken.stderr
