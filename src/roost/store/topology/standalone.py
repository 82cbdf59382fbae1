"""One server at a fixed address."""

from __future__ import annotations

from roost.core.loops import Loops
from roost.store.connection import Access, Connection, dial
from roost.store.link import Link, LinkOptions
from roost.store.topology import single_primary_policy
from roost.store.url import Address, Shape


class Standalone:
    shape: Shape = "standalone"

    def __init__(
        self, address: Address, access: Access, options: LinkOptions, loops: Loops | None = None
    ) -> None:
        self.access = access
        self._address = address
        self._options = options
        self._link = Link(str(address), self._connect, options, single_primary_policy, loops=loops)
        self.submit = self._link.submit

    async def ready(self, timeout_s: float | None) -> None:
        await self._link.ready(timeout_s)

    def links(self) -> list[Link]:
        return [self._link]

    def address_for(self, key: bytes) -> Address | None:
        return self._address

    def connection_for(self, key: bytes) -> Connection | None:
        return self._link.connection

    def doubt(self) -> None:
        pass  # there is only one node that it could be

    async def close(self) -> None:
        await self._link.close()

    async def _connect(self) -> Connection:
        return await dial(self._address, self.access, self._options.connect_timeout_s)
