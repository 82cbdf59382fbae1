"""`/demo/v1`: the demo fleet over HTTP, where one runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from roost.api.demo import DEMO, DemoActed, DemoNotReady, DemoView, NoDemo
from roost.web.acts import Act
from roost.web.route import Request, Route


class Acts(Protocol):
    """What can be done with a demo fleet; each says what happens now. `NoDemo` where it was stopped."""

    def view(self) -> DemoView: ...

    async def hot_update(self) -> str: ...

    async def flood(self) -> str: ...

    async def kill(self) -> str: ...

    async def stop(self) -> str: ...


def routes(demo: Acts) -> list[Route]:
    on = DemoRoutes(demo)
    return [
        Route(
            "GET",
            DEMO,
            on.get_demo,
            "The demo fleet and what can be tried with it",
            scope="read",
            open_in_dev=True,
            reply=DemoView,
        ),
        on.act("hot-update", on.update_demo, "Move the users of the older demo server to the newer one"),
        on.act("flood", on.flood_demo, "Send a crowd into the waiting room of the demo world"),
        on.act("kill", on.kill_demo, "Kill a demo server, which comes back by itself"),
        on.act("stop", on.stop_demo, "End the demo and take everything of it out of the store"),
    ]


def _said(acted: DemoActed) -> str:
    return acted.message


class DemoRoutes:
    def __init__(self, demo: Acts) -> None:
        self._demo = demo

    def act(self, name: str, handler: Callable[[Request], Awaitable[DemoActed]], summary: str) -> Route:
        return Route(
            "POST",
            f"{DEMO}/{name}",
            handler,
            summary,
            scope="admin",
            act=Act(f"demo.{name}", "demo", after=_said),
            reply=DemoActed,
            status=202,
            errors=(NoDemo, DemoNotReady),
        )

    async def get_demo(self, request: Request) -> DemoView:
        return self._demo.view()

    async def update_demo(self, request: Request) -> DemoActed:
        return DemoActed(await self._demo.hot_update())

    async def flood_demo(self, request: Request) -> DemoActed:
        return DemoActed(await self._demo.flood())

    async def kill_demo(self, request: Request) -> DemoActed:
        return DemoActed(await self._demo.kill())

    async def stop_demo(self, request: Request) -> DemoActed:
        return DemoActed(await self._demo.stop())
