/** A store that loses everything: who is alive comes back by itself. Runs alone. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { enter, type Change } from "../../src/index.js";
import { eventually } from "../support.js";
import { client, roost, wipeStore } from "./roost.js";

test("g4, g1: instances register again, a watch takes a new snapshot, a receipt brings the place back", async () => {
  await using one = client({ ttlSeconds: 6 });
  const ann = await enter(roost.url, { userId: "ann", world: "shut", signature: async () => roost.entries["ann shut"]! });
  assert.equal(ann.now!.status, "WAITING");
  const seen: Change[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const change of one.watch({ type: "ts-z" }, stop.signal)) seen.push(change);
  })();
  await one.registered({ type: "ts-z", group: "kr-1", serverId: "501" }, async me => {
    await eventually(() => seen.some(change => change.event === "added"), "the watch");
    me.load = 3;
    const { life } = me;
    const before = seen.length;
    await wipeStore();
    await eventually(() => me.life !== life, "a new life");
    const { instance } = await one.get(me.instanceId);
    assert.deepEqual([instance!.serverId, instance!.load, instance!.life], ["501", 3, me.life]);
    await eventually(() => seen.slice(before).some(change => change.event === "snapshot"), "a new snapshot");
    await eventually(() => [...(seen.at(-1)?.instances ?? []), seen.at(-1)?.instance].some(other => other?.life === me.life), "the new life there", 25_000);
  });
  stop.abort();
  await watching;
  const changes = ann.changes();
  await changes.next();  // what it knew before
  await eventually(async () => {
    const { value } = await changes.next();
    return value?.status === "WAITING" && value.rank === 1;
  }, "the place");
  await changes.return();
});
