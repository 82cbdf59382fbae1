"""What a shard remembers of each account: the answers to its commands and the events it was sent.

The same number again gets the first answer again; how many are kept is bounded, and what was dropped is known
by a floor, so that a number is never executed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final
from zlib import crc32

import msgspec

from roost.lanes.commands import (
    Amend,
    Cancel,
    Method,
    New,
    Reason,
    decode_command,
    decode_event,
    decode_outcome,
    encode,
)

BUCKETS: Final = 64
MAX_ANSWERS: Final = 1024
DROPPED_AT_ONCE: Final = 256
"""Of an account that acknowledges nothing: dropping many at a time makes it cheap to find the oldest."""
MAX_EVENTS: Final = 256
LOST_EVENTS: Final = 2**32
"""More than the commands that a store has lost can have caused."""

Request = New | Cancel | Amend
Answer = tuple[Request, bytes, str]
"""The command, its reply, the symbol that it was about ("" if unknown)."""

_METHODS: Final[dict[type, int]] = {
    New: int(Method.NEW),
    Cancel: int(Method.CANCEL),
    Amend: int(Method.AMEND),
}


class KeptAnswer(msgspec.Struct, array_like=True, gc=False):
    """An answer in a snapshot, or on its way to another shard with the book of its symbol."""

    number: int
    method: int
    request: bytes
    reply: bytes
    symbol: str


class KeptAccount(msgspec.Struct, array_like=True, gc=False):
    name: str
    floor: int
    event_number: int
    events: list[bytes]
    answers: list[KeptAnswer]


def same_content(first: Request, second: Request) -> bool:
    """Apart from `acked`: a command that is sent again may know more than the first time."""
    return type(first) is type(second) and first == msgspec.structs.replace(second, acked=first.acked)


def keep(number: int, answer: Answer) -> KeptAnswer:
    request, reply, symbol = answer
    return KeptAnswer(number, _METHODS[type(request)], encode(request), reply, symbol)


def unkeep(kept: KeptAnswer) -> Answer:
    request = decode_command(kept.method, kept.request)
    if not isinstance(request, New | Cancel | Amend):
        raise TypeError(f"a kept answer is not of a trader's command but of method {kept.method}")
    return request, kept.reply, kept.symbol


class Account:
    __slots__ = ("answers", "event_number", "events", "floor", "name", "newest", "part")

    def __init__(self, name: str) -> None:
        self.name = name
        self.part = f"accounts:{crc32(name.encode()) % BUCKETS}"
        self.floor = 0
        """Answers to numbers up to this one are kept no longer."""
        self.answers: dict[int, Answer] = {}
        self.newest = 0
        """At least the highest number that is in `answers`."""
        self.event_number = 0
        """Of the last event."""
        self.events: list[bytes] = []
        """The last `MAX_EVENTS`. NB: an empty deque would be a third of what a quiet account costs."""

    def tell(self, event: bytes) -> None:
        self.events.append(event)
        if len(self.events) > MAX_EVENTS:
            del self.events[0]

    def answered(self, number: int, acked: int, answer: Answer) -> None:
        """Keep an answer; `acked` frees those below it, this one never."""
        answers = self.answers
        below = acked if acked < number else number
        if self.newest < below:  # all that is kept was seen: the way of a client that acknowledges at once
            answers.clear()
            answers[number] = answer
            self.newest = number
            if below - 1 > self.floor:
                self.floor = below - 1
            return
        answers[number] = answer
        if number > self.newest:
            self.newest = number
        if below - self.floor > 1:
            if below - self.floor == 2:
                answers.pop(below - 1, None)
                self.floor = below - 1
            else:
                self._drop_below(below)
        if len(answers) > MAX_ANSWERS:
            self._drop_below(sorted(answers)[DROPPED_AT_ONCE])

    def take_over(self, floor: int, answers: Iterable[tuple[int, Answer]]) -> None:
        """What another shard knew of this account: its answers count here as there.

        One that is kept here stays, unless it only says that the symbol was away.
        """
        if floor > self.floor:
            self._drop_below(floor + 1)
        for number, answer in answers:
            kept = self.answers.get(number)
            if number > self.floor and (kept is None or decode_outcome(kept[1]).reason == Reason.MOVED):
                self.answered(number, 0, answer)

    def events_after(self, number: int, seq: int) -> tuple[int, list[bytes]]:
        """Those that commands up to `seq` caused and that come after the number that is answered with them.

        It is `number`, unless some of them are kept no longer, or never were.
        """
        kept, last = list(self.events), self.event_number
        while kept and decode_event(kept[-1]).seq > seq:
            kept.pop()
            last -= 1
        missed = last - number
        if missed < 0:
            return last, []
        if missed > len(kept):
            return last - len(kept), kept
        return number, kept[len(kept) - missed :]

    def skip_events(self) -> None:
        """Some were lost: whoever has seen them, and whoever has not, finds a gap."""
        self.event_number += LOST_EVENTS
        self.events.clear()

    def _drop_below(self, number: int) -> None:
        answers = self.answers
        if number - self.floor <= len(answers):
            for old in range(self.floor + 1, number):
                answers.pop(old, None)
        else:
            for old in [old for old in answers if old < number]:
                del answers[old]
        self.floor = number - 1


class Accounts:
    """All accounts of a shard, in buckets that are snapshot parts."""

    def __init__(self) -> None:
        self._by_name: dict[str, Account] = {}
        self._by_part: dict[str, list[Account]] = {}
        self.events_from = 0
        """Events of an account that is new are numbered from here: those before it may be lost ones."""
        self.get = self._by_name.get

    def of(self, name: str) -> Account:
        """The account, new if it was not there."""
        account = self._by_name.get(name)
        if account is None:
            account = self._by_name[name] = Account(name)
            account.event_number = self.events_from
            self._by_part.setdefault(account.part, []).append(account)
        return account

    def events_after(self, name: str, number: int, seq: int) -> tuple[int, list[bytes]]:
        account = self._by_name.get(name)
        return (0, []) if account is None else account.events_after(number, seq)

    def skip_events(self) -> Iterable[str]:
        """The parts that changed."""
        self.events_from += LOST_EVENTS
        for account in self:
            account.skip_events()
        return self._by_part

    def encode_part(self, part: str) -> bytes:
        kept = [_kept(account) for account in self._by_part.get(part, ())]
        kept.sort(key=lambda account: account.name)
        return encode(kept) if kept else b""

    def restore_part(self, data: bytes) -> None:
        for kept in _decode(data):
            account = self.of(kept.name)
            account.floor = kept.floor
            account.event_number = kept.event_number
            account.events.extend(kept.events)
            account.answers.update((one.number, unkeep(one)) for one in kept.answers)
            account.newest = max(account.answers, default=0)

    def clear(self) -> None:
        self._by_name.clear()
        self._by_part.clear()
        self.events_from = 0

    def __iter__(self) -> Iterator[Account]:
        return iter(self._by_name.values())


_decode = msgspec.msgpack.Decoder(list[KeptAccount]).decode


def _kept(account: Account) -> KeptAccount:
    answers = [keep(number, account.answers[number]) for number in sorted(account.answers)]
    return KeptAccount(account.name, account.floor, account.event_number, list(account.events), answers)
