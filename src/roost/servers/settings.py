"""The settings of the reference game server: `ROOST_GAMESERVER__…`."""

from __future__ import annotations

from dataclasses import dataclass

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
