"""Two real gateways see a server fall; the one that was telling it is killed."""

from __future__ import annotations

import http.server
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.testing import RunningServer, free_port, wait_until
from tests.acceptance.conftest import Home, Started
from tests.acceptance.conftest import http as ask

TOKEN = "a-token-of-thirty-two-characters"


class Pager:
    """Takes alerts; does not answer the first one until it is told to."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.first_from = 0
        """The port from which the first came."""
        self.answer = threading.Event()
        pager = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                alert = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if not pager.first_from:
                    pager.first_from = self.client_address[1]
                    pager.answer.wait(60)
                    return
                pager.heard.append((alert["kind"], alert["subject"], alert["details"].get("type")))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def pager() -> Iterator[Pager]:
    pager = Pager()
    serving = threading.Thread(target=pager.server.serve_forever)
    serving.start()
    yield pager
    pager.answer.set()
    pager.server.shutdown()
    serving.join()
    pager.server.server_close()


def owns_port(pid: int, port: int) -> bool:
    """Whether a socket of the process has this local port."""
    rows = [line.split() for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
    inodes = {f"socket:[{row[9]}]" for row in rows if int(row[1].partition(":")[2], 16) == port}
    folder = Path(f"/proc/{pid}/fd")
    return any(os.readlink(fd) in inodes for fd in folder.iterdir() if fd.exists() or fd.is_symlink())


def register(gateway: Started, server_id: str, ttl_s: float) -> None:
    body = {"type": "game", "group": "eu", "serverId": server_id, "ttlSeconds": ttl_s}
    made = ask(f"{gateway.url}/sd/v1/instances", method="POST", token=TOKEN, body=json.dumps(body).encode())
    assert made.status == 201


@pytest.mark.slow
def test_of_two_gateways_one_tells_and_if_it_dies_the_other_does(
    home: Home, server: RunningServer, pager: Pager
) -> None:
    common = {
        "ROOST_STORE": server.url,
        "ROOST_API_TOKEN": TOKEN,
        "ROOST_ALERTS__WEBHOOKS": f"json={pager.url}",
    }
    gateways = [home.start("gateway", "--port", str(free_port()), **common) for _ in range(2)]
    register(gateways[0], "501", 4.0)
    register(gateways[0], "502", 600.0)
    wait_until(lambda: pager.first_from > 0, "the first attempt")
    claimer = next(g for g in gateways if owns_port(g.process.pid, pager.first_from))
    assert pager.heard == []
    claimer.process.send_signal(signal.SIGKILL)
    wait_until(lambda: len(pager.heard) > 0, "the other gateway", timeout_s=40.0)
    assert pager.heard == [("unhealthy", "501", "game")]
