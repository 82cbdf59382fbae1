"""Every setting: its meaning, its unit, its default. The only reader of the environment.

A value comes from the first of: a flag, `ROOST_<NAME>` (or `ROOST_<NAME>_FILE`, a file that holds it),
the TOML file that `ROOST_CONFIG` names, the default. Nested settings have two underscores:
`ROOST_GATEWAY__PORT`. All faults are reported at once.
"""

from __future__ import annotations

import difflib
import os
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, Self, cast

from roost.alerts.settings import AlertSettings
from roost.audit.settings import AuditSettings
from roost.binding.settings import BindingSettings
from roost.core.errors import InvalidInput, InvalidSettings
from roost.core.ids import check_name
from roost.core.networks import is_loopback
from roost.core.setting import check_fields, checked, secret_faults, setting
from roost.core.signing import parse_keys
from roost.db.settings import DatabaseSettings
from roost.db.url import parse_database_url, sqlite_url
from roost.discovery.settings import DiscoverySettings
from roost.forward.settings import ForwardSettings
from roost.gateway.settings import GatewaySettings
from roost.lanes.settings import LaneSettings
from roost.servers.dns.settings import DnsSettings
from roost.servers.entity.settings import EntitySettings
from roost.servers.orders.settings import OrdersSettings
from roost.servers.settings import GameServerSettings, GateSettings
from roost.store.settings import EmbeddedSettings, LinkSettings
from roost.store.url import StoreUrl, parse_store_url
from roost.tracing.settings import TracingSettings
from roost.waitingroom.settings import QueueSettings
from roost.web.settings import ManagerSettings
from roost.wire.settings import WireSettings

PROFILES = ("dev", "lan", "cloud")
TTL_SECONDS = {"dev": 30.0, "lan": 15.0, "cloud": 30.0}
"""Lease of an instance that asks for none, by profile; three beats to a lease."""
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("auto", "human", "json")
EXAMPLE_COLUMNS = 100
ENVIRONMENT: Mapping[str, str] = os.environ  # for what all programs read there


@dataclass(frozen=True, slots=True)
class Settings:
    profile: str = setting(
        "dev",
        "dev: one machine, loopback only, /metrics and /docs open. lan: your network. cloud: a shared one.",
        choices=PROFILES,
    )
    store: str = setting(
        "embedded:",
        "Where the store is: embedded:[/folder], redis[s]://, unix://, redis[s]+sentinel://, redis[s]+cluster://.",
        secret=True,
    )
    data: Path = setting(Path(), "Folder for the token, the embedded store and up.json.")  # noqa: RUF009
    config: str = setting("", "TOML file with settings.")
    url: str = setting(
        "", "Gateways that the CLI and game servers talk to, a comma list. Empty: `roost up`, else port 8400."
    )
    api_token: str = setting(
        "", "Token with every scope. Empty: `roost up` makes one in the data folder.", secret=True
    )
    read_token: str = setting("", "Token with scope read in every process: Prometheus's.", secret=True)
    database: str = setting(
        "",
        "Database for durable user state: sqlite:///file, postgresql://, mariadb:// or mysql://. Empty: "
        "SQLite in users.db of the data folder.",
        secret=True,
    )
    namespace: str = setting("", "Stands before every key, so that several Roosts can share a store.")
    queue_keys: str = setting("", "Keys for receipts, entries: kid:base64,…; the first signs.", secret=True)
    ticket_keys: str = setting("", "Keys for tickets: kid:base64,kid:base64; the first signs.", secret=True)
    wire_secret: str = setting(
        "",
        "Secret by which gates and servers know each other, the same for all of them. Empty in profile dev: "
        "one is made in the data folder.",
        secret=True,
    )
    log_level: str = setting("info", "Least severe message that is logged.", choices=LOG_LEVELS)
    log_format: str = setting("auto", "auto: human in a terminal, JSON otherwise.", choices=LOG_FORMATS)
    gateway: GatewaySettings = field(default_factory=GatewaySettings)
    link: LinkSettings = field(default_factory=LinkSettings)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)
    embedded: EmbeddedSettings = field(default_factory=EmbeddedSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    audit: AuditSettings = field(default_factory=AuditSettings)
    queue: QueueSettings = field(default_factory=QueueSettings)
    binding: BindingSettings = field(default_factory=BindingSettings)
    lanes: LaneSettings = field(default_factory=LaneSettings)
    gameserver: GameServerSettings = field(default_factory=GameServerSettings)
    entity: EntitySettings = field(default_factory=EntitySettings)
    gate: GateSettings = field(default_factory=GateSettings)
    orders: OrdersSettings = field(default_factory=OrdersSettings)
    dns: DnsSettings = field(default_factory=DnsSettings)
    forward: ForwardSettings = field(default_factory=ForwardSettings)
    manager: ManagerSettings = field(default_factory=ManagerSettings)
    db: DatabaseSettings = field(default_factory=DatabaseSettings)
    wire: WireSettings = field(default_factory=WireSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)

    @property
    def store_url(self) -> StoreUrl:
        return parse_store_url(self.store)

    @property
    def store_folder(self) -> Path:
        """Where `embedded:` without a folder keeps its data."""
        return self.data / "store"

    @property
    def database_url(self) -> str:
        """Where durable user state is, by default or as said."""
        return self.database or sqlite_url(self.data / "users.db")

    @property
    def token_file(self) -> Path:
        return self.data / "token"

    @property
    def up_file(self) -> Path:
        """Written by `roost up` for the CLI: url and pids."""
        return self.data / "up.json"

    @property
    def ttl_seconds(self) -> float:
        return TTL_SECONDS[self.profile]

    def is_dev(self) -> bool:
        return self.profile == "dev"


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and for each of them where its value came from."""

    settings: Settings
    origins: Mapping[str, str]

    @classmethod
    def load(cls, flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None) -> Self:
        """Collect and check; `InvalidSettings` lists every fault. Flags are named like `gateway.port`."""
        environ = os.environ if environ is None else environ
        faults: list[str] = []
        found: dict[str, tuple[Any, str]] = {"data": (default_data_folder(environ), "default")}
        flags = {name: value for name, value in (flags or {}).items() if value is not None}
        config = str(flags.get("config") or environ.get("ROOST_CONFIG", ""))
        found |= _from_file(config, faults) if config else {}
        found |= _from_environment(environ, faults)
        found |= {
            name: (value, f"flag --{name.rpartition('.')[2].replace('_', '-')}")
            for name, value in flags.items()
        }
        values = {name: _converted(name, value, origin, faults) for name, (value, origin) in found.items()}
        origins = {name: found[name][1] if name in found else "default" for name in NAMES}
        settings = _assembled({name: value for name, value in values.items() if value is not None})
        faults += validate(settings, profile_is_explicit=origins["profile"] != "default")
        if faults:
            raise InvalidSettings(faults)
        return cls(settings, origins)

    def environment(self, changed: Mapping[str, Any]) -> dict[str, str]:
        """Of a process with the same settings but for those `changed`. What flags said is in it, unseen; a
        file that holds a setting is named as it was, so that it can be read again."""
        flags = [name for name, origin in self.origins.items() if origin.startswith("flag ")]
        return _environment_with({name: value_of(self.settings, name) for name in flags} | dict(changed))

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(name, value to show, origin), secrets masked."""
        for name in NAMES:
            yield name, shown(name, value_of(self.settings, name)), self.origins[name]


def validate(settings: Settings, *, profile_is_explicit: bool = True) -> list[str]:
    """Everything that does not fit, one line each."""
    faults: list[str] = []
    url = checked(faults, "store", parse_store_url, settings.store)
    if settings.namespace:
        checked(faults, "namespace", check_name, settings.namespace, "it")
    if settings.database:
        checked(faults, "database", parse_database_url, settings.database)
    for name in ("queue_keys", "ticket_keys"):
        if value_of(settings, name):
            checked(faults, name, parse_keys, value_of(settings, name))
    for name in ("api_token", "read_token", "wire_secret"):
        faults += secret_faults(name, value_of(settings, name))
    faults += check_fields(settings)
    for section in _sections():
        faults += [f"{section}.{fault}" for fault in getattr(settings, section).faults()]
    if settings.is_dev() and not profile_is_explicit:
        faults += _dev_faults(settings, url)
    return faults


def _dev_faults(settings: Settings, url: StoreUrl | None) -> list[str]:
    """The default profile is for one machine; leaving it is a decision, so it must be said."""
    say = "say which profile this is: --profile lan or --profile cloud (or --profile dev, if you mean it)"
    faults: list[str] = []
    for name in NAMES:
        if name.endswith(".host") and not is_loopback(value_of(settings, name)):
            faults.append(f"{name} {value_of(settings, name)} is reachable by others; {say}")
    if url is not None and not url.on_loopback():
        faults.append(f"store {url} is another machine; {say}")
    return faults


def _sections() -> dict[str, type[Any]]:
    """The fields of `Settings` that are sections of their own, with their classes."""
    return {
        declared.name: cast(type[Any], declared.default_factory)
        for declared in fields(Settings)
        if declared.default_factory is not MISSING
    }


def _all_names() -> tuple[str, ...]:
    sections = _sections()
    top = [f.name for f in fields(Settings) if f.name not in sections]
    return (*top, *(f"{name}.{f.name}" for name, section in sections.items() for f in fields(section)))


NAMES = _all_names()
"""Every setting; nested ones as `section.name`."""


def _declared(name: str) -> Any:
    section, _, plain = name.rpartition(".")
    owner = cast(Any, _sections()[section] if section else Settings)
    return next(f for f in fields(owner) if f.name == plain)


def _metadata(name: str) -> Mapping[str, Any]:
    return cast(Mapping[str, Any], _declared(name).metadata)


def value_of(settings: Settings, name: str) -> Any:
    section, _, plain = name.rpartition(".")
    return getattr(getattr(settings, section) if section else settings, plain)


def shown(name: str, value: Any) -> str:
    """A value as it may be printed."""
    if name == "store":
        try:
            return str(parse_store_url(value))
        except InvalidInput:
            return "***"
    return "***" if _metadata(name)["secret"] and value else str(value)


def variable(name: str) -> str:
    return "ROOST_" + name.replace(".", "__").upper()


def _from_file(path: str, faults: list[str]) -> dict[str, tuple[Any, str]]:
    try:
        with open(path, "rb") as file:
            document = tomllib.load(file)
    except OSError as error:
        faults.append(f"config: cannot read {path}: {error.strerror}")
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        faults.append(f"config: {path} is not valid TOML: {error}")
        return {}
    flat: dict[str, Any] = {}
    for name, value in document.items():
        flat |= (
            {f"{name}.{inner}": v for inner, v in value.items()} if isinstance(value, dict) else {name: value}
        )
    for name in sorted(flat.keys() - set(NAMES)):
        faults.append(f"{path}: unknown setting {name}{_nearest(name)}")
    return {name: (value, f"file {path}") for name, value in flat.items() if name in NAMES}


def _from_environment(environ: Mapping[str, str], faults: list[str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    known = {variable(name): name for name in NAMES}
    for key, text in environ.items():
        if key in known:
            found[known[key]] = (text, f"env {key}")
        elif key.removesuffix("_FILE") in known and known[key.removesuffix("_FILE")] not in found:
            try:
                value = Path(text).read_text(encoding="utf-8").strip()
                found.setdefault(known[key.removesuffix("_FILE")], (value, f"env {key}"))
            except (OSError, UnicodeDecodeError) as error:
                faults.append(f"{key}: cannot read {text}: {getattr(error, 'strerror', 'it is no text')}")
        elif key.startswith("ROOST_") and "__" in key:
            # Plain ROOST_… names may be another's (Kubernetes makes ROOST_PORT for a service `roost`).
            faults.append(f"unknown setting {key}{_nearest(key, list(known))}")
    return found


def _nearest(name: str, known: list[str] | None = None) -> str:
    close = difflib.get_close_matches(name, known or NAMES, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _converted(name: str, value: Any, origin: str, faults: list[str]) -> Any:
    """The value in the type of its field; None (and a fault) where it does not fit."""
    default = value_of(_DEFAULTS, name)
    if isinstance(default, Path):
        return Path(value).expanduser().absolute()
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        faults.append(f"{name} ({origin}) must be a {'number' if isinstance(default, int) else 'text'}")
        return None
    if isinstance(default, int):
        try:
            return int(value)
        except ValueError:
            faults.append(f"{name} ({origin}) must be a number, not {shown(name, value)!r}")
            return None
    return str(value)


def _assembled(values: Mapping[str, Any]) -> Settings:
    nested = {
        section: owner(
            **{
                f.name: values[f"{section}.{f.name}"]
                for f in fields(owner)
                if f"{section}.{f.name}" in values
            }
        )
        for section, owner in _sections().items()
    }
    return Settings(**{name: value for name, value in values.items() if "." not in name}, **nested)


def default_data_folder(environ: Mapping[str, str] | None = None) -> Path:
    environ = os.environ if environ is None else environ
    named = environ.get("ROOST_DATA") or str(
        Path(environ.get("XDG_STATE_HOME") or "~/.local/state") / "roost"
    )
    return Path(named).expanduser().absolute()


def environment_for(settings: Settings) -> dict[str, str]:
    """The environment of a process on the same store and database; what flags said is in it, unseen."""
    return _environment_with(
        {name: value_of(settings, name) for name in ("store", "database") if value_of(settings, name)}
    )


def _environment_with(values: Mapping[str, Any]) -> dict[str, str]:
    """Ours, with these settings in it; a file that would hold one of them is not named any more."""
    said = {variable(name): str(value) for name, value in values.items()}
    return {key: value for key, value in os.environ.items() if key.removesuffix("_FILE") not in said} | said


def client_defaults(environ: Mapping[str, str] | None = None) -> tuple[str, str]:
    """(url, token) for a client that was given none."""
    environ = os.environ if environ is None else environ
    url = environ.get("ROOST_URL") or environ.get("REDIS_URL") or "http://127.0.0.1:8400"
    return url, environ.get("ROOST_API_TOKEN", "")


_DEFAULTS = Settings()


def example() -> str:
    """A commented TOML file with every setting at its default."""
    lines = [
        "# Settings of Roost. Name this file with ROOST_CONFIG or --config; every line shows the default.",
        "",
    ]
    section = ""
    for name in NAMES:
        head, _, plain = name.rpartition(".")
        if head != section:
            section = head
            lines += [f"[{section}]", ""]
        if name in ("config", "data"):
            continue
        default = value_of(_DEFAULTS, name)
        lines += _commented(_metadata(name)["doc"])
        if _metadata(name)["choices"]:
            lines += _commented(f"One of: {', '.join(_metadata(name)['choices'])}.")
        lines += [f"# {plain} = {default!r}".replace("'", '"'), ""]
    return "\n".join(lines)


def _commented(doc: str) -> list[str]:
    return textwrap.wrap(
        doc,
        EXAMPLE_COLUMNS,
        initial_indent="# ",
        subsequent_indent="# ",
        break_on_hyphens=False,
        break_long_words=False,
    )
