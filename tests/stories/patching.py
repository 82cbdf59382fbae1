"""Verbs of a patch night: a home is emptied by a hot update while its people play."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from roost.testing import eventually
from tests.stories.houses import Houses

PATIENCE_S = 60.0
Get = Callable[[str], Awaitable[dict[str, Any]]]


class PatchNight:
    """The operator's side of it."""

    def __init__(self, houses: Houses, get: Get) -> None:
        self._houses = houses
        self._get = get

    async def order(self, server: str) -> str:
        """`operator hot-updates 501`"""
        await self._houses.order("entity_hotfix", server, "--no-follow")
        return f"hot update of {server} ordered"

    async def closed(self, server: str) -> str:
        """`wait until home 501 takes nobody new`: whoever has no home yet finds another"""
        rows: dict[str, Any] = {}

        async def found() -> bool:
            rows.update(await self._get("/bind/v1/servers"))
            return rows.get("availableEntities", {}).get(server) is not True

        await eventually(found, f"home {server} to take nobody", PATIENCE_S, lambda: str(rows))
        return f"home {server} takes nobody new"

    async def done(self, server: str) -> str:
        """`wait until the hot update of 501 is done`"""
        jobs: list[dict[str, Any]] = []

        async def is_done() -> bool:
            jobs[:] = (await self._get("/drain/v1/jobs")).get("jobs", [])
            return bool(jobs) and jobs[0]["servers"] == [server] and jobs[0]["state"] == "done"

        await eventually(is_done, f"the hot update of {server}", PATIENCE_S, lambda: str(jobs))
        return f"the hot update of {server} is done, {jobs[0]['counts']['moved']} moved"

    async def ended(self, server: str) -> str:
        """`wait until home 501 has ended`: nobody stopped it"""
        return f"home {server} ended by itself with {await self._houses.ended(f'home {server}')}"

    async def certificate(self) -> str:
        """`operator reads the certificate`"""
        job = (await self._get("/drain/v1/jobs"))["jobs"][0]
        found = job["certificate"]
        counts = ", ".join(
            f"{found[name]} {name}" for name in ("lost", "doubled", "reordered", "disconnected")
        )
        return f"{counts}; {'it holds' if found['holds'] else found['lines']}"
