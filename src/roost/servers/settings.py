"""The settings of the servers that Roost ships: `ROOST_GAMESERVER__…`, `ROOST_GATE__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.ids import check_name
from roost.core.networks import check_players_url, parse_networks
from roost.core.setting import check_fields, checked, setting


@dataclass(frozen=True, slots=True)
class GameServerSettings:
    host: str = setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = setting(8420, "Port for players; its metrics are on the port 1000 above.", most=64535)
    world: str = setting("main", "World whose tickets it takes.")
    capacity: int = setting(100, "Players at once. What it reports to the waiting room, and refuses beyond.")
    public_url: str = setting("", "Where players connect, ws:// or wss://. Empty: host and port.")
    idle_seconds: int = setting(120, "Silence after which a player is disconnected.")
    idle_warning_seconds: int = setting(30, "How long before that they are warned.")

    trusted_proxies: str = setting(
        "", "Networks of load balancers whose X-Forwarded-For is believed, as for the gateway."
    )
    agones_url: str = setting(
        "",
        "SDK sidecar of Agones, http://localhost:9358: told when this server is ready and when people are "
        "inside; public_url, if empty, is made of the address that Agones gave. Empty: not under Agones.",
    )
    connections_per_address: int = setting(
        256,
        "Connections that one address may hold; behind a trusted proxy, players that it may have connected. "
        "Not applied in profile dev.",
    )

    def faults(self) -> list[str]:
        faults = check_fields(self)
        checked(faults, "public_url", check_players_url, self.public_url)
        checked(faults, "trusted_proxies", parse_networks, self.trusted_proxies)
        return faults


@dataclass(frozen=True, slots=True)
class GateSettings:
    host: str = setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = setting(8410, "Port for WebSocket clients; metrics are on the port 1000 above.", most=64535)
    tcp_port: int = setting(8411, "Port for TCP clients, who speak frames. 0: none.", least=0, most=65535)
    type: str = setting("entity", "Service type of messages that name none.")
    types: str = setting(
        "",
        "Service types that clients may name, a comma list, unless their login token does. Empty: type.",
    )
    world: str = setting(
        "", "World whose tickets log a client in; the gate is a server of it. Empty: signed login tokens do."
    )
    capacity: int = setting(10_000, "Clients at once; with a world, what it reports to the waiting room.")
    public_url: str = setting("", "Where clients connect, ws:// or wss://. Empty: host and port.")
    message_bytes: int = setting(65_536, "Largest message of a client.", least=256, most=1_000_000)
    window: int = setting(64, "Messages of one user and type that are on their way to the entity at once.")
    queue_messages: int = setting(
        256, "Messages of one user and type without an answer; more are refused with when to come again."
    )
    queue_bytes: int = setting(262_144, "The same in bytes.", least=1024)
    total_messages: int = setting(100_000, "Messages without an answer at this gate, all users together.")
    total_bytes: int = setting(67_108_864, "The same in bytes.", least=1024)
    wait_ms: int = setting(
        5000, "How long a message waits for a user's home; then it is refused with the reason.", most=60_000
    )
    timeout_ms: int = setting(
        15_000, "How long a message may take, all in all; then its outcome is unknown.", most=600_000
    )
    unread_bytes: int = setting(
        262_144, "What a client may leave unread, beside the kernel's buffers, before it is cut.", least=4096
    )
    idle_seconds: int = setting(300, "Silence of a client, pings included, after which it is closed.")
    resume_seconds: int = setting(
        3600, "How long a resume token is good. A fresh one is sent at half of it.", least=2, most=604_800
    )
    trusted_proxies: str = setting(
        "", "Networks of load balancers whose X-Forwarded-For is believed, as for the gateway."
    )
    connections_per_address: int = setting(
        256, "Connections that one address may hold. Not applied in profile dev."
    )

    @property
    def allowed_types(self) -> tuple[str, ...]:
        """The default first."""
        named = (name.strip() for name in self.types.split(","))
        return tuple(dict.fromkeys((self.type, *(name for name in named if name))))

    def faults(self) -> list[str]:
        faults = check_fields(self)
        for name in self.allowed_types:
            checked(faults, "types", check_name, name, "type")
        if self.world:
            checked(faults, "world", check_name, self.world, "world")
        checked(faults, "public_url", check_players_url, self.public_url)
        checked(faults, "trusted_proxies", parse_networks, self.trusted_proxies)
        return faults
