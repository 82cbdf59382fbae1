"""`roost.connect`: the URL decides the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from roost.core.errors import InvalidInput
from roost.core.loops import Loops
from roost.sdk.client import LONGEST_DEFAULT_TTL_S, Client
from roost.sdk.http.gateways import gateway_urls
from roost.sdk.ports import OpenTransport, Transport

if TYPE_CHECKING:
    from roost.app import Platform


def connect(
    url: str | Platform = "",
    *,
    token: str = "",
    ttl_seconds: float = 0.0,
    heartbeat_interval_ms: int | None = None,
    key_prefix: str = "service:",
    namespace: str = "",
    cache_folder: Path | str | None = None,
    sweeps: bool = True,
) -> Client:
    """A client: `http://…` through a gateway, a store URL straight to the store, a `Platform` in process.

    Several gateways of one store are a comma list: when one does not answer, the next is asked, within the
    time of the call; heartbeats and watches go on there too.

    Without a URL it is taken from ROOST_URL, else from REDIS_URL, else it is the gateway on this machine.
    The lease is 30 s (15 s at a gateway of profile lan) unless `ttl_seconds` says otherwise, with three beats
    to a lease unless `heartbeat_interval_ms` does. `cache_folder` keeps the last lists for hard times; the
    default is below the data folder. `sweeps=False` leaves the ending of leases to gateways alone.
    """
    if heartbeat_interval_ms is not None:
        _check_interval(heartbeat_interval_ms, ttl_seconds or LONGEST_DEFAULT_TTL_S)
    loops = Loops()
    if not isinstance(url, str):
        where, ways = "platform:", _in_process(url)
    else:
        where, token = _defaults(url, token)
        over_http = where.startswith(("http://", "https://"))
        ways = (
            _over_http(where, token)
            if over_http
            else _to_store(where, namespace, key_prefix, loops if sweeps else None)
        )
    return Client(
        where,
        *ways,
        loops=loops,
        ttl_seconds=ttl_seconds,
        heartbeat_interval_ms=heartbeat_interval_ms,
        cache_folder=_default_cache() if cache_folder is None else Path(cache_folder),
    )


def _check_interval(interval_ms: int, ttl_seconds: float) -> None:
    if not 0 < interval_ms * 2 <= ttl_seconds * 1000:
        raise InvalidInput(
            f"a lease of {ttl_seconds:g} s needs at least two beats, not one every {interval_ms} ms",
            hint="give ttl_seconds along with heartbeat_interval_ms",
        )


Ways = tuple[OpenTransport, OpenTransport]
"""How to open the client's transport, and the one for its heart, which lives on another loop."""


def _over_http(url: str, token: str) -> Ways:
    gateway_urls(url)  # a bad one is said here, not by the first call

    async def open_() -> Transport:
        from roost.sdk.http.transport import HttpTransport

        return HttpTransport(url, token)

    return open_, open_


def _to_store(url: str, namespace: str, key_prefix: str, loops: Loops | None) -> Ways:
    async def open_(loops: Loops | None = loops) -> Transport:
        from roost.sdk.direct.transport import StoreTransport
        from roost.store.keys import Keys

        return await StoreTransport.open(url, Keys(namespace, key_prefix), loops=loops)

    async def open_for_beats() -> Transport:
        return await open_(None)

    return open_, open_for_beats


def _in_process(platform: Platform) -> Ways:
    async def open_() -> Transport:
        from roost.sdk.direct.transport import PlatformTransport

        return PlatformTransport(platform)

    async def open_for_beats() -> Transport:
        from roost.sdk.direct.transport import StoreTransport

        return await StoreTransport.beside(platform)

    return open_, open_for_beats


def _defaults(url: str, token: str) -> tuple[str, str]:
    from roost.settings import client_defaults

    default_url, default_token = client_defaults()
    return url or default_url, token or default_token


def _default_cache() -> Path:
    from roost.settings import default_data_folder

    return default_data_folder() / "cache"
