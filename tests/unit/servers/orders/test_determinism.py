"""The same commands give the same bytes in every process, whatever its seed of hashes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from hashlib import blake2b

import pytest

from roost.lanes.commands import Side
from tests.unit.servers.orders.desk import Desk

ACCOUNTS = [f"account-{number}" for number in range(40)]
SYMBOLS = ["ACME", "7203", "BTCUSDT", "EURUSD"]


def busy_desk(seed: int = 7) -> Desk:
    """A thousand commands of a seeded evening, moves and halts among them."""
    chance = random.Random(seed)
    desk = Desk()
    ids: list[int] = []
    for step in range(1_000):
        account, symbol = chance.choice(ACCOUNTS), chance.choice(SYMBOLS)
        price, quantity = chance.randint(95, 105), chance.randint(1, 20)
        match chance.randrange(12):
            case 0 | 1 if ids:
                desk.cancel(account, chance.choice(ids))
            case 2 | 3 if ids:
                desk.amend(account, chance.choice(ids), price, quantity)
            case 4:
                desk.halt(symbol)
            case 5:
                desk.resume(symbol)
            case 6 if step % 5 == 0:
                desk.move_in(symbol, f"m{step}", desk.move_out(symbol, f"m{step}", 9))
            case _:
                side = chance.choice([Side.BUY, Side.SELL])
                outcome = desk.new(account, side, price, quantity, symbol=symbol)
                ids += [outcome.order_id] if outcome.order_id else []
        if step % 100 == 0:
            desk.collect()
    desk.collect()
    return desk


def fingerprint(desk: Desk) -> str:
    """Of the state, of every reply and event, and of the parts in the order in which they came."""
    said = repr((desk.results, list(desk.parts.items()))).encode()
    return f"{desk.engine.digest().hex()} {blake2b(said, digest_size=16).hexdigest()}"


@pytest.mark.parametrize("hash_seed", ["0", "1", "4242"])
def test_another_process_comes_to_the_same_bytes(hash_seed: str) -> None:
    program = (
        "from tests.unit.servers.orders import test_determinism as t; print(t.fingerprint(t.busy_desk()))"
    )
    path = os.pathsep.join(entry for entry in (os.getcwd(), *sys.path) if entry)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.stdout.strip() == fingerprint(busy_desk()), done.stderr


def test_the_evening_is_worth_comparing() -> None:
    desk = busy_desk()

    assert len(desk.events) > 200
    assert fingerprint(desk) != fingerprint(busy_desk(seed=8))
