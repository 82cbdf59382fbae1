"""The settings of the reference game server: `ROOST_GAMESERVER__…`."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.setting import check_fields, setting


@dataclass(frozen=True, slots=True)
class GameServerSettings:
    host: str = setting("127.0.0.1", "Address to listen on. Profile dev allows loopback only.")
    port: int = setting(8420, "Port for players; its metrics are on the port 1000 above.", most=64535)
    world: str = setting("main", "World whose tickets it takes.")
    capacity: int = setting(100, "Players at once. What it reports to the waiting room, and refuses beyond.")
    public_url: str = setting("", "Where players connect, ws:// or wss://. Empty: host and port.")
    idle_seconds: int = setting(120, "Silence after which a player is disconnected.")
    idle_warning_seconds: int = setting(30, "How long before that they are warned.")

    def faults(self) -> list[str]:
        return check_fields(self)
