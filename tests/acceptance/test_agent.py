"""`roost agent` around programs that know nothing of Roost."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from roost.testing import START_S, free_port, wait_until
from tests.acceptance.conftest import Home, Started, http

ROOT = Path(__file__).parents[2]
TOKEN = "a-token-of-thirty-two-characters"
WAITS = "import time; print('started', flush=True); time.sleep(60)"
OBEYS = """
import signal, sys
def hear(number, frame):
    print("heard", signal.Signals(number).name, flush=True)
    if number == signal.SIGUSR2:
        sys.exit(5)
signal.signal(signal.SIGUSR1, hear)
signal.signal(signal.SIGUSR2, hear)
print("started", flush=True)
while True:
    signal.pause()
"""


def instances(home: Home, token: str = "") -> list[Any]:
    """Who lives, as the running `roost up` says."""
    url = json.loads((home.data / "up.json").read_text())["url"]
    found: list[Any] = http(f"{url}/sd/v1/instances", token=token or home.token()).json["instances"]
    return found


def agent(home: Home, *program: str, flags: tuple[str, ...] = ()) -> tuple[str, ...]:
    return ("agent", "--type", "game", "--group", "kr-1", "--server-id", "501", *flags, "--", *program)


def test_a_program_is_registered_while_it_runs_and_gets_the_signal(home: Home) -> None:
    home.up()
    started = home.start(
        *agent(home, sys.executable, "-c", WAITS, flags=("--port", "udp=7777")), until="started"
    )
    wait_until(lambda: len(instances(home)) == 1, "the registration", timeout_s=START_S)
    (instance,) = instances(home)
    assert (instance["serverId"], instance["ports"], instance["status"]) == ("501", {"udp": 7777}, "ready")
    assert started.interrupt(signal.SIGTERM, within_s=5) == 128 + signal.SIGTERM
    assert instances(home) == []
    detail = json.loads(home.run("instances", "show", instance["instanceId"], "--json").stdout)
    assert detail["status"] == "terminated"


def test_the_exit_code_is_passed_on_and_a_clean_exit_removes(home: Home) -> None:
    home.up()
    assert home.run(*agent(home, sys.executable, "-c", "pass")).returncode == 0
    assert instances(home) == []


def test_a_crash_is_reported_at_once_and_the_server_id_is_free(home: Home) -> None:
    home.up()
    go = home.folder / "go"
    started = home.start(*agent(home, sys.executable, "-c", ends_with(3, go)), until="")
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: started.text, START_S)
    (instance,) = instances(home)
    go.touch()
    assert started.process.wait(timeout=20) == 3
    assert instances(home) == []
    assert ended_as(home, instance["instanceId"]) == "no-response"
    assert home.run(*agent(home, sys.executable, "-c", "pass")).returncode == 0


def ends_with(code: int, go: Path) -> str:
    """A program that ends with the code as soon as the file is there."""
    return f"import os, sys, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.05)\nsys.exit({code})"


def ended_as(home: Home, instance_id: str) -> str:
    detail = json.loads(home.run("instances", "show", instance_id, "--json").stdout)
    return str(detail["status"])


def test_a_gateway_that_is_late_is_waited_for_while_the_program_runs(home: Home) -> None:
    port = free_port()
    where = {"ROOST_URL": f"http://127.0.0.1:{port}", "ROOST_API_TOKEN": TOKEN}
    started = home.start(*agent(home, sys.executable, "-c", WAITS), until="not registered yet", **where)
    wait_until(lambda: "started" in started.text, "the program", lambda: started.text)
    home.start("up", "--no-demo", "--port", str(port), ROOST_API_TOKEN=TOKEN)
    wait_until(lambda: len(instances(home, TOKEN)) == 1, "the registration", lambda: started.text, START_S)
    assert started.interrupt(signal.SIGTERM) == 128 + signal.SIGTERM
    assert instances(home, TOKEN) == []


@pytest.mark.slow
def test_the_lease_of_a_former_life_is_waited_for_while_the_program_runs(home: Home) -> None:
    home.up()
    former = home.start(*agent(home, sys.executable, "-c", WAITS, flags=("--ttl", "12")), until="started")
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: former.text, START_S)
    (dead,) = instances(home)
    os.kill(child_of(former), signal.SIGKILL)
    former.process.kill()
    started = home.start(*agent(home, sys.executable, "-c", WAITS), until="not registered yet")

    def mine() -> bool:
        return [i["instanceId"] for i in instances(home)] not in ([], [dead["instanceId"]])

    wait_until(mine, "the server id to be free", lambda: started.text, timeout_s=60)
    assert started.process.poll() is None
    assert started.interrupt(signal.SIGTERM) == 128 + signal.SIGTERM


def child_of(started: Started) -> int:
    pid = started.process.pid
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_an_order_to_drain_and_a_removal_reach_the_program(home: Home) -> None:
    home.up()
    flags = ("--ttl", "3", "--on-drain", "SIGUSR1", "--on-removed", "SIGUSR2")
    started = home.start(*agent(home, sys.executable, "-c", OBEYS, flags=flags), until="started")
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: started.text, START_S)
    assert home.run("instances", "override", "501", "--drain").returncode == 0
    wait_until(lambda: "heard SIGUSR1" in started.text, "the order to drain", lambda: started.text)
    assert started.process.poll() is None
    assert home.run("instances", "remove", "501").returncode == 0
    assert started.process.wait(timeout=10) == 5
    assert "heard SIGUSR2" in started.text


def test_a_removed_program_gets_sigterm_and_a_command_can_take_the_place_of_a_signal(home: Home) -> None:
    home.up()
    told = home.folder / "told"
    command = f"sh -c 'echo $ROOST_PROGRAM_PID $ROOST_INSTANCE_ID > {told}'"
    flags = ("--ttl", "3", "--on-drain", command)
    started = home.start(*agent(home, sys.executable, "-c", WAITS, flags=flags), until="started")
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: started.text, START_S)
    (instance,) = instances(home)
    program = child_of(started)
    assert home.run("instances", "override", "501", "--drain").returncode == 0
    wait_until(lambda: told.exists() and told.read_text() != "", "the command", lambda: started.text)
    assert told.read_text().split() == [str(program), instance["instanceId"]]
    assert home.run("instances", "remove", "501").returncode == 0
    assert started.process.wait(timeout=10) == 128 + signal.SIGTERM


def test_a_signal_reaches_what_a_wrapper_script_started(home: Home) -> None:
    home.up()
    heard = home.folder / "heard"
    server = (
        f"import signal, sys; signal.signal(15, lambda *_: (open({str(heard)!r}, 'w').close(), sys.exit()))"
    )
    script = f'{sys.executable} -c "{server}; print(chr(115) + chr(101), flush=True); signal.pause()" & wait'
    started = home.start(*agent(home, "sh", "-c", script), until="se\n")
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: started.text, START_S)
    started.interrupt(signal.SIGTERM)
    wait_until(heard.exists, "the server behind the wrapper", lambda: started.text)


@pytest.mark.slow
@pytest.mark.parametrize("fate", [signal.SIGKILL, signal.SIGSTOP])
def test_the_exit_code_is_the_programs_whatever_became_of_the_gateway(
    home: Home, fate: signal.Signals
) -> None:
    gateway = home.up()
    go = home.folder / "go"
    started = home.start(*agent(home, sys.executable, "-c", ends_with(7, go)), until="")
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: started.text, START_S)
    gateway.process.send_signal(fate)
    go.touch()
    try:
        assert started.process.wait(timeout=20) == 7
        assert "its end was not told" in started.text
    finally:
        gateway.process.send_signal(signal.SIGCONT)


def test_the_stop_hook_of_systemd_works_with_a_token_that_may_only_register(home: Home) -> None:
    up = home.up()
    made = home.run("token", "create", "game-servers", "--scope", "register", "--json")
    own = {"ROOST_URL": up.url, "ROOST_API_TOKEN": json.loads(made.stdout)["token"]}
    started = home.start(*agent(home, sys.executable, "-c", WAITS), until="started", **own)
    wait_until(lambda: len(instances(home)) == 1, "the registration", lambda: started.text, START_S)
    (instance,) = instances(home)
    program = child_of(started)
    started.process.kill()  # as systemd does after TimeoutStopSec
    os.kill(program, signal.SIGKILL)
    hooked = home.run(*stop_hook(SERVICE_RESULT="timeout", AGENT_FLAGS="--type game --group kr-1"), **own)
    assert hooked.returncode == 0, hooked.stderr
    assert instances(home) == []
    assert ended_as(home, instance["instanceId"]) == "no-response"
    again = home.run(*stop_hook(SERVICE_RESULT="success", AGENT_FLAGS="--type game --group kr-1"), **own)
    assert (again.returncode, again.stdout) == (0, "")


def stop_hook(**environment: str) -> list[str]:
    """The arguments of `roost` in the unit's ExecStopPost, as systemd would fill them in."""
    unit = (ROOT / "deploy" / "systemd" / "roost-agent@.service").read_text()
    (line,) = re.findall(r"^ExecStopPost=-/usr/bin/env roost (.+)$", unit, re.MULTILINE)
    words = line.replace("%i", "501").split()
    return [part for word in words for part in environment.get(word.removeprefix("$"), word).split()]


def test_a_program_with_a_health_check_is_ready_when_it_passes(home: Home) -> None:
    port = free_port()
    home.up()
    serve = f"import time, http.server as h; time.sleep(1); h.test(h.SimpleHTTPRequestHandler, port={port})"
    started = home.start(
        *agent(home, sys.executable, "-c", serve, flags=("--health", f"http:{port}/", "--ttl", "6")),
        until="Serving",
    )
    wait_until(lambda: [i["status"] for i in instances(home)] == ["ready"], "readiness", lambda: started.text)
    (instance,) = instances(home)
    history = json.loads(home.run("instances", "show", instance["instanceId"], "--json").stdout)["history"]
    assert [line["status"] for line in history] == ["initializing", "ready"]
    started.interrupt(signal.SIGTERM, within_s=5)


def test_a_program_that_cannot_start_is_an_error(home: Home) -> None:
    home.up()
    result = home.run(*agent(home, "/nowhere/server"))
    assert result.returncode == 1
    assert "cannot start /nowhere/server" in result.stderr
    assert instances(home) == []


def test_wrong_flags_say_what_is_right(home: Home) -> None:
    wrong = (
        (("--port", "7777"), "name=number"),
        (("--health", "ping"), "kind:port"),
        (("--on-drain", "SIGNONE"), "no signal SIGNONE"),
        (("--ttl", "0.1"), "ttlSeconds"),
    )
    for flags, says in wrong:
        result = home.run(*agent(home, "true", flags=flags))
        assert result.returncode == 1
        assert says in result.stderr
