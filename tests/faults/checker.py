"""A process that checks health as a gateway does: `python -m tests.faults.checker URL`.

Sweeps, asks, votes, and prints one line of JSON for each callback, with the time of day, as the feed has it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from roost.discovery.health import HealthChecker
from roost.discovery.probes import Prober
from roost.discovery.reaper import Reaper
from roost.discovery.service import Discovery
from roost.store.store import Store
from roost.store.url import parse_store_url


def say(event: str, server_id: str = "") -> None:
    print(json.dumps({"event": event, "serverId": server_id, "at": time.time()}), flush=True)


async def main(url: str) -> None:
    store = await Store.open(parse_store_url(url), client_name="checker", wait_s=20)
    discovery, prober = Discovery(store), Prober(allow_local=True)
    checker = HealthChecker(discovery, prober, ballot=discovery)
    checker.on_server_unhealthy(lambda server_id: say("unhealthy", server_id))
    checker.on_server_recovered(lambda server_id: say("recovered", server_id))
    say("started")
    await asyncio.gather(Reaper(discovery, prober).run(), checker.run())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
