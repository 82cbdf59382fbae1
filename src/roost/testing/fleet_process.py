"""The process behind `run_fleet`: `python -m roost.testing.fleet_process URL COUNT TTL [FAULT]`.

Prints one line of JSON with the ids once all are registered, and sends heartbeats until it is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from roost.sdk.connect import connect

HOUR_S = 3600.0


async def main(url: str, count: int, ttl_seconds: float, fault: str) -> None:
    async with connect(
        url, ttl_seconds=ttl_seconds, cache_folder="/nowhere", sweeps=fault == "sweep"
    ) as client:
        registered = await asyncio.gather(
            *(client.register(type="game", group="kr-1", server_id=f"s{n}") for n in range(count))
        )
        ids = [one.instance_id for one in registered]
        for instance_id in ids:
            client.start_auto_heartbeat(instance_id)
        print(json.dumps(ids), flush=True)
        if fault == "hang":
            await asyncio.sleep(1.0)
            time.sleep(HOUR_S)
        await asyncio.Event().wait()


if __name__ == "__main__":
    url, count, ttl, *fault = sys.argv[1:]
    if fault == ["skew"]:
        true_time, true_time_ns = time.time, time.time_ns
        time.time = lambda: true_time() + HOUR_S
        time.time_ns = lambda: true_time_ns() + int(HOUR_S * 1e9)
    asyncio.run(main(url, int(count), float(ttl), "".join(fault)))
