"""A Roost with one order server, and a trader at it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roost.lanes.commands import SERVICE, Method, New, Outcome, Side, decode_outcome, encode
from roost.testing import Answer, eventually, free_port, wait_until
from roost.wire.answer import Answer as WireAnswer
from roost.wire.client import Peer
from roost.wire.trust import wire_secret
from tests.acceptance.conftest import Home, open_home
from tests.acceptance.test_discovery_http import Api

SERVER = "901"


@dataclass
class Market:
    home: Home
    api: Api
    port: int
    numbers: int = 0

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        return self.api.ask(method, f"/orders/v1{path}", body)

    def new(self, account: str, symbol: str, price: int, quantity: int, side: Side = Side.BUY) -> Outcome:
        """An order that is taken."""
        self.numbers += 1
        return asyncio.run(self._send(New(account, self.numbers, 0, symbol, side, price, quantity)))

    async def _send(self, order: New) -> Outcome:
        secret = wire_secret("", self.home.data)
        peer = Peer("127.0.0.1", self.port, secret=secret, role="trader")
        answers: list[WireAnswer] = []

        async def is_taken() -> bool:
            """A shard that has its lease may not have been taken over yet; then nothing happened."""
            answers.append(await peer.call(SERVICE, Method.NEW, encode(order), budget_ms=5000))
            return not answers[-1].code

        try:
            await eventually(is_taken, "the order to be taken", details=lambda: answers[-1].message)
        finally:
            await peer.close()
        return decode_outcome(answers[-1].payload)

    def place(self, symbol: str) -> Any:
        return self.ask("GET", f"/placement/{symbol}").json

    def has_arrived(self, symbol: str, shard: int) -> bool:
        place = self.place(symbol)
        return (place["how"], place["shard"]) == ("pinned", shard)


@contextmanager
def open_market(folder: Path) -> Iterator[Market]:
    with open_home(folder) as home:
        up = home.up()
        port = free_port()
        home.start("orders", "serve", "--id", SERVER, "--port", str(port))
        market = Market(home, Api(home, up.url, home.token()), port)

        def all_owned() -> bool:
            return all(one["owner"] == SERVER for one in market.ask("GET", "/shards").json["shards"])

        wait_until(all_owned, "every shard to have its owner", timeout_s=30)
        yield market
