"""`roost forward` as a process: to a webhook that is killed upon, and to a real NATS server."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.alerts import verify_webhook
from roost.testing import RunningServer, free_port, wait_until

from .conftest import Home, Started, http, sees_its_lag

SECRET = "a-secret-that-is-long-enough"
NATS = shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")


class Webhook:
    """Keeps what it is sent, and answers when it may."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.answers = threading.Event()
        self.answers.set()
        self.unsigned = 0
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                signed = (self.headers["X-Roost-Timestamp"], body, self.headers["X-Roost-Signature"])
                webhook.unsigned += not verify_webhook(SECRET, *signed, now=time.time())
                webhook.events += json.loads(body)["events"]
                webhook.answers.wait()
                self.send_response(204)
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/events"

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            self.answers.set()
            self._server.shutdown()
            thread.join()
            self._server.server_close()

    def names(self) -> list[str]:
        return [event["subject"] for event in self.events if event["event"] == "registered"]


def start(home: Home, store: RunningServer, to: str) -> Started:
    where = ("--to", to, "--store", store.url, "--port", str(free_port()), "--scopes", "discovery")
    return home.start("forward", *where, ROOST_FORWARD__SECRET=SECRET)


async def register(store: RunningServer, *names: str) -> None:
    async with roost.connect(store.url) as client:
        for name in names:
            await client.register(type="game", group="kr-1", server_id=name, ports={"ws": 1})


async def test_kill_9_between_sending_and_marking_sends_again_and_loses_nothing(
    home: Home, valkey: RunningServer
) -> None:
    webhook = Webhook()
    with webhook.running():
        first = start(home, valkey, f"webhook:{webhook.url}")
        wait_until(lambda: bool(webhook.events), "its beginning", lambda: first.text)
        webhook.answers.clear()  # it has what it is sent from now on, but does not say so
        await register(valkey, "501", "502")
        wait_until(lambda: "game/501" in webhook.names(), "the event", lambda: first.text)
        first.process.kill()
        first.process.wait()
        sent = webhook.names()
        await register(valkey, "503")
        webhook.answers.set()

        second = start(home, valkey, f"webhook:{webhook.url}")
        wait_until(lambda: "game/503" in webhook.names(), "what came meanwhile", lambda: second.text)

        again = webhook.names()[len(sent) :]
        assert again == ["game/501", "game/502", "game/503"], "from the mark on, in order"
        ids = [event["id"] for event in webhook.events if event["subject"] == "game/501"]
        assert len(ids) == 2
        assert len(set(ids)) == 1, "a receiver knows by the id that it has it"
        assert webhook.unsigned == 0
        metrics = next(word for word in second.text.split() if word.endswith("/metrics"))
        wait_until(lambda: sees_its_lag(metrics), "a pause that was timed")
        assert 'roost_loop_failures_total{loop="forward discovery"}' in http(metrics).body.decode()
        assert second.interrupt() == 0


@contextmanager
def nats_server(folder: Path) -> Iterator[str]:
    assert NATS is not None
    port = free_port()
    command = [NATS, "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        assert any("Server is ready" in line for line in process.stderr)
        yield f"nats://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.skipif(NATS is None, reason="needs nats-server (Debian package nats-server)")
async def test_a_stream_of_a_real_nats_server_has_every_event_once(
    home: Home, valkey: RunningServer, tmp_path: Path
) -> None:
    import nats

    with nats_server(tmp_path / "nats") as url:
        forward = start(home, valkey, f"{url}/live.events")
        metrics = next(word for word in forward.text.split() if word.endswith("/metrics"))
        wait_until(
            lambda: "no stream takes" in forward.text, "a refusal without a stream", lambda: forward.text
        )
        line = await nats.connect(url)
        stream = line.jetstream()
        await stream.add_stream(name="ROOST", subjects=["live.events.>"])
        subscription = await stream.subscribe("live.events.discovery", ordered_consumer=True)
        first = json.loads((await subscription.next_msg(timeout=20)).data)
        await register(valkey, *map(str, range(10)))

        events = [json.loads((await subscription.next_msg(timeout=20)).data) for _ in range(10)]
        count = (await stream.stream_info("ROOST")).state.messages
        await line.close()

        assert first["event"] == "begin"
        assert [event["subject"] for event in events] == [f"game/{number}" for number in range(10)]
        assert count == 11
        assert "roost_forward_events_total" in http(metrics).body.decode()
        assert forward.interrupt() == 0
