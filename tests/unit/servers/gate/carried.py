"""A carrier between a client and servers that are lists: the test decides what arrives and is answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import msgspec

from roost.api.discovery import Change, Instance
from roost.core.errors import OutcomeUnknown
from roost.servers.gate.carrier import LOGIN, LOGOUT, MESSAGE, Carrier, Services
from roost.servers.gate.counting import Book, Books
from roost.servers.gate.finder import Finder
from roost.servers.gate.lane import Lane
from roost.servers.gate.peers import Peers
from roost.servers.gate.queued import LaneCounts, LaneLimits, Message, Refusal, Room, Terms
from roost.servers.gate.routes import Route
from roost.wire.answer import Answer, refusal
from roost.wire.client import Done
from roost.wire.codes import Code

HOME, OTHER = Route("501", "1", 10), Route("502", "7", 20)

_pack = msgspec.msgpack.encode


def shown(route: Route) -> Change:
    """Discovery shows this life of the server."""
    instance = Instance(
        type="entity",
        group="main",
        instance_id=route.server_id,
        server_id=route.server_id,
        life=route.life,
        status="ready",
        accepting=True,
        last_heartbeat="",
        private_ip="127.0.0.1",
        ports={"wire": 1},
    )
    return Change("added", 1, "1", route.server_id, route.life, route.server_id, "ready", instance)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Sent:
    """A call on its way."""

    def __init__(self, server: str, method: int, words: dict[str, Any], done: Done) -> None:
        self.server = server
        self.method = method
        self.sequence: int = words.get("sequence") or 0
        self.oldest: int = words.get("oldest") or 0
        self.reply = done

    def ok(self, payload: bytes, epoch: int) -> None:
        self.reply(Answer(payload, epoch=epoch))

    def refused(self, code: Code, **fields: Any) -> None:
        self.reply(refusal(code, "no", **fields))

    def lost(self) -> None:
        self.reply(OutcomeUnknown("the connection was lost"))


class Wire:
    """The line to one server."""

    def __init__(self, town: Carried, server_id: str) -> None:
        self._town = town
        self._server_id = server_id

    def send(self, service: int, method: int, payload: bytes, *, done: Done, **words: Any) -> None:
        sent = Sent(self._server_id, method, words, done)
        (self._town.logouts if method == LOGOUT else self._town.sent).append(sent)

    async def close(self) -> None:
        pass


class Client:
    """The session of one user."""

    is_connected = True
    traceparent: bytes | None = None

    def __init__(self, user: str) -> None:
        self.user = user
        self.session_id = "s1"
        self.told: list[tuple[object, str]] = []
        """(id of the message, ok or code)"""
        self.ended_by = ""
        self.carrier: Carrier | None = None

    def context(self) -> dict[str, Any]:
        return {}

    def gone(self, reason: str) -> None:
        self.ended_by = reason
        assert self.carrier is not None
        self.carrier.close(reason)

    def greeted(self, carrier: Carrier) -> None:
        pass

    def looking(self, carrier: Carrier) -> None:
        pass

    def deliver(self, carrier: Carrier, message: Message, payload: bytes, epoch: int) -> None:
        self.told.append((message.id, "ok"))

    def refuse(self, carrier: Carrier, message: Message, refusal: Refusal) -> None:
        self.told.append((message.id, refusal.code))

    def taken_over(self, reason: str) -> None:
        self.gone("taken-over")


class Carried:
    """One user's carrier, and all that is on its way."""

    def __init__(
        self, *, user: str = "ann", limits: LaneLimits | None = None, books: Books | None = None
    ) -> None:
        self.clock = Clock()
        self.sent: list[Sent] = []
        """Calls in the order in which they went out; the test answers them."""
        self.logouts: list[Sent] = []
        self.looks: list[tuple[int, Route | None]] = []
        self.books = books or Books()
        peers = Peers(lambda server: Wire(self, server.server_id))
        for route in (HOME, OTHER):
            peers.apply("entity", shown(route))
        self.terms = Terms(limits or LaneLimits(), Room(1000, 1 << 20), LaneCounts(), self.clock)
        self.services = Services(cast(Finder, self), peers, self.terms, self.books)
        self.client, self.carrier = self.session(user)

    def session(self, user: str, *, resumed: bool = False) -> tuple[Client, Carrier]:
        client = Client(user)
        client.carrier = carrier = Carrier(client, "entity", self.services, resumed=resumed)
        return client, carrier

    @property
    def lane(self) -> Lane:
        return self.carrier.lane

    def find(self, lane: Lane, bounced: Route | None) -> None:
        """The finder: the test answers."""
        self.looks.append((lane.turn, bounced))

    def home_of(self, type_: str, user: str, found: Callable[[Route], None]) -> None:
        found(OTHER)

    def carriers(self, type_: str) -> list[Carrier]:
        """The gate, as a witness sees it."""
        return [self.carrier]

    # -- steps that most tests take

    def counted(self, job: str = "job-1", **terms: Any) -> Book:
        """Somebody counts from now on."""
        book = Book(job, "entity", self.clock, **terms)
        self.books.add(book)
        self.carrier.count_for(book)
        return book

    def settle(self, route: Route = HOME, last: int = 0, carrier: Carrier | None = None) -> None:
        """The home is there and takes the login."""
        lane = (carrier or self.carrier).lane
        lane.start()
        lane.routed(lane.turn, route)
        login = self.take(lambda one: one.method == LOGIN)
        login.ok(_pack([last, "return", "write-back:1000"]), route.epoch)

    def say(self, name: object, sequence: int = 0, carrier: Carrier | None = None) -> Refusal | None:
        """As `Session` does it."""
        message, way = Message(name, sequence, b"x"), carrier or self.carrier
        return way.take(message) if way.books else way.lane.take(message)

    def take(self, fits: Callable[[Sent], bool] = lambda one: one.method == MESSAGE) -> Sent:
        """The next call of this kind, off the list."""
        found = next(one for one in self.sent if fits(one))
        self.sent.remove(found)
        return found
