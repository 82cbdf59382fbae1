"""What a launch evening needs, as real processes that can be measured.

    store-owner (with the database under it)   gateway-1 gateway-2   manager-1 manager-2   game-1 game-2

NB: it reads /proc, so it runs on Linux only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from roost.drills.processes import DATABASE, OPS_PORT_ABOVE, Processes, free_port

__all__ = ["DATABASE", "Size", "Town"]

SETTINGS = {
    "ROOST_QUEUE__TICKET_SECONDS": "10",
    "ROOST_QUEUE__GRACE_SECONDS": "10",
    "ROOST_QUEUE__IP_PER_SECOND": "100000",
}


@dataclass(frozen=True, slots=True)
class Size:
    """Of one process, now."""

    memory_mb: float
    files: int


class Town(Processes):
    def __init__(self, folder: Path, capacity: int) -> None:
        super().__init__(folder, SETTINGS)
        ports = {name: free_port() for name in ("gateway-1", "gateway-2", "manager-1", "manager-2")}
        ports |= {name: free_port(OPS_PORT_ABOVE) for name in ("game-1", "game-2")}
        self.gateways = [f"http://127.0.0.1:{ports[name]}" for name in ("gateway-1", "gateway-2")]
        self.metrics: dict[str, str] = {}
        for name, port in ports.items():
            role = name.partition("-")[0].replace("game", "gameserver")
            command = [role, "--port", str(port)]
            if role == "gameserver":
                command += ["--url", self.gateways[0], "--server-id", name, "--ttl", "6"]
                command += ["--capacity", str(capacity // 2)]
            self.add(name, *command)
            ops = port + OPS_PORT_ABOVE if role == "gameserver" else port
            self.metrics[name] = f"http://127.0.0.1:{ops}/metrics"

    def size(self, name: str) -> Size:
        process = Path(f"/proc/{self.pid(name)}")
        status = process.joinpath("status").read_text(encoding="utf-8")
        resident = next(line for line in status.splitlines() if line.startswith("VmRSS:"))
        return Size(int(resident.split()[1]) / 1024, len(list(process.joinpath("fd").iterdir())))
