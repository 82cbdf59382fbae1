"""A small market in one command: a store, an order server, three traders.

The server is killed in the middle. Nothing is lost, and another one takes over.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import roost
from roost.settings import Settings

PORTS = {"gateway": "8400", "first": "8440", "second": "8442"}
WITHIN_S = 60
SYMBOL = "ACME"


def start(log: Path, *args: str) -> subprocess.Popen[bytes]:
    """A part of Roost; returns when it is up."""
    command = [sys.executable, "-m", "roost", *args, "--data", str(log.parent)]
    process = subprocess.Popen(command, stdout=log.open("wb"), stderr=subprocess.STDOUT)
    deadline = time.monotonic() + WITHIN_S
    while "is up" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"roost {args[0]} did not start:\n{log.read_text()}")
        time.sleep(0.05)
    return process


async def morning(url: str, settings: Settings) -> int:
    """Ann and bob trade; cyd changes her mind. Returns the order of ann's that is left."""
    async with (
        roost.connect(url, token=token_of(settings)) as client,
        client.trader("ann", settings=settings, timeout_s=WITHIN_S) as ann,
        client.trader("bob", settings=settings, timeout_s=WITHIN_S) as bob,
        client.trader("cyd", settings=settings, timeout_s=WITHIN_S) as cyd,
    ):
        bid = accepted(await ann.new(SYMBOL, "buy", price=100, quantity=10))
        print(f"ann bids for 10 at 100: {bid.state}")
        other = accepted(await cyd.new(SYMBOL, "buy", price=99, quantity=5))
        print(f"cyd cancels her bid: {accepted(await cyd.cancel(other.order_id)).state}")
        sale = accepted(await bob.new(SYMBOL, "sell", price=100, quantity=4))
        print(f"bob sells 4 at 100: {sale.state}")
        async for fill in ann.fills():
            if isinstance(fill, roost.Fill):
                print(f"ann bought {fill.quantity} at {fill.price}, {fill.remaining} are left")
            break
        return bid.order_id


async def evening(url: str, settings: Settings, order_id: int) -> None:
    """The other server has the book as it was."""
    async with (
        roost.connect(url, token=token_of(settings)) as client,
        client.trader("ann", settings=settings, timeout_s=WITHIN_S) as ann,
        client.trader("bob", settings=settings, timeout_s=WITHIN_S) as bob,
    ):
        sale = accepted(await bob.new(SYMBOL, "sell", price=100, quantity=6))
        print(f"bob sells 6 at 100: {sale.state}")
        order = await ann.query(order_id, SYMBOL)
        assert not isinstance(order, roost.OrderRefused), order
        print(f"ann's order is {order.state}, {order.remaining} are left")


def accepted(answer: roost.OrderAccepted | roost.OrderRefused) -> roost.OrderAccepted:
    assert isinstance(answer, roost.OrderAccepted), answer
    return answer


def token_of(settings: Settings) -> str:
    return (settings.data / "token").read_text().strip()


def market(folder: Path, ports: dict[str, str]) -> None:
    url, settings = f"http://127.0.0.1:{ports['gateway']}", Settings(data=folder)
    serve = ("orders", "serve", "--ttl", "3")
    processes = [start(folder / "up.log", "up", "--port", ports["gateway"])]
    try:
        first = start(folder / "901.log", *serve, "--id", "901", "--port", ports["first"])
        processes.append(first)
        order_id = asyncio.run(morning(url, settings))
        first.send_signal(signal.SIGKILL)
        print("order server 901 is killed, 902 starts", flush=True)
        processes.append(start(folder / "902.log", *serve, "--id", "902", "--port", ports["second"]))
        asyncio.run(evening(url, settings, order_id))
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait(WITHIN_S)


def main() -> None:
    ports = {name: os.environ.get(f"EXAMPLE_{name.upper()}_PORT", port) for name, port in PORTS.items()}
    with tempfile.TemporaryDirectory() as folder:
        market(Path(folder), ports)


if __name__ == "__main__":
    main()
