"""The journal: what was executed is in the store's stream before it is acknowledged.

Appends are grouped: what was executed while the last append was under way goes into the next one of its
partition. Each entry names the one before it, so a store that lost entries in a failover says so, and the
whole tail that the row does not hold is appended again before anything else is acknowledged.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

import msgspec

from roost.binding.partition import APPEND_LIMIT, JournalAnswer, JournalEntry
from roost.binding.service import Bindings
from roost.core.errors import RoostError
from roost.sdk.entity import Message
from roost.servers.entity.session import Entry, Session

log = logging.getLogger("roost.entity")

GROUP_BYTES = 4 * 1024 * 1024
TRIM_EVERY = 64
"""Messages of a user: a trim costs as much as an append. The last ones go when the user is released."""
TRIMS = 64
"""At once."""

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[str, float, msgspec.Raw]).decode
_decode_body = msgspec.msgpack.Decoder().decode


def pack(message: Message) -> bytes:
    return _encode((message.session, message.at, message.body))


def unpack(sequence: int, payload: bytes) -> Message:
    session, at, body = _decode(payload)
    return Message(_decode_body(body), sequence, session, at, replayed=True)


class JournalWriter:
    """`fenced` is told of each user who was granted to somebody else, or anew."""

    def __init__(self, bindings: Bindings, type_: str, fenced: Callable[[Session], None]) -> None:
        self._bindings = bindings
        self._type = type_
        self._fenced = fenced
        self._behind: list[dict[Session, None]] = [{} for _ in bindings.partitions]
        """By partition, the sessions whose tail is longer than what the journal confirmed."""
        self._kicks = [asyncio.Event() for _ in bindings.partitions]
        self._trims: dict[Session, int] = {}
        self.counts: Counter[str] = Counter()

    def add(self, session: Session, entry: Entry) -> None:
        session.tail.append(entry)
        self.look_at(session)

    def look_at(self, session: Session) -> None:
        """Append what of its tail is not confirmed."""
        self._behind[session.partition][session] = None
        self._kicks[session.partition].set()

    def again(self, session: Session) -> None:
        """The store may have lost it: append the whole tail."""
        session.appended = 0
        if session.tail:
            self.look_at(session)

    def saved(self, session: Session, sequence: int) -> None:
        """The row holds it: the journal need not, and lets go of it now and then."""
        if sequence - session.trimmed >= TRIM_EVERY:
            session.trimmed = sequence
            self._trims[session] = sequence

    # -- the loops

    async def step(self, partition: int) -> None:
        """One group of one partition."""
        await self._kicks[partition].wait()
        self._kicks[partition].clear()
        group = self._gather(partition)
        if not group:
            return
        try:
            answers = await self._bindings.append(self._type, partition, [entry for _, entry in group])
        except BaseException:
            for session, _ in group:
                self.look_at(session)
            raise
        for (session, entry), answer in zip(group, answers, strict=True):
            self._apply(session, entry, answer)

    def _gather(self, partition: int) -> list[tuple[Session, JournalEntry]]:
        group: list[tuple[Session, JournalEntry]] = []
        size, behind = 0, self._behind[partition]
        while behind and len(group) < APPEND_LIMIT and size < GROUP_BYTES:
            session = next(iter(behind))
            del behind[session]
            if not session.is_open:
                continue
            for entry in self._missing(session)[: APPEND_LIMIT - len(group)]:
                group.append((session, entry))
                size += len(entry.payload)
                if size >= GROUP_BYTES:
                    break
        if behind:
            self._kicks[partition].set()
        return group

    def _missing(self, session: Session) -> list[JournalEntry]:
        """What the journal has not confirmed, each after the one before it."""
        entries, before = [], 0
        for sequence, payload in session.tail:
            if sequence > session.appended:
                entries.append(JournalEntry(session.user, session.epoch, sequence, payload, before))
            before = sequence
        return entries

    def _apply(self, session: Session, entry: JournalEntry, answer: JournalAnswer) -> None:
        self.counts[answer.value] += 1
        if not session.is_open:
            return
        match answer:
            case JournalAnswer.OK:
                session.appended = max(session.appended, entry.sequence)
                session.durable(session.appended)
                if session.tail and session.tail[-1].sequence > session.appended:
                    self.look_at(session)
            case JournalAnswer.BEHIND:
                self.again(session)
            case JournalAnswer.FENCED if entry.epoch == session.epoch:
                self._fenced(session)
            case JournalAnswer.FENCED:
                self.look_at(session)

    async def trim_all(self, session: Session) -> None:
        """The row holds everything, and the user leaves."""
        self._trims.pop(session, None)
        if session.trimmed < session.last_sequence:
            await self._bindings.trim(self._type, session.user, session.last_sequence)

    async def trim(self) -> None:
        """Let go of what rows hold, a few users at once."""
        some = [(session, self._trims.pop(session)) for session in list(self._trims)[:TRIMS]]
        trims = (self._bindings.trim(self._type, session.user, sequence) for session, sequence in some)
        for result in await asyncio.gather(*trims, return_exceptions=True):
            if isinstance(result, RoostError):  # the next flush of the user trims it too
                log.debug("journal not trimmed", extra={"reason": result.message})
