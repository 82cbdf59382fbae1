"""The systemd units of the roles: those of `deploy/systemd` (`python -m roost.cli.units deploy/systemd`), and
`roost install-units`, which knows where this Roost is installed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ANYWHERE = "/usr/bin/env roost"
"""The program of units that are made for no machine in particular."""
ETC = Path("/etc/roost")
_HOMES = (Path("/home"), Path("/root"), Path("/run/user"))


@dataclass(frozen=True, slots=True)
class Unit:
    """One role under systemd."""

    what: str
    head: str
    command: str
    """Arguments of `roost`; `%i` is the server id of a template unit."""
    settings: tuple[str, ...]
    """What its environment file holds, for instance."""
    stop_s: int
    """Longer than a clean stop takes; afterwards it is killed."""
    restart: str = "on-failure"
    stop_command: str = ""
    stop_note: str = ""

    @property
    def is_template(self) -> bool:
        return "%i" in self.command

    @property
    def reloads(self) -> bool:
        """Whether it has a password of the store, which SIGHUP has it read again."""
        return any(setting.startswith("ROOST_STORE_FILE=") for setting in self.settings)


_WIRE = "ROOST_WIRE_SECRET_FILE=/etc/roost/wire-secret"
_TOKEN = "ROOST_API_TOKEN_FILE=/etc/roost/token"  # noqa: S105
_DATABASE = "ROOST_DATABASE_FILE=/etc/roost/database-url"
_QUEUE = "ROOST_QUEUE_KEYS_FILE=/etc/roost/queue-keys"


def _store(role: str) -> tuple[str, str]:
    return "ROOST_PROFILE=lan", f"ROOST_STORE_FILE=/etc/roost/store-url.{role}"


UNITS: Mapping[str, Unit] = {
    "gateway": Unit(
        "Roost gateway",
        "One gateway on a shared store; run any number behind a load balancer.",
        "gateway",
        (
            *(*_store("gateway"), _TOKEN, _WIRE, _QUEUE),
            "ROOST_TICKET_KEYS_FILE=/etc/roost/ticket-keys",
            *("ROOST_GATEWAY__HOST=0.0.0.0", "ROOST_QUEUE__WORLDS=main"),
        ),
        20,
        restart="always",
    ),
    "manager": Unit(
        "Roost manager",
        "One manager on a shared store; run two, on two machines: one of them leads.",
        "manager",
        (*_store("manager"), _TOKEN, _WIRE, "ROOST_QUEUE__WORLDS=main"),
        20,
        restart="always",
    ),
    "gate": Unit(
        "Roost gate",
        "One gate on a shared store; run as many as players need.",
        "gate",
        (*_store("gate"), _TOKEN, _WIRE, _QUEUE, "ROOST_GATE__HOST=0.0.0.0"),
        20,
    ),
    "entity": Unit(
        "Roost entity server %i",
        "An entity server: `systemctl start roost-entity@501`.",
        "entity --id %i",
        (
            *(*_store("entity"), _TOKEN, _WIRE, _DATABASE),
            *("ROOST_ENTITY__HOST=10.0.0.5", "ROOST_URL=http://10.0.0.4:8400"),
        ),
        300,
        stop_command="drain start %i --follow",
        stop_note="Its users are moved to other servers first, while they play; where that cannot be, they\n"
        "# are written and released. users / rate + 30 s: 10 000 / 100 + 30 = 130 s, and as much again\n"
        "# where the database slows it down. The token needs the scope admin.",
    ),
    "gameserver": Unit(
        "Roost game server %i",
        "A reference game server: `systemctl start roost-gameserver@501`.",
        "gameserver --server-id %i",
        (
            *("ROOST_PROFILE=lan", "ROOST_URL=http://10.0.0.4:8400", _TOKEN),
            *("ROOST_GAMESERVER__HOST=0.0.0.0", "ROOST_GAMESERVER__PUBLIC_URL=wss://game.example/gameserver"),
        ),
        20,
    ),
    "orders": Unit(
        "Roost order server %i",
        "An order server, `systemctl start roost-orders@901`; run two or more, so that one takes over.",
        "orders serve --id %i",
        (*_store("orders"), _TOKEN, _WIRE, _DATABASE, "ROOST_ORDERS__HOST=10.0.0.5"),
        30,
    ),
    "dns": Unit(
        "Roost DNS",
        "Discovery as DNS, on port 8453; the resolver of the host forwards the zone to it.",
        "dns",
        (*_store("dns"), _TOKEN, "ROOST_DNS__HOST=10.0.0.5"),
        20,
        restart="always",
    ),
    "forward": Unit(
        "Roost forwarder",
        "Events for another system; run two of one name: one of them forwards.",
        "forward",
        (*_store("forward"), _TOKEN, "ROOST_FORWARD__TO=nats://10.0.0.6:4222/roost.events"),
        20,
        restart="always",
    ),
}

_HARDENED = """\
DynamicUser=yes
SupplementaryGroups=roost
NoNewPrivileges=yes
CapabilityBoundingSet=
ProtectSystem=strict
ProtectHome={home}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
UMask=0077"""


def file_name(role: str) -> str:
    return f"roost-{role}@.service" if UNITS[role].is_template else f"roost-{role}.service"


def this_program() -> str:
    """The `roost` beside the Python that runs; without one, that Python with the module."""
    script = Path(sys.executable).with_name("roost")
    return shlex.quote(str(script)) if script.exists() else f"{shlex.quote(sys.executable)} -m roost"


def render(role: str, program: str = ANYWHERE, etc: Path = ETC) -> str:
    """The text of a role's unit."""
    unit, folder = UNITS[role], f"roost/{role}-%i" if UNITS[role].is_template else f"roost/{role}"
    lines = [
        f"# {unit.head} {etc}/{role}.env holds, for instance:",
        *(f"#   {setting.replace(str(ETC), str(etc))}" for setting in unit.settings),
        *("[Unit]", f"Description={unit.what}", "Wants=network-online.target", "After=network-online.target"),
        *("", "[Service]", f"EnvironmentFile={etc}/{role}.env"),
        *([f"EnvironmentFile=-{etc}/{role}-%i.env"] if unit.is_template else []),
        f"ExecStart={program} {unit.command}",
        *_stopping(unit, program),
        *("LimitNOFILE=65536", f"StateDirectory={folder}", f"Environment=ROOST_DATA=/var/lib/{folder}"),
        _HARDENED.format(home=_home(program)),
        *("", "[Install]", "WantedBy=multi-user.target"),
    ]
    return "\n".join(lines) + "\n"


def _stopping(unit: Unit, program: str) -> Sequence[str]:
    return [
        *(["ExecReload=/bin/kill -HUP $MAINPID"] if unit.reloads else []),
        *([f"# {unit.stop_note}", f"ExecStop=-{program} {unit.stop_command}"] if unit.stop_command else []),
        f"TimeoutStopSec={unit.stop_s}",
        f"Restart={unit.restart}",
        "RestartSec=2",
    ]


def _home(program: str) -> str:
    """Hidden, unless the program is there."""
    path = Path(shlex.split(program)[0])
    return "read-only" if any(path.is_relative_to(home) for home in _HOMES) else "yes"


if __name__ == "__main__":
    for name in UNITS:
        (Path(sys.argv[1]) / file_name(name)).write_text(render(name), encoding="utf-8")
