"""The calls of the controller to entity servers, in the role of a manager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ssl import SSLContext
from typing import Literal, NamedTuple, Protocol

import msgspec

from roost.binding.drain.line import Surveyed
from roost.binding.drain.standing import Standing
from roost.core.errors import NotSent, Unavailable
from roost.version import __version__
from roost.wire.client import Peer
from roost.wire.codes import Code
from roost.wire.limits import DEFAULTS, Limits
from roost.wire.pool import Pool

ENTITY, MOVE, SURVEY, RETIRE, UNRETIRE = 1, 4, 7, 8, 9
SURVEY_LIMIT = 500
SURVEY_PAGES = 400
CALL_MS = 3000
EXTRA_MS = 1000
"""Beyond what a move may take: the answer's way."""

MoveOutcome = Literal["moved", "returned", "later", "pinned", "gone", "released"]


class Moved(NamedTuple):
    """What became of one user."""

    user: str
    outcome: MoveOutcome
    why: str = ""
    phases: dict[str, float] = {}  # noqa: RUF012 - nobody writes to it
    epoch: int = 0

    @property
    def retry_ms(self) -> int:
        return int(self.phases.get("retryMs", 0))


class MoveTerms(NamedTuple):
    max_block_ms: int
    quiesce_ms: int
    mark_ms: int
    force: bool = False

    @property
    def budget_ms(self) -> int:
        return self.quiesce_ms + self.max_block_ms + EXTRA_MS


class EntityServers(Protocol):
    """What the controller asks of entity servers. `NotSent`, `OutcomeUnknown`: it did not hear the answer."""

    async def move(
        self, at: Standing, type_: str, move_id: str, users: Sequence[str], to: Standing, terms: MoveTerms
    ) -> list[Moved]: ...

    async def survey(self, at: Standing, type_: str) -> list[Surveyed]: ...

    async def retire(self, at: Standing, type_: str, quiet_ms: int) -> None: ...

    async def unretire(self, at: Standing, type_: str) -> None: ...


_encode = msgspec.msgpack.Encoder().encode
_moved = msgspec.msgpack.Decoder(list[Moved]).decode
_survey = msgspec.msgpack.Decoder(tuple[str, list[Surveyed]], strict=False).decode


class WireMovers:
    """Over the wire, with one connection to each server."""

    def __init__(
        self,
        secret: Callable[[], bytes],
        *,
        tls: Callable[[], SSLContext | None] = lambda: None,
        limits: Limits = DEFAULTS,
    ) -> None:
        """`secret` and `tls` are asked for when the first server is called."""
        self._secret = secret
        self._tls = tls
        self._limits = limits
        self._pool = Pool(self._dial)

    async def move(
        self, at: Standing, type_: str, move_id: str, users: Sequence[str], to: Standing, terms: MoveTerms
    ) -> list[Moved]:
        if to.address is None:
            raise NotSent(f"{to.server_id} has no wire address")
        said = {
            "maxBlockMs": terms.max_block_ms,
            "quiesceMs": terms.quiesce_ms,
            "markMs": terms.mark_ms,
            "force": terms.force,
        }
        message = (type_, move_id, list(users), (*to.owner, *to.address), said)
        return _moved(await self._call(at, MOVE, message, terms.budget_ms))

    async def survey(self, at: Standing, type_: str) -> list[Surveyed]:
        """Everybody in memory there."""
        found: list[Surveyed] = []
        cursor = ""
        for _ in range(SURVEY_PAGES):
            cursor, page = _survey(await self._call(at, SURVEY, (type_, cursor, SURVEY_LIMIT), CALL_MS))
            found += page
            if not cursor or not page:
                break
        return found

    async def retire(self, at: Standing, type_: str, quiet_ms: int) -> None:
        await self._call(at, RETIRE, (type_, quiet_ms), CALL_MS)

    async def unretire(self, at: Standing, type_: str) -> None:
        await self._call(at, UNRETIRE, (type_,), CALL_MS)

    async def close(self) -> None:
        await self._pool.close()

    async def _call(self, at: Standing, method: int, message: tuple[object, ...], budget_ms: int) -> bytes:
        if at.address is None:
            raise NotSent(f"{at.server_id} has no wire address")
        peer = self._pool.at(*at.address)
        answer = await peer.call(ENTITY, method, _encode(message), budget_ms=budget_ms)
        if answer.code is not Code.OK:
            raise Unavailable(f"{at.server_id} refuses: {answer.message or answer.code.name}")
        return answer.payload

    def _dial(self, host: str, port: int) -> Peer:
        return Peer(
            host,
            port,
            secret=self._secret(),
            role="manager",
            version=__version__,
            ssl=self._tls(),
            expects=frozenset({"entity"}),
            limits=self._limits,
        )
