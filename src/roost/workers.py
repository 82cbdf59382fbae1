"""One gateway as several processes: what the supervisor and what each worker runs in the foreground.

NB: the supervisor serves nothing, so only a worker imports what serves: the other is small and starts soon.
"""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from functools import partial

from roost.core.errors import StartFailed
from roost.foreground import hearing_hangups, stop_signal
from roost.gateway.workers.colleagues import Colleagues, Place
from roost.gateway.workers.supervisor import Supervisor
from roost.settings import Loaded, Settings
from roost.tokens.service import root_token
from roost.web.listen import hold, url_of


async def supervisor(loaded: Loaded, wait_s: float) -> None:
    """A gateway as several processes on one port, until a signal comes; a dead one is started again."""
    settings, stop = loaded.settings, stop_signal()
    with hold(settings.gateway.host, settings.gateway.port) as held:
        url = url_of(held)
        environment = loaded.environment({"gateway.port": held.getsockname()[1]})
        root_token(settings.api_token, settings.token_file)  # made once, before several would make it
        above = Supervisor(settings.gateway.workers, partial(_worker_command, wait_s), environment)
        async with above.running():
            with hearing_hangups(above.hang_up):
                await _until_up(above, stop)
                if not stop.is_set():
                    print(f"roost gateway is up: {url} ({settings.gateway.workers} workers)", flush=True)
                await stop.wait()


async def _until_up(above: Supervisor, stop: asyncio.Event) -> None:
    """Start every worker, unless a signal comes. One that cannot start has said why itself."""
    starting, stopping = asyncio.create_task(above.start()), asyncio.create_task(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done():
        starting.cancel()
    elif not starting.result():
        raise StartFailed("a worker could not start", hint="its own message is above")


def _worker_command(wait_s: float, number: int, descriptor: int) -> list[str]:
    own = ["--worker", str(number), "--worker-line", str(descriptor), "--wait", str(wait_s)]
    return [sys.executable, "-m", "roost", "gateway", *own]


async def worker(settings: Settings, place: Place, wait_s: float) -> None:
    """One of the processes of `workers`, until its supervisor ends it or is gone."""
    from roost.app import open_platform
    from roost.gateway.server import build_app
    from roost.roles import GATEWAY, serving

    stop, colleagues = stop_signal(), Colleagues()
    own = settings.gateway
    each = max(1, own.connections_per_address // own.workers)
    settings = replace(settings, gateway=replace(own, connections_per_address=each))
    async with colleagues.connected(place, on_end=stop.set):
        opening = open_platform(settings, roles=("gateway",), attach=True, wait_s=wait_s)
        build = partial(build_app, colleagues=colleagues)
        async with serving(GATEWAY.address(settings), opening, build, shared=True):
            await colleagues.say_up()
            await stop.wait()
