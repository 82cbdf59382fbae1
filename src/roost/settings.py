"""Every setting: its meaning, its unit, its default. The only reader of the environment.

A value comes from the first of: a flag, `ROOST_<NAME>` (or `ROOST_<NAME>_FILE`, a file that holds it),
the TOML file that `ROOST_CONFIG` names, the default. Nested settings have two underscores:
`ROOST_GATEWAY__PORT`. All faults are reported at once.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self, cast

from roost.alerts.webhooks import Webhook, parse_webhooks
from roost.core.errors import InvalidInput, InvalidSettings, RoostError
from roost.core.ids import check_id, check_name
from roost.core.signing import parse_keys
from roost.store.link import LinkOptions
from roost.store.url import StoreUrl, parse_store_url
from roost.waitingroom.rules import Policy, parse_classes, parse_worlds

PROFILES = ("dev", "lan", "cloud")
TTL_SECONDS = {"dev": 30.0, "lan": 15.0, "cloud": 30.0}
"""Lease of an instance that asks for none, by profile; three beats to a lease."""
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("auto", "human", "json")
MIN_TOKEN_CHARS = 16

_NO_FOLDER = Path()

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _setting(
    default: Any, doc: str, *, secret: bool = False, choices: tuple[str, ...] = (), least: int = 1
) -> Any:
    return field(default=default, metadata={"doc": doc, "secret": secret, "choices": choices, "least": least})


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    host: str = _setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = _setting(8400, "Port to listen on.")
    trusted_proxies: str = _setting(
        "", "Networks of load balancers whose X-Forwarded-For is believed: 10.0.0.0/8,192.168.1.7."
    )
    body_limit_bytes: int = _setting(
        262_144,
        "Largest request body; a larger one is answered with 413 after a bounded part of it was read.",
    )


@dataclass(frozen=True, slots=True)
class LinkSettings:
    command_timeout_ms: int = _setting(
        5000,
        "How long a command may take, waiting included. A connection silent for twice as long is dropped.",
    )
    connect_timeout_ms: int = _setting(3000, "How long connecting and authenticating may take.")
    max_inflight: int = _setting(4096, "Commands without a reply, per node; callers beyond it wait.")
    max_waiting: int = _setting(65_536, "Callers that may wait, per node; callers beyond it are refused.")

    def options(self) -> LinkOptions:
        return LinkOptions(
            self.command_timeout_ms / 1000,
            self.connect_timeout_ms / 1000,
            self.max_inflight,
            self.max_waiting,
        )


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    key_prefix: str = _setting("service:", "Stands before the keys of discovery, after the namespace.")


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    binary: str = _setting("", "Server program for embedded:. Empty: the wheel's, else the one on PATH.")


@dataclass(frozen=True, slots=True)
class AlertSettings:
    webhooks: str = _setting(
        "",
        "Where alerts go: slack=URL,pagerduty,json=URL. pagerduty takes a URL too, as in pagerduty=URL (EU).",
        secret=True,
    )
    secret: str = _setting("", "Signs every alert, so that a receiver can verify it.", secret=True)
    pagerduty_key: str = _setting(
        "", "Integration key of PagerDuty's Events API v2; pagerduty needs it.", secret=True
    )
    per_minute: int = _setting(
        30, "Alerts to one webhook in a minute; what is over it is told as one summary."
    )
    burst: int = _setting(10, "Alerts to one webhook at once, after a quiet time.")

    def targets(self) -> tuple[Webhook, ...]:
        return parse_webhooks(self.webhooks, self.pagerduty_key)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    worlds: str = _setting("main", "Worlds with a waiting room: main,eu-1.")
    tick_ms: int = _setting(1000, "Time between two ticks, each of which lets people in.", least=50)
    batch: int = _setting(100, "Most tickets in one tick.")
    ticket_seconds: int = _setting(60, "How long a ticket can be used; after that its holder is next again.")
    grace_seconds: int = _setting(
        120, "How long a place inside is held for one whose connection dropped; 0: not at all.", least=0
    )
    late_seconds: int = _setting(8, "How much later than told a call may come before others go first.")
    gone_seconds: int = _setting(300, "How late a call may come before the place is lost.")
    forfeit_no_shows: int = _setting(
        0, "Tickets that somebody may let expire before the place is lost; 0: any number.", least=0
    )
    max_waiting: int = _setting(
        2_000_000, "Longest line of a world; whoever comes then is asked to come later."
    )
    classes: str = _setting(
        "vip=1,base=3",
        "Classes and their shares of the tickets while people of each wait; `staff=first` goes before all.",
    )
    rebuild_seconds: int = _setting(
        120, "After a wiped store: how long receipts bring people back to their old order."
    )
    user_per_second: int = _setting(5, "Calls of one person in a second.")
    user_burst: int = _setting(10, "Calls of one person at once.")
    ip_per_second: int = _setting(50, "Calls from one address (IPv6: one /64) in a second, per gateway.")

    def policy(self) -> Policy:
        return Policy(
            tick_ms=self.tick_ms,
            batch=self.batch,
            ticket_ms=self.ticket_seconds * 1000,
            late_ms=self.late_seconds * 1000,
            gone_ms=self.gone_seconds * 1000,
            grace_ms=self.grace_seconds * 1000,
            forfeit=self.forfeit_no_shows,
            most_waiting=self.max_waiting,
            rebuild_ms=self.rebuild_seconds * 1000,
            period_ms=1000 // self.user_per_second,
            burst=self.user_burst,
            classes=parse_classes(self.classes),
        )


@dataclass(frozen=True, slots=True)
class ManagerSettings:
    host: str = _setting("127.0.0.1", "Address for its health and metrics. Profile dev allows loopback only.")
    port: int = _setting(9400, "Port for its health and metrics.")


@dataclass(frozen=True, slots=True)
class GameServerSettings:
    host: str = _setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = _setting(8420, "Port for players; its metrics are on the port 1000 above.")
    world: str = _setting("main", "World whose tickets it takes.")
    capacity: int = _setting(100, "Players at once.")
    public_url: str = _setting("", "Where players connect, ws:// or wss://. Empty: host and port.")
    idle_seconds: int = _setting(120, "Silence after which a player is disconnected.")
    idle_warning_seconds: int = _setting(30, "How long before that they are warned.")


@dataclass(frozen=True, slots=True)
class Settings:
    profile: str = _setting(
        "dev",
        "dev: one machine, loopback only, /metrics and /docs open. lan: your network. cloud: a shared one.",
        choices=PROFILES,
    )
    store: str = _setting(
        "embedded:",
        "Where the store is: embedded:[/folder], redis[s]://, unix://, redis[s]+sentinel://, redis[s]+cluster://.",
        secret=True,
    )
    data: Path = _setting(_NO_FOLDER, "Folder for the token, the embedded store and up.json.")  # noqa: RUF009
    config: str = _setting("", "TOML file with settings.")
    url: str = _setting("", "Gateway that the CLI talks to. Empty: the running `roost up`, else port 8400.")
    api_token: str = _setting(
        "", "Token with every scope. Empty: `roost up` makes one in the data folder.", secret=True
    )
    database: str = _setting(
        "", "Database for durable user state. Empty: SQLite in the data folder.", secret=True
    )
    namespace: str = _setting("", "Stands before every key, so that several Roosts can share a store.")
    queue_keys: str = _setting(
        "", "Keys for receipts and entries: kid:base64,kid:base64; the first signs.", secret=True
    )
    ticket_keys: str = _setting("", "Keys for tickets: kid:base64,kid:base64; the first signs.", secret=True)
    wire_secret: str = _setting("", "Shared secret by which gates and servers know each other.", secret=True)
    log_level: str = _setting("info", "Least severe message that is logged.", choices=LOG_LEVELS)
    log_format: str = _setting("auto", "auto: human in a terminal, JSON otherwise.", choices=LOG_FORMATS)
    gateway: GatewaySettings = GatewaySettings()
    link: LinkSettings = LinkSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    embedded: EmbeddedSettings = EmbeddedSettings()
    alerts: AlertSettings = AlertSettings()
    queue: QueueSettings = QueueSettings()
    gameserver: GameServerSettings = GameServerSettings()
    manager: ManagerSettings = ManagerSettings()

    @property
    def store_url(self) -> StoreUrl:
        return parse_store_url(self.store)

    @property
    def store_folder(self) -> Path:
        """Where `embedded:` without a folder keeps its data."""
        return self.data / "store"

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

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(name, value to show, origin), secrets masked."""
        for name in NAMES:
            yield name, shown(name, value_of(self.settings, name)), self.origins[name]


def validate(settings: Settings, *, profile_is_explicit: bool = True) -> list[str]:
    """Everything that does not fit, one line each."""
    faults: list[str] = []
    url = _checked(faults, "store", parse_store_url, settings.store)
    if settings.namespace:
        _checked(faults, "namespace", check_name, settings.namespace, "it")
    _checked(faults, "discovery.key_prefix", check_id, settings.discovery.key_prefix, "it")
    _checked(faults, "gateway.trusted_proxies", parse_networks, settings.gateway.trusted_proxies)
    for name in ("queue_keys", "ticket_keys"):
        if value_of(settings, name):
            _checked(faults, name, parse_keys, value_of(settings, name))
    _checked(faults, "alerts.webhooks", settings.alerts.targets)
    for name in ("api_token", "wire_secret", "alerts.secret"):
        value = value_of(settings, name)
        if value and (len(value) < MIN_TOKEN_CHARS or not value.isascii() or any(c.isspace() for c in value)):
            faults.append(f"{name} needs at least {MIN_TOKEN_CHARS} ASCII characters and no spaces")
    for name in NAMES:
        value, choices = value_of(settings, name), _metadata(name)["choices"]
        if choices and value not in choices:
            faults.append(f"{name} is {value!r}, must be one of {', '.join(choices)}")
        if isinstance(value, int) and value < _metadata(name)["least"]:
            faults.append(f"{name} is {value}, must be at least {_metadata(name)['least']}")
    _checked(faults, "queue.worlds", parse_worlds, settings.queue.worlds)
    _checked(faults, "queue.classes", parse_classes, settings.queue.classes)
    for name, most in (("gateway.port", 65535), ("gameserver.port", 64535), ("manager.port", 65535)):
        if value_of(settings, name) > most:
            faults.append(f"{name} is {value_of(settings, name)}, must be at most {most}")
    if settings.is_dev() and not profile_is_explicit:
        faults += _dev_faults(settings, url)
    return faults


def _dev_faults(settings: Settings, url: StoreUrl | None) -> list[str]:
    """The default profile is for one machine; leaving it is a decision, so it must be said."""
    say = "say which profile this is: --profile lan or --profile cloud (or --profile dev, if you mean it)"
    faults: list[str] = []
    for name in ("gateway.host", "gameserver.host", "manager.host"):
        if not is_loopback(value_of(settings, name)):
            faults.append(f"{name} {value_of(settings, name)} is reachable by others; {say}")
    if url is not None and not url.on_loopback():
        faults.append(f"store {url} is another machine; {say}")
    return faults


def parse_networks(text: str) -> tuple[Network, ...]:
    """The networks in a comma-separated list."""
    try:
        return tuple(
            ipaddress.ip_network(part.strip(), strict=False) for part in text.split(",") if part.strip()
        )
    except ValueError as error:
        raise InvalidInput(str(error)) from None


def is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _checked(faults: list[str], name: str, check: Any, *args: Any) -> Any:
    try:
        return check(*args)
    except RoostError as error:
        faults.append(f"{name}: {error.message}" + (f" ({error.hint})" if error.hint else ""))


def _sections() -> dict[str, type[Any]]:
    return {
        "gateway": GatewaySettings,
        "link": LinkSettings,
        "discovery": DiscoverySettings,
        "embedded": EmbeddedSettings,
        "alerts": AlertSettings,
        "queue": QueueSettings,
        "gameserver": GameServerSettings,
        "manager": ManagerSettings,
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
    except tomllib.TOMLDecodeError as error:
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
            except OSError as error:
                faults.append(f"{key}: cannot read {text}: {error.strerror}")
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
        lines.append(f"# {_metadata(name)['doc']}")
        if _metadata(name)["choices"]:
            lines.append(f"# One of: {', '.join(_metadata(name)['choices'])}.")
        lines += [f"# {plain} = {default!r}".replace("'", '"'), ""]
    return "\n".join(lines)
