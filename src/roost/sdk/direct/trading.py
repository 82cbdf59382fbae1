"""From the settings of this machine to a trader: the secret, certificates, and who the order servers are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from roost.core.errors import InvalidInput
from roost.sdk.direct.trade_words import address_of
from roost.sdk.direct.trader import Trader
from roost.sdk.looking import Looking
from roost.settings import Loaded, Settings
from roost.wire.trust import client_tls, wire_secret

TYPE = "orders"
WAIT_S = 0.3
"""How long a command waits for a connection that is away before the owner is looked up again."""


def open_trader(
    client: Looking,
    account: str,
    *,
    servers: Sequence[str],
    timeout_s: float,
    cursor: Mapping[int, int],
    next_seq: int,
    settings: Settings | None,
) -> Trader:
    """`servers` empty: those that discovery shows."""
    own = settings or Loaded.load().settings
    for address in servers:
        if not address.rpartition(":")[2].isdecimal():
            raise InvalidInput(f"{address!r} is no address of an order server", hint="host:8440")
    given = [address.replace("[", "").replace("]", "") for address in servers]  # of IPv6, as the servers do

    async def known() -> list[str]:
        return given or [*filter(None, map(address_of, await client.discover(TYPE)))]

    return Trader(
        account,
        known,
        secret=wire_secret(own.wire_secret, own.data if own.is_dev() else None),
        ssl=client_tls(own.wire.tls_ca),
        limits=replace(own.wire.limits(), wait_s=WAIT_S),
        loops=client.loops,
        timeout_s=timeout_s,
        cursor=cursor,
        next_seq=next_seq,
    )
