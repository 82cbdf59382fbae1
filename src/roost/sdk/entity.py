"""What you write: a class whose objects are users.

    class Counter(roost.Entity):
        count = 0

        async def load(self, state: bytes | None) -> None:
            self.count = int(state or 0)

        def save(self) -> bytes:
            return str(self.count).encode()

        async def handle(self, message: roost.Message) -> object:
            self.count += 1
            return self.count

`roost entity --id 501 --class counter:Counter` runs it. Everything of one user happens in turns, one at a
time and in order: no lock is needed inside a class. docs/entities.md says what is lost when.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from roost.core.errors import InvalidInput
from roost.sdk.trade import Fill, FillGap, OrderAccepted, OrderRefused, Side

LEAST_WINDOW_MS = 10
LONGEST_WINDOW_MS = 600_000

LoginReason = Literal["new", "return", "moved", "failover"]
"""A user whom nobody knew; one who comes back; one who was moved here; one whose server died."""

LogoutReason = Literal["left", "dropped", "idle", "stopping", "moved", "fenced"]
"""They said so; their connection is gone; nothing came for long; the server stops; another server has them by
plan; another server took them over, and nothing of this object will be saved."""


@dataclass(frozen=True, slots=True)
class WriteBack:
    """Acknowledged at once, written within `ms`: a crash loses at most what came in that window."""

    ms: int = 1000

    @property
    def word(self) -> str:
        return f"write-back:{self.ms}"


@dataclass(frozen=True, slots=True)
class Journal:
    """Acknowledged when the message is in the store's journal; a crash replays it through `handle`.

    `ms`: how often the state itself is written, which shortens the replay.
    """

    ms: int = 1000

    @property
    def word(self) -> str:
        return "journal"


@dataclass(frozen=True, slots=True)
class WriteThrough:
    """Acknowledged when the state is in the database."""

    @property
    def word(self) -> str:
        return "write-through"

    @property
    def ms(self) -> int:
        return 0


Durability = WriteBack | Journal | WriteThrough


@dataclass(frozen=True, slots=True)
class Now:
    """May be moved at once. All users of the server who name the same `party` move together, or none."""

    party: str = ""


@dataclass(frozen=True, slots=True)
class Later:
    """Not just now; ask again after so long."""

    seconds: float = 1.0


@dataclass(frozen=True, slots=True)
class Pinned:
    """Stays here, and why: for an operator to read."""

    why: str = ""


@dataclass(slots=True)
class Message:
    """One message of the user. `handle` may be called again with it after a crash: then `replayed` is set."""

    body: Any
    sequence: int
    """Rises with every message of the user, across sessions and servers."""
    session: str = ""
    at: float = 0.0
    """Seconds since 1970 when it was first executed. Use this instead of a clock: a replay sees the same."""
    replayed: bool = False


class Timer(Protocol):
    """A call that is due later, in a turn of its user."""

    def cancel(self) -> None: ...


class Orders(Protocol):
    """Commands to the order servers, in the name of the user. Each returns its number, at once.

    It is sent when the state that this turn leaves is in the database; `on_order` gets the answer. Prices are
    in ticks; a symbol is needed for all, because it says which server has the book.
    """

    def new(self, symbol: str, side: Side, *, price: int, quantity: int, immediate: bool = False) -> int: ...

    def cancel(self, order_id: int, symbol: str) -> int: ...

    def amend(self, order_id: int, symbol: str, *, price: int, quantity: int) -> int: ...


TimerCall = Callable[[], Awaitable[None] | None]


class Home(Protocol):
    """What an entity knows of the server that holds it."""

    user: str
    type: str
    server_id: str
    version: str

    @property
    def context(self) -> dict[str, Any]: ...

    @property
    def orders(self) -> Orders: ...

    def push(self, body: object) -> bool: ...

    def changed(self) -> None: ...

    def after(self, seconds: float, call: TimerCall, *, repeats: bool) -> Timer: ...


class _Nowhere:
    """For an entity in a test of its own: nothing is sent, nothing is due."""

    user = type = server_id = version = ""
    context: ClassVar[dict[str, Any]] = {}

    @property
    def orders(self) -> Orders:
        raise RuntimeError("orders need a server: this entity has none")

    def push(self, body: object) -> bool:
        return False

    def changed(self) -> None:
        return None

    def after(self, seconds: float, call: TimerCall, *, repeats: bool) -> Timer:
        raise RuntimeError("timers need a server: this entity has none")


class Entity:
    """One user of one service type. Made without arguments, then `load`ed, on one server at a time."""

    durability: ClassVar[Durability] = WriteBack()
    """What an acknowledgement is worth."""
    schema_version: ClassVar[int] = 1
    """Of the bytes that `save` makes; it is kept beside them."""
    min_reader: ClassVar[int] = 1
    """The lowest `schema_version` of a class that can read them: one below it refuses the user."""

    home: Home = _Nowhere()
    """Set by the server before `load`."""
    loaded_schema: int = 0
    """`schema_version` of the state that `load` gets; 0 for a new user."""

    async def load(self, state: bytes | None) -> None:
        """Take up what `save` gave; None: a new user."""

    def save(self) -> bytes:
        """The whole state. Called between turns, never during one."""
        return b""

    async def handle(self, message: Message) -> object:
        """Answer one message; what it returns (anything that msgpack can say) is the reply.

        What it raises is answered with FAILED, and what it changed before that stays. In a class with
        `Journal` it must do the same with the same state and message.
        """
        raise NotImplementedError(f"{type(self).__name__} handles no messages")

    async def on_login(self, reason: LoginReason) -> None:
        """The user is here: called after `load`, before the first message."""

    async def on_logout(self, reason: LogoutReason) -> None:
        """The user has gone; the state stays cached until it is released."""

    async def on_order(self, answer: OrderAccepted | OrderRefused) -> None:
        """What became of a command of `self.orders`, by its `client_seq`. Once in effect, like `on_fill`."""

    async def on_fill(self, fill: Fill) -> None:
        """A part of an order was traded.

        Of each shard all of them come, in order. That one was told is written with what this changed, so a
        crash or a move doubles and loses none. It may come before the answer to its order.
        """

    async def on_fills_missed(self, gap: FillGap) -> None:
        """Fills of a shard are missing: they were more than order servers keep. May be told again."""

    def can_move(self) -> Now | Later | Pinned:
        """Whether a drain may move the user to another server now.

        It changes nothing: it is also asked while a handler of the user waits for something.
        """
        return Now()

    # -- what a class may use

    @property
    def user(self) -> str:
        return self.home.user

    @property
    def context(self) -> dict[str, Any]:
        """What the gate said of the client at login: `nickname`, `address`."""
        return self.home.context

    @property
    def orders(self) -> Orders:
        """As the account `<type>:<user>`; raises `Unavailable` on a server that knows no order servers."""
        return self.home.orders

    def push(self, body: object) -> bool:
        """Send the user something that was not asked for; False: no connection is known. May be lost."""
        return self.home.push(body)

    def changed(self) -> None:
        """The state changed outside of a turn, by a task of your own: have it written."""
        self.home.changed()

    def after(self, seconds: float, call: TimerCall) -> Timer:
        """Call once in a turn of this user; it ends with the session and is not kept over a move."""
        return self.home.after(seconds, call, repeats=False)

    def every(self, seconds: float, call: TimerCall) -> Timer:
        """Call again and again, each in a turn of this user, until the session ends."""
        return self.home.after(seconds, call, repeats=True)


def check_entity_class(found: object) -> type[Entity]:
    """The class, if its declarations fit together; `InvalidInput` says what does not."""
    if not (isinstance(found, type) and issubclass(found, Entity)):
        raise InvalidInput(f"{getattr(found, '__name__', found)!r} is no subclass of roost.Entity")
    faults = [*_durability_faults(found), *_schema_faults(found)]
    if faults:
        raise InvalidInput(f"{found.__name__}: {'; '.join(faults)}")
    return found


def _durability_faults(found: type[Entity]) -> list[str]:
    durability: Any = found.durability
    if not isinstance(durability, (WriteBack, Journal, WriteThrough)):
        return ["durability must be WriteBack(ms=…), Journal() or WriteThrough(), an object of it"]
    if isinstance(durability, WriteThrough):
        return []
    ms: Any = durability.ms
    if not isinstance(ms, int) or not LEAST_WINDOW_MS <= ms <= LONGEST_WINDOW_MS:
        return [f"durability: ms must be {LEAST_WINDOW_MS} to {LONGEST_WINDOW_MS}, not {ms!r}"]
    return []


def _schema_faults(found: type[Entity]) -> list[str]:
    own: Any = found.schema_version
    reader: Any = found.min_reader
    if not (isinstance(own, int) and isinstance(reader, int) and 1 <= reader <= own < 2**31):
        return [f"1 <= min_reader <= schema_version is needed, not {reader!r} and {own!r}"]
    return []
