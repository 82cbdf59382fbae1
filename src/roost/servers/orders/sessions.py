"""What an order server knows of accounts: who hears of their fills, and which numbers they used lately."""

from __future__ import annotations

from roost.lanes.commands import SERVICE, Method, check_account
from roost.wire.server import Connection

KEPT_NUMBERS = 2048
"""Numbers of commands remembered for an account; the shards remember answers for longer."""

EVENT = int(Method.FOLLOW)
"""A push of an event has the method that asked for it."""


class Sessions:
    """By account."""

    def __init__(self) -> None:
        self._followers: dict[str, set[Connection]] = {}
        self._following: dict[Connection, set[str]] = {}
        self.numbers: dict[str, dict[int, str]] = {}
        self._silent: dict[str, dict[int, str]] = {}
        """Of accounts that have sent nothing since `age` was called."""

    @property
    def followed(self) -> int:
        """Accounts that are followed, each counted for every connection that does."""
        return sum(map(len, self._following.values()))

    def follow(self, account: str, connection: Connection) -> None:
        """Push the account's events over this connection until it is gone, or wants them no more."""
        self._followers.setdefault(account, set()).add(connection)
        accounts = self._following.get(connection)
        if accounts is None:
            self._following[connection] = {account}
            connection.on_close(self._gone)
        else:
            accounts.add(account)

    def unfollow(self, account: str, connection: Connection) -> None:
        self._following.get(connection, set()).discard(account)
        self._leave(account, connection)

    def tell(self, events: list[tuple[str, bytes]]) -> None:
        followers = self._followers
        if not followers:
            return
        for account, event in events:
            for connection in followers.get(account, ()):
                connection.push(SERVICE, EVENT, event)

    def numbers_of(self, account: str, acked: int) -> dict[int, str]:
        """By number the symbol that it was used for, with room for one more; `InvalidInput` for no account.

        A number of another symbol belongs to another command: no shard sees that of another shard.
        """
        numbers = self.numbers.get(account)
        if numbers is None:
            check_account(account)
            numbers = self.numbers[account] = self._silent.pop(account, {})
        if len(numbers) >= KEPT_NUMBERS:
            self._forget(numbers, acked)
        return numbers

    def age(self) -> None:
        """Forget the numbers of accounts that have sent nothing since the last call of this.

        What is sent again after so long is known to its shard; another use for another symbol is not noticed.
        """
        self._silent = dict(self.numbers)
        self.numbers.clear()

    def _forget(self, numbers: dict[int, str], acked: int) -> None:
        """Those that were answered, or else the older half."""
        for number in [number for number in numbers if number < acked]:
            del numbers[number]
        while len(numbers) > KEPT_NUMBERS // 2:
            del numbers[next(iter(numbers))]

    def _gone(self, connection: Connection) -> None:
        for account in self._following.pop(connection, ()):
            self._leave(account, connection)

    def _leave(self, account: str, connection: Connection) -> None:
        followers = self._followers.get(account)
        if followers is not None:
            followers.discard(connection)
            if not followers:
                del self._followers[account]
