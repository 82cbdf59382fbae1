"""The store's password is changed while a gateway serves: nobody loses a call."""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from roost.testing import RunningServer, free_port, run_valkey, wait_until

from .conftest import Home, Started, http

TOKEN = "a-token-for-the-tests"
KEYS = "k1:a2V5IG9mIHRoZSB0ZXN0cywgMzIgYnl0ZXMhISE="


class Caller:
    """Asks the gateway again and again, and keeps what went wrong."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stopping = threading.Event()
        self.answered = 0
        self.failed: list[bytes] = []
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            answer = http(f"{self._url}/sd/v1/instances?verify=false", token=TOKEN)
            self.answered += 1
            if answer.status != 200:
                self.failed.append(answer.body)

    def progress(self) -> None:
        goal = self.answered + 20
        wait_until(lambda: self.answered >= goal, "answers")

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class Rotation(NamedTuple):
    """A gateway, and the file from which it takes the address and the password of its store."""

    valkey: RunningServer
    secret: Path
    gateway: Started


@pytest.fixture
def rotation(home: Home, tmp_path: Path) -> Iterator[Rotation]:
    with run_valkey(password="old") as valkey:
        secret = tmp_path / "store-url"
        secret.write_text(valkey.url)
        gateway = home.start(
            *("gateway", "--port", str(free_port()), "--profile", "lan"),
            ROOST_STORE_FILE=str(secret),
            ROOST_API_TOKEN=TOKEN,
        )
        yield Rotation(valkey, secret, gateway)


def test_sighup_takes_up_a_new_password_of_the_store_and_no_call_is_lost(rotation: Rotation) -> None:
    valkey, secret, gateway = rotation
    caller = Caller(gateway.url)
    try:
        caller.progress()
        valkey.command_reply("ACL", "SETUSER", "default", ">new")
        secret.write_text(valkey.url.replace("old", "new"))
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "store password renewed" in gateway.text, "the new password", lambda: gateway.text)
        caller.progress()
        valkey.command_reply("ACL", "SETUSER", "default", "<old")
        valkey.password = "new"
        caller.progress()
        valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
        caller.progress()
    finally:
        caller.stop()
    assert caller.failed == []
    assert "new@" not in gateway.text


def test_a_url_of_another_store_or_a_wrong_password_changes_nothing(rotation: Rotation) -> None:
    valkey, secret, gateway = rotation
    for wrong in ("redis://:old@127.0.0.1:1", valkey.url.replace("old", "wrong"), "nonsense"):
        said = gateway.text.count("store password not renewed")
        secret.write_text(wrong)
        gateway.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda said=said: gateway.text.count("store password not renewed") > said,  # type: ignore[misc]
            "the refusal",
            lambda: gateway.text,
        )
        assert http(f"{gateway.url}/sd/v1/instances", token=TOKEN).status == 200


OTHERS = {
    "entity": (("entity", "--id", "501"), {"roost-tool", "roost-sdk", "roost-entity-beat"}),
    "orders": (("orders", "serve", "--id", "901"), {"roost-tool", "roost-sdk", "roost-orders-log"}),
    "gate": (("gate",), {"roost-tool", "roost-sdk"}),
    "gameserver": (("gameserver",), {"roost-tool", "roost-sdk"}),
}
"""A role's command, and the names of its links to the store."""


@pytest.mark.parametrize("role", OTHERS)
def test_sighup_takes_up_a_new_password_on_every_link_of_a_role(
    role: str, home: Home, tmp_path: Path
) -> None:
    command, links = OTHERS[role]
    with run_valkey(password="old") as valkey:
        secret = tmp_path / "store-url"
        secret.write_text(valkey.url)
        started = home.start(
            *(*command, "--port", str(free_port()), "--profile", "lan"),
            **{"ROOST_URL_FILE" if role == "gameserver" else "ROOST_STORE_FILE": str(secret)},
            ROOST_API_TOKEN=TOKEN,
            ROOST_WIRE_SECRET="a-secret-for-the-tests",
            ROOST_QUEUE_KEYS=KEYS,
            ROOST_TICKET_KEYS=KEYS,
            ROOST_DATABASE=f"sqlite:///{tmp_path}/users.db",
            ROOST_LANES__DURABILITY="memory",
            ROOST_GATE__TCP_PORT="0",
        )

        def named() -> set[str]:
            return set(re.findall(r" name=(roost-\S+)", valkey.command_reply("CLIENT", "LIST").decode()))

        wait_until(lambda: named() == links, "its links", lambda: started.text)
        valkey.command_reply("ACL", "SETUSER", "default", ">new")
        secret.write_text(valkey.url.replace("old", "new"))
        started.process.send_signal(signal.SIGHUP)
        wait_until(lambda: "store password renewed" in started.text, "the new password", lambda: started.text)
        valkey.command_reply("ACL", "SETUSER", "default", "<old")
        valkey.password = "new"
        valkey.command_reply("CLIENT", "KILL", "TYPE", "normal")
        wait_until(lambda: named() == links, "its links, with the new password", lambda: started.text)
        assert started.process.poll() is None
        assert "WRONGPASS" not in started.text


def test_sighup_leaves_a_game_server_behind_a_gateway_alone(home: Home) -> None:
    """It has no password of the store; the loop over all pods reaches it too."""
    gateway = home.up()
    game = home.start("gameserver", "--port", str(free_port()), "--url", gateway.url, "--ttl", "4")
    game.process.send_signal(signal.SIGHUP)
    path = "/sd/v1/instances?type=game"
    beats = http(f"{gateway.url}{path}", token=home.token()).json["instances"][0]["lastHeartbeat"]

    def beats_on() -> bool:
        found = http(f"{gateway.url}{path}", token=home.token()).json["instances"]
        return len(found) == 1 and found[0]["lastHeartbeat"] > beats

    wait_until(beats_on, "another beat", lambda: game.text)
    assert game.process.poll() is None
