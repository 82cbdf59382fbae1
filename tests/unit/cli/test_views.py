"""What every command shows at 80 columns: no word is broken, and what matters most is there."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from roost.api.balancing import Considered, Explained, Move, Preview, Ring, RingNode
from roost.api.binding import Home, HomeChange, HomeHistory
from roost.api.discovery import (
    CheckedServer,
    HealthReport,
    Instance,
    InstanceDetail,
    InstanceList,
    LifeEvent,
    Override,
    Probe,
)
from roost.api.drain import MoveList, MoveView
from roost.api.queue import ClassView, ServerView, WorldList, WorldView
from roost.api.system import Status, StoreNode, StoreStatus
from roost.api.tokens import Token, TokenList
from roost.cli.nouns import bindings, config, doctor, health, instances, queue, ring, status, token
from roost.cli.tables import Part, Table
from roost.store.inspect import Finding
from tests.unit.cli.test_tables import rendered, words_of

ULID = "01J8ZK3V7Q4M5N6P7R8S9T0VWX"
NOW = "2026-11-20T18:00:00.123456+00:00"
REFUSED = Probe(False, 0.0, "connection refused")

INSTANCE = Instance(
    instance_id=ULID,
    type="game",
    group="kr-seoul-1",
    server_id="seoul-501",
    life="1763661600000000",
    status="initializing",
    accepting=False,
    last_heartbeat=NOW,
    private_ip="10.120.130.140",
    ports={"udp": 7777, "http": 8080},
    load=1234,
    capacity=2000,
    override=Override(drain=True, weight=100),
    probe=REFUSED,
)

SERVER = CheckedServer(
    "seoul-501", ULID, "1763661600000000", "game", "kr-seoul-1", "suspect", False, False, NOW, 3, REFUSED
)

WORLD = WorldView(
    world="kr-seoul-1",
    server_type="game",
    mode="queue-all",
    message="maintenance until 20:00, see https://status.example/incidents/2026-11-20",
    revision=17,
    waiting=123_456,
    away=1234,
    tickets=500,
    held=12,
    inside=20_000,
    capacity=20_500,
    free=500,
    limit=20_500,
    rate=12.5,
    opens_at=NOW,
    draw_digest="ab" * 32,
    draw_seed="",
    classes=[ClassView("vip", 0.25, 1200, 34, 12.5)],
    servers=[ServerView("seoul-501", "7", 200, 100, "wss://seoul-501.game.example/gameserver", True, False)],
    pending=["seoul-599"],
    counters={},
)

MOVE = MoveView(
    at=NOW,
    job=ULID,
    source="seoul-501",
    target="seoul-503",
    outcome="moved",
    why="the deadline was over",
    phases={"preflush": 9.0, "quiesce": 0.4, "freeze": 0.31, "flush": 2.25, "accept": 3.125, "total": 6.2},
)

NODE = StoreNode("store-1.internal.example:6379", False, "connection refused by the host", 1, 2, 3, 4, 5)

VIEWS: dict[str, tuple[Iterable[Part], set[str]]] = {
    "health": (health.view(HealthReport([SERVER], 3, 1, 0)), {"server", "health", "status", "probe"}),
    "instances list": (
        instances.view(InstanceList([INSTANCE], 17), verified=False),
        {"instance", "server", "status"},
    ),
    "instances list --verify": (
        instances.view(InstanceList([INSTANCE], 17), verified=True),
        {"instance", "server", "status", "probe"},
    ),
    "instances show": (
        instances.view_detail(
            InstanceDetail(INSTANCE, "ready", [LifeEvent(NOW, "unhealthy", INSTANCE.life, "initializing")])
        ),
        {"when", "what", "life", "status"},
    ),
    "queue status": (
        queue.view(WorldList([WORLD])),
        {"world", "waiting", "tickets", "inside", "capacity", "free", "mode"},
    ),
    "status": (
        status.view(
            Status("0.1.0", "lan", ["gateway"], NOW, 7, StoreStatus("redis://x", "single", "x", 1.0, [NODE])),
            "http://127.0.0.1:8400",
        ),
        {"node", "state"},
    ),
    "ring show": (
        ring.view(Ring([RingNode("seoul-501", 100, 0.25, False, "it is drained by an operator")])),
        {"server", "weight", "keys", "state"},
    ),
    "ring preview": (ring.view_preview(Preview(0.25, [Move("501", "502", 0.25)])), {"from", "to", "keys"}),
    "ring explain": (
        ring.view_explained(Explained("user-42", "consistent_hash", "501", "", [Considered("501", "")])),
        {"server", "state"},
    ),
    "bindings explain": (
        bindings.view_told(
            bindings.Told(
                Home("ann", "entity", "held", "seoul-503", "1763661600000000", 17, NOW, "moved"),
                HomeHistory([HomeChange(NOW, "moved", "seoul-503", "1763661600000000", 17, "seoul-501")]),
                MoveList([MOVE, msgspec.structs.replace(MOVE, outcome="returned", phases={}, target="")]),
            )
        ),
        {"at", "why", "from", "to"},
    ),
    "token list": (
        token.view(TokenList([Token("3f2a91bc", "game servers of Seoul", ["register", "read"], NOW)])),
        {"id", "name", "scopes"},
    ),
    "config": (
        config.view(
            [
                {"name": "gameserver.idle_warning_seconds", "value": "30", "origin": "default"},
                {"name": "data", "value": "/var/lib/roost/state", "origin": "env ROOST_DATA"},
            ]
        ),
        {"setting", "value", "from"},
    ),
    "doctor": (
        doctor.view(
            [
                Finding("store program", "ok", "/home/somebody/project/.venv/lib/python3.11/valkey-server"),
                Finding("data folder", "fail", "/var/lib/roost cannot be written", "correct permissions"),
            ]
        ),
        {"what", "found", "to", "do"},
    ),
}


@pytest.mark.parametrize("command", VIEWS)
def test_at_80_columns_no_word_is_broken_and_what_matters_is_shown(command: str) -> None:
    view, needed = VIEWS[command]
    for part in view:
        if isinstance(part, Table):
            lines = rendered(part, width=80)
            table = [line for line in lines if not line.startswith("not shown at this width: ")]
            shown = {word for line in table for word in line.split()}
            assert {word for word in shown - words_of(part) if not word.startswith("…/")} == set()
            assert max(map(len, lines)) <= 80
            assert needed - shown == set()
            needed = set()
    assert needed == set()


def test_in_a_wide_terminal_everything_is_shown() -> None:
    (table, *_) = (part for part in queue.view(WORLD) if isinstance(part, Table))
    assert {word for line in rendered(table, width=200) for word in line.split()} == words_of(table)


def test_a_suspect_that_takes_users_is_said_to_do_so_in_panic() -> None:
    suspect = msgspec.structs.replace(INSTANCE, status="suspect", accepting=True)
    listed = "\n".join(
        text for part in instances.view(InstanceList([suspect], 17), False) for text in rendered(part)
    )
    assert "yes (panic)" in listed


def test_the_moves_of_a_user_say_how_long_each_phase_held_them_up() -> None:
    told = bindings.Told(
        Home("ann", "entity", "held", "503", "7", 17, NOW, "moved"), HomeHistory([]), MoveList([MOVE])
    )
    shown = " ".join(" ".join(rendered(*bindings.view_told(told), width=250)).split())
    assert "6.2 ms quiesce 0.4, freeze 0.31, flush 2.25, accept 3.12 the deadline was over" in shown
    alone = bindings.Told(told.home, told.changes, MoveList([]))
    assert "moved at" not in " ".join(rendered(*bindings.view_told(alone)))
    forgotten = bindings.Told(None, told.changes, told.moves)
    assert "nobody holds them" in " ".join(rendered(*bindings.view_told(forgotten), width=250))
