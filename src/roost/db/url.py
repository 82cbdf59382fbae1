"""Database URLs: one line that says where the durable state is and how to get in.

    sqlite:///relative/users.db  sqlite:////var/lib/roost/users.db  [?synchronous=full|normal]
    postgresql://[user[:password]@][host][:5432]/database
    mariadb://[user[:password]@][host][:3306]/database      mysql:// likewise

`?host=/path` names a unix socket: its folder for PostgreSQL, the socket itself for MariaDB and MySQL.
TLS takes `?tls=yes`, `?tls_ca=FILE`, `?tls_cert=FILE&tls_key=FILE` and `?tls_verify=no`.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from roost.core.errors import InvalidInput

Kind = Literal["sqlite", "postgresql", "mariadb", "mysql"]
KINDS: dict[str, Kind] = {
    "sqlite": "sqlite",
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "mariadb": "mariadb",
    "mysql": "mysql",
}
PORTS: dict[Kind, int] = {"sqlite": 0, "postgresql": 5432, "mariadb": 3306, "mysql": 3306}
LEVELS = ("full", "normal")

_TLS = {"tls", "tls_ca", "tls_cert", "tls_key", "tls_verify"}


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
            raise InvalidInput(f"cannot load the TLS files of the database URL: {error}") from error
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    kind: Kind
    path: Path = Path()
    """Of SQLite; of the others the unix socket, where there is one."""
    host: str = ""
    port: int = 0
    user: str = ""
    password: str = field(default="", repr=False)
    database: str = ""
    tls: Tls | None = None
    synchronous: str = "full"

    def __str__(self) -> str:
        """The URL without its secrets, for logs and messages."""
        if self.kind == "sqlite":
            return f"sqlite:///{self.path}"
        user = f"{self.user}{':***' if self.password else ''}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        at = f"{host}:{self.port}" if host else ""
        socket = "" if self.host else f"?host={self.path}"
        return f"{self.kind}://{user}{at}/{self.database}{socket}"


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def parse_database_url(text: str) -> DatabaseUrl:
    """Read a database URL; `InvalidInput` names the part that does not fit and never repeats the password."""
    scheme, _, rest = text.strip().partition(":")
    kind = KINDS.get(scheme)
    if kind is None or not rest.startswith("//"):
        known = ", ".join(f"{name}://" for name in ("postgresql", "mariadb", "mysql"))
        raise InvalidInput(f"database URL must begin with sqlite:/// or one of {known}")
    parts = _split(rest)
    return _sqlite(parts) if kind == "sqlite" else _network(kind, parts)


def _sqlite(parts: SplitResult) -> DatabaseUrl:
    options = _options(parts.query, {"synchronous"})
    path = unquote(parts.path.removeprefix("/"))
    if parts.netloc or not path or path.endswith("/"):
        raise InvalidInput(
            "a sqlite database URL names a file: sqlite:///users.db or sqlite:////var/lib/users.db"
        )
    level = options.get("synchronous", "full")
    if level not in LEVELS:
        raise InvalidInput(f"synchronous of the database URL must be one of {', '.join(LEVELS)}")
    return DatabaseUrl("sqlite", path=Path(path).expanduser(), synchronous=level)


def _network(kind: Kind, parts: SplitResult) -> DatabaseUrl:
    options = _options(parts.query, {"host"} | _TLS)
    user, _, password = parts.netloc.rpartition("@")[0].partition(":")
    database = unquote(parts.path.strip("/"))
    if not database or "/" in database:
        raise InvalidInput(
            f"a {kind} database URL needs the name of a database: {kind}://user:password@host/roost"
        )
    try:
        host, port = parts.hostname or "", parts.port or PORTS[kind]
    except ValueError:
        raise InvalidInput("the port of the database URL is not a number from 1 to 65535") from None
    socket = options.get("host", "")
    if socket and (host or not socket.startswith("/")):
        raise InvalidInput(
            "host of the database URL is the path of a unix socket, and then there is no other host"
        )
    return DatabaseUrl(
        kind,
        path=Path(socket),
        host="" if socket else host or "127.0.0.1",
        port=port,
        user=unquote(user),
        password=unquote(password),
        database=database,
        tls=_tls(options),
    )


def _split(rest: str) -> SplitResult:
    """The parts of the URL, if no part of a password can have slipped into another one."""
    try:
        parts = urlsplit(rest)
    except ValueError:  # whose text repeats the URL
        raise InvalidInput("database URL is malformed: check its brackets and letters") from None
    if parts.fragment or "@" in parts.path + parts.query:
        raise InvalidInput(
            "database URL has # or @ after its host",
            hint="write / ? # @ of a password as %2F %3F %23 %40",
        )
    return parts


def _options(query: str, allowed: set[str]) -> dict[str, str]:
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(options.keys() - allowed):
        raise InvalidInput(
            f"database URL has unknown option{'s' if len(unknown) > 1 else ''} {', '.join(unknown)}",
            hint=f"known here: {', '.join(sorted(allowed))}",
        )
    return options


def _tls(options: dict[str, str]) -> Tls | None:
    for name in ("tls", "tls_verify"):
        if options.get(name, "yes") not in ("yes", "no"):
            raise InvalidInput(f"{name} of the database URL must be yes or no")
    if not options.keys() & _TLS or options.get("tls") == "no":
        return None
    ca, cert, key = (options.get(name, "") for name in ("tls_ca", "tls_cert", "tls_key"))
    return Tls(ca, cert, key, options.get("tls_verify", "yes") == "yes")
