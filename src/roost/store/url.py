"""Store URLs: one line that says where the store is and how to get in.

    redis://[user:password@]host[:6379][/db]            one server
    rediss://…                                          the same over TLS
    unix:///path/to.sock[?db=0]                         one server by its socket
    redis[s]+sentinel://…@h1[:26379],h2/mymaster[?db=0] found and followed through Sentinel
    redis[s]+cluster://…@h1[:6379],h2                   a cluster, found through any of its nodes
    embedded: or embedded:/folder                       a server of our own

TLS takes `?tls_ca=FILE`, `?tls_cert=FILE&tls_key=FILE` and `?tls_verify=no`. Sentinels with a password
of their own take `?sentinel_user=…&sentinel_password=…`.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from roost.core.errors import InvalidInput

Shape = Literal["standalone", "sentinel", "cluster", "embedded"]


class Address(NamedTuple):
    """Where one node listens. `port` 0 means that `host` is the path of a unix socket."""

    host: str
    port: int

    def __str__(self) -> str:
        if not self.port:
            return f"unix:{self.host}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Credentials:
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def auth_args(self) -> tuple[str, ...]:
        """The arguments of AUTH; empty when there is nothing to say."""
        if not self.password:
            return ()
        return (self.username, self.password) if self.username else (self.password,)


@dataclass(frozen=True, slots=True)
class Tls:
    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True

    def context(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.ca or None)
            if self.cert:
                context.load_cert_chain(self.cert, self.key or None)
        except (OSError, ssl.SSLError) as error:
            raise InvalidInput(f"cannot load the TLS files of the store URL: {error}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class StoreUrl:
    shape: Shape
    seeds: tuple[Address, ...] = ()
    credentials: Credentials = Credentials()
    tls: Tls | None = None
    db: int = 0
    master: str = ""
    sentinel_credentials: Credentials = Credentials()
    folder: Path | None = None
    """Of `embedded:`; None means the `store` folder of the data folder."""

    def __str__(self) -> str:
        """The URL without its secrets, for logs and messages."""
        if self.shape == "embedded":
            return f"embedded:{self.folder or ''}"
        if not self.seeds[0].port:
            return f"unix://{self.seeds[0].host}" + (f"?db={self.db}" if self.db else "")
        scheme = ("rediss" if self.tls else "redis") + (
            "" if self.shape == "standalone" else f"+{self.shape}"
        )
        user = f"{self.credentials.username}:***@" if self.credentials.password else ""
        tail = f"/{self.master}" if self.master else ""
        if self.db:
            tail += f"?db={self.db}" if self.master else f"/{self.db}"
        return f"{scheme}://{user}{','.join(map(str, self.seeds))}{tail}"

    def on_loopback(self) -> bool:
        """Whether only this machine can be meant."""
        return all(not seed.port or _is_loopback(seed.host) for seed in self.seeds)


_TLS_OPTIONS = {"tls_ca", "tls_cert", "tls_key", "tls_verify"}
_OPTIONS: dict[str, set[str]] = {
    "redis": {"db"},
    "rediss": {"db"} | _TLS_OPTIONS,
    "unix": {"db"},
    "redis+sentinel": {"db", "sentinel_user", "sentinel_password"},
    "rediss+sentinel": {"db", "sentinel_user", "sentinel_password"} | _TLS_OPTIONS,
    "redis+cluster": set(),
    "rediss+cluster": _TLS_OPTIONS,
}


def parse_store_url(text: str) -> StoreUrl:
    """Read a store URL; `InvalidInput` names the part that does not fit and never repeats the password."""
    scheme, colon, rest = text.strip().partition(":")
    if scheme == "embedded" and colon:
        return StoreUrl("embedded", folder=Path(rest).expanduser() if rest else None)
    if scheme not in _OPTIONS or not rest.startswith("//"):
        known = ", ".join(f"{name}://" for name in _OPTIONS)
        raise InvalidInput(f"store URL must begin with one of {known} or be embedded:")
    parts = _split(rest)
    options = _options(parts.query, _OPTIONS[scheme])
    user, _, hosts = parts.netloc.rpartition("@")
    url = StoreUrl("standalone", credentials=_credentials(user), db=_number(options.get("db", "0"), "db"))
    if scheme == "unix":
        if not parts.path or hosts:
            raise InvalidInput("a unix store URL needs an absolute path: unix:///run/valkey.sock")
        return replace(url, seeds=(Address(unquote(parts.path), 0),))
    if scheme.startswith("rediss"):
        url = replace(url, tls=_tls(options))
    path = unquote(parts.path.strip("/"))
    if scheme.endswith("+sentinel"):
        if not path or "/" in path:
            raise InvalidInput(
                "a sentinel store URL needs the name of the master: redis+sentinel://h1,h2/mymaster"
            )
        sentinel = Credentials(options.get("sentinel_user", ""), options.get("sentinel_password", ""))
        seeds = _addresses(hosts, 26379)
        return replace(url, shape="sentinel", seeds=seeds, master=path, sentinel_credentials=sentinel)
    if scheme.endswith("+cluster"):
        if path:
            raise InvalidInput("a cluster store URL has no path: a cluster has only database 0")
        return replace(url, shape="cluster", seeds=_addresses(hosts, 6379))
    seeds = _addresses(hosts, 6379)
    if len(seeds) > 1:
        raise InvalidInput("several hosts need redis+sentinel:// or redis+cluster://")
    return replace(url, seeds=seeds, db=_number(path, "db") if path else url.db)


def _split(rest: str) -> SplitResult:
    """The parts of the URL, if no part of a password can have slipped into another one."""
    try:
        parts = urlsplit(rest)
    except ValueError:  # whose text repeats the URL
        raise InvalidInput("store URL is malformed: check its brackets and letters") from None
    if parts.fragment or "@" in parts.path + parts.query:
        raise InvalidInput(
            "store URL has # or @ after its host",
            hint="write / ? # @ of a password as %2F %3F %23 %40",
        )
    return parts


def _options(query: str, allowed: set[str]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(options.keys() - allowed):
        raise InvalidInput(
            f"store URL has unknown option{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}",
            hint=f"known here: {', '.join(sorted(allowed)) or 'none'}",
        )
    return options


def _credentials(text: str) -> Credentials:
    user, colon, password = text.partition(":")
    if text and not colon:
        raise InvalidInput("store URL: write the password after a colon, redis://:password@host")
    return Credentials(unquote(user), unquote(password))


def _tls(options: dict[str, str]) -> Tls:
    verify = options.get("tls_verify", "yes")
    if verify not in ("yes", "no"):
        raise InvalidInput("tls_verify must be yes or no")
    ca, cert, key = (options.get(name, "") for name in ("tls_ca", "tls_cert", "tls_key"))
    return Tls(ca, cert, key, verify == "yes")


def _addresses(hosts: str, default_port: int) -> tuple[Address, ...]:
    return tuple(parse_address(host, default_port) for host in hosts.split(","))


_HOST = re.compile(
    r"\[(?P<v6>[0-9A-Fa-f:.%]+)\](?::(?P<p6>\d{1,5}))?|(?P<host>[^\s:\[\]/]+)(?::(?P<port>\d{1,5}))?"
)


def parse_address(text: str, default_port: int) -> Address:
    """Read one address. Its faults do not repeat it: a URL without a host has its password in this place."""
    found = _HOST.fullmatch(text)
    if not found:
        raise InvalidInput("an address of the store is not host, host:port or [ipv6]:port")
    port = int(found["p6"] or found["port"] or default_port)
    if not 0 < port < 65536:
        raise InvalidInput("a port of the store is out of range: 1 to 65535")
    return Address(found["v6"] or found["host"], port)


def _number(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 4:
        raise InvalidInput(f"{what} must be a number, not {text!r}")
    return int(text)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
