"""Taking the demo out touches what is named after it, and nothing of anybody else's."""

from __future__ import annotations

from roost.demo.purge import erase_shard, purge, untouched_shards
from roost.store.keys.binding import partition_keys
from roost.store.keys.discovery import discovery_keys
from roost.store.keys.drain import drain_keys
from roost.store.keys.lanes import shard_keys
from roost.store.keys.placement import placement_keys
from roost.store.keys.waitingroom import world_keys
from roost.store.scopes import partition, shard, world
from roost.store.store import Store


async def everything(store: Store) -> dict[bytes, bytes]:
    return {key: await store.call("DUMP", key) for key in await store.call("KEYS", "*")}


async def fill(store: Store, type_: str, world_: str, instance: str, job: str) -> None:
    """A little of everything that a fleet leaves in the store."""
    sd, bind = discovery_keys(store.keys), partition_keys(store.keys, partition(0))
    line, drain = world_keys(store.keys, world(world_)), drain_keys(store.keys)
    place = f"{type_}:main".encode()
    await store.call("HSET", sd["index"], instance, place + f"\t7\tnonce\t{type_}:501\t30000\t5".encode())
    await store.call("HSET", sd["gone"], instance, b"terminated\t7\t1\t" + place + b"\t0")
    await store.call("HSET", sd["names"], f"{type_}:501", instance)
    await store.call("HSET", sd["overrides"], f"{type_}:501", "{}")
    await store.call("HSET", sd["votes"], instance, "1\tgw=unhealthy")
    await store.call("ZADD", sd["leases"], 1, instance)
    await store.call("SADD", sd["services"], place)
    await store.call("HSET", sd["records"] + place, instance, "{}")
    await store.call("RPUSH", sd["history"] + instance.encode(), "registered")
    await store.call("HSET", bind["servers"], f"{type_}:501", "row")
    await store.call("HSET", bind["partition"], f"news:{type_}", "1:1", f"granted:{type_}:new", "3")
    await store.call("ZADD", bind["ranking"] + type_.encode(), 1, "501")
    await store.call("HSET", bind["users"] + f"{type_}:ann".encode(), "s", "501")
    await store.call("ZADD", bind["binders"] + f"{type_}:501:1".encode(), 0, "ann")
    await store.call("SADD", bind["orphans"], f"{type_}:501:1")
    await store.call("HSET", line["world"], "n", "1")
    await store.call("ZADD", line["waiting"] + b":vip", 1, "ann")
    await store.call("HSET", line["people"] + b"ann", "state", "W")
    await store.call("SET", store.keys.leader(world(world_)), "x")
    await store.call("ZADD", drain["jobs"], 1, job)
    await store.call("HSET", drain["job"] + job.encode(), "type", type_)
    await store.call("HSET", drain["busy"], f"{type_}:501", job)


async def own_shard(store: Store, number: int, server: str) -> None:
    keys = shard_keys(store.keys, shard(number))
    await store.call("HSET", keys["leader"], "server", server)
    await store.call("XADD", keys["log"], "1-1", "b", "command")
    await store.call("SET", keys["index"] + b"77", "1:2:X")


async def test_only_the_demo_is_taken_out(store: Store) -> None:
    await fill(store, "entity", "main", "01AAA", "job1")
    await fill(store, "demography", "demolition", "01BBB", "job2")
    await fill(store, "my-demo-entity", "my-demo", "01CCC", "job4")
    await own_shard(store, 3, "901")
    await store.call("HSET", placement_keys(store.keys)["placement"], "AAPL", "1:2", "@version", "1")
    before = await everything(store)
    await fill(store, "demo-entity", "demo", "01DDD", "job3")
    await own_shard(store, 4, "demo-orders")

    await purge(store, [4], partitions=1)

    assert await everything(store) == before


async def test_a_shard_that_is_somebody_elses_by_now_is_left_alone(store: Store) -> None:
    await own_shard(store, 4, "901")
    before = await everything(store)

    await purge(store, [4], partitions=1)

    assert await everything(store) == before


async def test_where_nobody_else_served_orders_nothing_of_them_is_left(store: Store) -> None:
    before = await everything(store)
    await own_shard(store, 4, "")
    await store.call("HSET", shard_keys(store.keys, shard(5))["leader"], "clock_ms", "1")
    await store.call("HSET", placement_keys(store.keys)["placement"], "@selector", "mixed")

    await purge(store, [4], partitions=1)

    assert await everything(store) == before


async def test_an_emptied_shard_keeps_its_owner_and_counts_as_untouched(store: Store) -> None:
    await own_shard(store, 4, "demo-orders")
    assert await untouched_shards(store, [4, 5]) == [5]

    await erase_shard(store, 4)

    assert await untouched_shards(store, [4, 5]) == [4, 5]
    left = set(await everything(store))
    assert shard_keys(store.keys, shard(4))["leader"] in left
    assert len(left) == 2  # and the number of the format
