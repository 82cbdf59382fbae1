"""`roost agent` around programs that know nothing of Roost."""

from __future__ import annotations

import json
import signal
import sys
from typing import Any

from roost.testing import free_port, wait_until
from tests.acceptance.conftest import Home

WAITS = "import time; print('started', flush=True); time.sleep(60)"


def instances(home: Home) -> list[Any]:
    found: list[Any] = json.loads(home.run("instances", "list", "--json").stdout)["instances"]
    return found


def agent(home: Home, *program: str, flags: tuple[str, ...] = ()) -> tuple[str, ...]:
    return ("agent", "--type", "game", "--group", "kr-1", "--server-id", "501", *flags, "--", *program)


def test_a_program_is_registered_while_it_runs_and_gets_the_signal(home: Home) -> None:
    home.up()
    started = home.start(
        *agent(home, sys.executable, "-c", WAITS, flags=("--port", "udp=7777")), until="started"
    )
    wait_until(lambda: len(instances(home)) == 1, "the registration")
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


def test_a_crash_is_left_to_be_found_as_no_response(home: Home) -> None:
    home.up()
    result = home.run(*agent(home, sys.executable, "-c", "import sys; sys.exit(3)", flags=("--ttl", "3")))
    assert result.returncode == 3
    (instance,) = instances(home)
    wait_until(lambda: instances(home) == [], "the lease to end")
    detail = json.loads(home.run("instances", "show", instance["instanceId"], "--json").stdout)
    assert detail["status"] == "no-response"


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
    for flags, says in ((("--port", "7777"), "name=number"), (("--health", "ping"), "kind:port")):
        result = home.run(*agent(home, "true", flags=flags))
        assert result.returncode == 1
        assert says in result.stderr
