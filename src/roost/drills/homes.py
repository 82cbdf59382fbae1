"""The processes of a hot update, and the operator who looks at them over HTTP.

store-owner (with the database under it)   gateway   manager-1 [manager-2]   gate-1 [gate-2]   501   502
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec
from aiohttp import ClientSession, ClientTimeout

from roost.api.binding import HolderList
from roost.api.drain import DrainInput, DrainReply, JobView
from roost.api.errors import ErrorReply, error_of
from roost.core.errors import Unavailable
from roost.drills.player import TIMEOUTS
from roost.drills.processes import OPS_PORT_ABOVE, STORE_OWNER, Processes, free_port

OLD, NEW = "501", ("502", "503")
OLD_VERSION, NEW_VERSION = "1.0", "2.0"
TTL_S = "6"
"""After so long without a heartbeat discovery forgets a server."""
ENTITY = "roost.servers.entity.reference:"
HTTP_S = 5.0

Reply = TypeVar("Reply")


class Homes(Processes):
    def __init__(
        self, folder: Path, *, class_name: str, gates: int = 1, managers: int = 1, targets: int = 1
    ) -> None:
        super().__init__(folder, {"ROOST_ENTITY__CLASS_NAME": ENTITY + class_name})
        port = free_port()
        self.gateway = f"http://127.0.0.1:{port}"
        self.add("gateway", "gateway", "--port", str(port))
        self.managers = tuple(f"manager-{number + 1}" for number in range(managers))
        for name in self.managers:
            self.add(name, "manager", "--port", str(free_port()))
        self.gates = {f"gate-{number + 1}": self._gate(f"gate-{number + 1}") for number in range(gates)}
        """Name → where players connect."""
        self.targets = NEW[:targets]
        for server in (OLD, *self.targets):
            version = OLD_VERSION if server == OLD else NEW_VERSION
            where = ("--port", str(free_port(OPS_PORT_ABOVE)), "--ttl", TTL_S)
            self.add(server, "entity", "--id", server, "--version", version, *where)

    def _gate(self, name: str) -> str:
        port, tcp = free_port(OPS_PORT_ABOVE), free_port()
        self.add(name, "gate", "--server-id", name, "--port", str(port), "--tcp-port", str(tcp))
        return f"ws://127.0.0.1:{port}"

    @property
    def first(self) -> tuple[str, ...]:
        """What runs before the new version comes."""
        return (STORE_OWNER, "gateway", *self.managers, *self.gates, OLD)

    def holder_is_in(self, holder: str) -> str:
        """Which manager campaigned under this name; empty if none did."""
        said = holder.encode()
        return next((name for name in self.managers if said in self.log(name).read_bytes()), "")


class Operator:
    """Asks the gateway; None where nobody answers at the moment."""

    def __init__(self, homes: Homes, session: ClientSession) -> None:
        self._homes = homes
        self._session = session

    async def servers(self) -> dict[str, bool]:
        """Server id → whether it takes users."""
        found = await self._get("/bind/v1/servers", HolderList)
        return found.available_entities if found is not None else {}

    async def users_on(self, server: str) -> int | None:
        found = await self._get("/bind/v1/servers", HolderList)
        return None if found is None else found.binders.get(server, 0)

    async def hot_update(self, server: str, rate: int) -> JobView:
        """`roost entity_hotfix 501`; raises what is refused."""
        body = msgspec.json.encode(DrainInput(servers=[server], rate=rate, by="drill"))
        async with self._session.post(
            f"{self._homes.gateway}/drain/v1/jobs", data=body, headers=self._headers, timeout=_timeout()
        ) as response:
            raw = await response.read()
        if response.status >= 400:
            raise error_of(msgspec.json.decode(raw, type=ErrorReply).error)
        job = msgspec.json.decode(raw, type=DrainReply).job
        if job is None:
            raise Unavailable("the gateway answered without a job")
        return job

    async def job(self, job_id: str) -> JobView | None:
        return await self._get(f"/drain/v1/jobs/{job_id}", JobView)

    @property
    def _headers(self) -> dict[str, str]:
        return {"X-API-Token": self._homes.token, "Content-Type": "application/json"}

    async def _get(self, path: str, type_: type[Reply]) -> Reply | None:
        try:
            url = self._homes.gateway + path
            async with self._session.get(url, headers=self._headers, timeout=_timeout()) as response:
                raw = await response.read()
            return msgspec.json.decode(raw, type=type_) if response.status == 200 else None
        except (*TIMEOUTS, msgspec.DecodeError):
            return None


def _timeout() -> ClientTimeout:
    return ClientTimeout(total=HTTP_S)
