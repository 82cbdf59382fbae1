"""How many commands per second does one process get through our link, beside redis-py and valkey-glide?"""

from __future__ import annotations

import sys
from collections.abc import Awaitable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import uvloop

from callers import Once, rate
from report import Case, need, publish, result_file
from roost.core.lease import MAX_STEP_MS
from roost.store import scopes
from roost.store.leader import Held, Leading
from roost.store.store import Store
from roost.store.url import parse_store_url
from roost.testing import RunningServer, run_valkey

try:
    import redis.asyncio as redis_py
except ImportError:
    need("redis")
try:
    import glide
except ImportError:
    need("valkey-glide")

ROUNDS = 5
ROUND_S = 1.0
WARM_UP_S = 0.2
CALLERS = (64, 512)
POOL = 64
KEY, VALUE = "bench:small", "x" * 32
PROMISED = {"redis-py": 8.0, "valkey-glide": 4.0}

METHOD = (
    f"One throwaway valkey-server on loopback TCP, one client process under uvloop. N callers each repeat "
    f"one call as soon as its reply is there, for {ROUND_S:g} s; the rate is replies per second. "
    f"Contenders take turns within each of {ROUNDS} rounds; the median counts. Ours: one multiplexed link. "
    f"redis-py: BlockingConnectionPool({POOL}), hiredis parser. valkey-glide: one GlideClient. "
    f"The script is leader_campaign by its holder; redis-py calls the same source through register_script. "
    f"NB: callers that do nothing between two calls fall into step, so each of our writes carries nearly all "
    f"of them: the best case for a link that batches. With 64 of them our client is not always busy, and "
    f"its rate depends on how fast the two processes wake each other."
)


@dataclass
class Contenders:
    get: dict[str, Once]
    script: dict[str, Once]


async def connect(server: RunningServer, stack: AsyncExitStack) -> Contenders:
    store = await Store.open(parse_store_url(server.url))
    stack.push_async_callback(store.close)
    pool = redis_py.BlockingConnectionPool(host="127.0.0.1", port=server.port, max_connections=POOL)
    redis = await stack.enter_async_context(redis_py.Redis(connection_pool=pool))
    stack.push_async_callback(pool.disconnect)
    address = glide.NodeAddress("127.0.0.1", server.port)
    glide_client = await glide.GlideClient.create(glide.GlideClientConfiguration([address]))
    stack.push_async_callback(glide_client.close)

    await store.call("SET", KEY, VALUE)
    campaign = store.library.script("store", "leader_campaign", Leading, Held)
    campaign_by_redis = redis.register_script(campaign.contract.source)
    leader = store.keys.leader(scopes.world("bench"))
    arguments: list[str | int] = ["one", "1", 10_000, MAX_STEP_MS, ""]

    def ours_campaigns() -> Awaitable[Any]:
        return campaign(leader=leader, holder="one", epoch="1", ttl_ms=10_000, max_step_ms=MAX_STEP_MS)

    return Contenders(
        get={
            "ours": lambda: store.call("GET", KEY),
            "redis-py": lambda: redis.get(KEY),
            "valkey-glide": lambda: glide_client.get(KEY),
        },
        script={
            "ours": ours_campaigns,
            "redis-py": lambda: campaign_by_redis(keys=[leader], args=arguments),
        },
    )


async def measure(case: Case, contenders: dict[str, Once], callers: int) -> Case:
    for once in contenders.values():
        await rate(once, callers, WARM_UP_S)
    for number in range(1, ROUNDS + 1):
        print(f"{case.name}: round {number} of {ROUNDS}", flush=True)
        for name, once in contenders.items():
            case.add(name, await rate(once, callers, ROUND_S))
    return case


async def main(server: RunningServer) -> list[Case]:
    async with AsyncExitStack() as stack:
        contenders = await connect(server, stack)
        cases = [await measure(Case(f"GET, {n} callers", PROMISED), contenders.get, n) for n in CALLERS]
        cases.append(await measure(Case("script, 64 callers"), contenders.script, 64))
        return cases


if __name__ == "__main__":
    path = result_file()
    with run_valkey() as server:
        found = uvloop.run(main(server))
    sys.exit(publish("link", "calls per second", METHOD, found, path))
