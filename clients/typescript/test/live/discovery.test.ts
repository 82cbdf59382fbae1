/** The stories of discovery that the Python SDK is tested by, against a running Roost. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { FencedInstance, InvalidId, InvalidInput, NotAuthenticated, RemovedInstance, ServerIdTaken, UnknownBinding, UnknownInstance, type Change, type Instance } from "../../src/index.js";
import { eventually } from "../support.js";
import { client, roost } from "./roost.js";

test("register, beat, discover, get, remove", async () => {
  await using one = client();
  const me = await one.register({ type: "ts-a", group: "kr-1", serverId: "501", ports: { udp: 7777 }, capacity: 100, labels: { map: "desert" } });
  assert.equal(me.instanceId.length, 26);
  assert.equal(me.intervalMs, 10_000);
  await one.heartbeat(me.instanceId, { load: 7, performance: { tps: 60 } });
  const [seen] = await one.discover({ type: "ts-a", group: "kr-1" });
  assert.deepEqual([seen!.serverId, seen!.ports, seen!.load, seen!.performance, seen!.accepting], ["501", { udp: 7777 }, 7, { tps: 60 }, true]);
  assert.deepEqual([seen!.privateIp, seen!.systemInfo["node"]], ["127.0.0.1", process.version]);
  assert.equal((await one.get("501", "ts-a")).instance?.instanceId, me.instanceId);
  await one.remove("501");
  assert.deepEqual(await one.discover({ type: "ts-a", group: "kr-1" }), []);
  assert.equal((await one.get(me.instanceId)).status, "terminated");
});

test("filters", async () => {
  await using one = client();
  for (const [group, map] of [["kr-1", "a"], ["kr-1", "b"], ["us-1", "a"]] as const) await one.register({ type: "ts-b", group, labels: { map } });
  const count = async (group: string, labels: string[] = []) => (await one.discover({ type: "ts-b", group, labels })).length;
  assert.deepEqual([await count("*"), await count("kr-1"), await count("kr-1", ["map=a"]), await count("*", ["map"])], [3, 2, 1, 3]);
});

test("refusals are the same errors as everywhere", async () => {
  await using one = client();
  const first = await one.register({ type: "ts-c", group: "kr-1", serverId: "501" });
  await assert.rejects(one.register({ type: "ts-c", group: "kr-2", serverId: "501" }), ServerIdTaken);
  await assert.rejects(one.heartbeat("01NOBODY"), UnknownInstance);
  await assert.rejects(one.get("01NOBODY"), UnknownInstance);
  await assert.rejects(one.remove("01NOBODY"), UnknownInstance);
  await assert.rejects(one.register({ type: "ts{c", group: "kr-1" }), InvalidId);
  await assert.rejects(one.register({ type: "ts-c", group: "kr-1", performance: { x: "y".repeat(20_000) } }), InvalidInput);
  await assert.rejects(one.homeOf("nobody-at-all"), UnknownBinding);
  await client().register({ type: "ts-c", group: "kr-1", instanceId: first.instanceId });
  await assert.rejects(one.heartbeat(first.instanceId), FencedInstance);
  await assert.rejects(client({ token: "a-token-nobody-issued" }).discover(), NotAuthenticated);
});

test("g4: a late beat never revives what was removed", async () => {
  await using one = client();
  const me = await one.register({ type: "ts-d", group: "kr-1" });
  await client().remove(me.instanceId);
  await assert.rejects(one.heartbeat(me.instanceId), RemovedInstance);
  assert.deepEqual(await one.discover({ type: "ts-d" }), []);
});

test("g1: a watcher sees every change in order", async () => {
  await using one = client();
  await one.register({ type: "ts-e", group: "kr-1", serverId: "before" });
  const seen: Change[] = [];
  const stop = new AbortController();
  const watching = (async () => {
    for await (const change of one.watch({ type: "ts-e", group: "kr-1" }, stop.signal)) {
      if (change.event !== "changed") seen.push(change);  // one that does not beat is suspect after half a lease
    }
  })();
  await eventually(() => seen.length === 1, "the snapshot");
  for (let n = 0; n < 10; n++) await one.remove((await one.register({ type: "ts-e", group: "kr-1", serverId: `s${n}` })).instanceId);
  await eventually(() => seen.length === 21, "every change");
  stop.abort();
  await watching;
  assert.deepEqual(seen[0]!.instances?.map(instance => instance.serverId), ["before"]);
  assert.deepEqual(seen.slice(1).map(change => change.event), Array(10).fill(["added", "removed"]).flat());
  assert.ok(seen.every((change, n) => n === 0 || change.revision > seen[n - 1]!.revision));
});

test("callbacks tell who came and who left", async () => {
  await using one = client();
  const came: Instance[] = [], left: string[] = [];
  const first = await one.register({ type: "ts-f", group: "kr-1", serverId: "501" });
  one.onServerAdded(instance => {
    came.push(instance);
    throw new Error("of a callback: it ends nothing");
  }, { type: "ts-f" });
  one.onServerRemoved(id => left.push(id), { type: "ts-f" });
  await eventually(() => came.length === 1);
  const second = await one.register({ type: "ts-f", group: "kr-1", serverId: "502" });
  await eventually(() => came.length === 2);
  await one.remove(first.instanceId);
  await eventually(() => left.length === 1);
  assert.deepEqual([came.map(instance => instance.instanceId), left], [[first.instanceId, second.instanceId], ["501"]]);
});

test("inside registered it lives, is told to drain, and afterwards it is gone", async () => {
  await using one = client({ ttlSeconds: 6 });
  const directives: string[] = [];
  const look = async () => (await one.discover({ type: "ts-g" }))[0];
  await one.registered({ type: "ts-g", group: "kr-1", serverId: "501", capacity: 10, onDirective: directive => directives.push(directive) }, async me => {
    me.load = 9;
    await eventually(async () => (await look())?.load === 9, "the beat");
    me.status = "draining";
    await eventually(async () => (await look())?.status === "draining", "the status");
    me.status = "ready";
    await one.session.ask((api, signal) => api.PUT("/sd/v1/instances/{id}/override", { params: { path: { id: me.instanceId } }, body: { drain: true }, signal }));
    await eventually(() => directives.includes("drain"), "the directive");
    assert.equal(me.draining, true);
    assert.equal((await look())?.accepting, false);
  });
  assert.equal(await look(), undefined);
});

test("g4: what an operator removed does not come back", async () => {
  await using one = client({ ttlSeconds: 6 });
  const directives: string[] = [];
  await one.registered({ type: "ts-h", group: "kr-1", onDirective: directive => directives.push(directive) }, async me => {
    const params = { path: { id: me.instanceId }, query: { cause: "removed" as const } };
    await one.session.ask((api, signal) => api.DELETE("/sd/v1/instances/{id}", { params, signal }));
    await eventually(() => directives.includes("removed"), "the directive");
    assert.deepEqual(await one.discover({ type: "ts-h" }), []);
  });
});

test("the last list is served while nobody answers", async () => {
  let isAway = false;
  const fetch = (request: Request) => (isAway ? Promise.reject(new TypeError("cut off")) : globalThis.fetch(request));
  await using one = client({ fetch });
  await one.register({ type: "ts-i", group: "kr-1", serverId: "501" });
  assert.equal((await one.discover({ type: "ts-i" })).length, 1);
  isAway = true;
  assert.deepEqual((await one.discover({ type: "ts-i" })).map(instance => instance.serverId), ["501"]);
  await assert.rejects(one.discover({ type: "never-asked-before" }), { code: "STORE_AWAY" });
});

test("SIGTERM removes what is registered", async () => {
  const program = `
    import { connect } from ${JSON.stringify(new URL("../../src/index.js", import.meta.url).href)};
    const client = connect(${JSON.stringify(roost.url)}, { token: ${JSON.stringify(roost.token)} });
    await client.registered({ type: "ts-j", group: "kr-1", serverId: "501" }, async () => {
      console.log("up");
      await new Promise(() => setInterval(() => {}, 1000));
    });`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"], cwd: fileURLToPath(new URL("../../..", import.meta.url)) });
  await once(child.stdout, "data");
  await using one = client();
  assert.equal((await one.discover({ type: "ts-j" })).length, 1);
  child.kill("SIGTERM");
  const [, signal] = await once(child, "exit");
  assert.equal(signal, "SIGTERM");
  assert.deepEqual(await one.discover({ type: "ts-j" }), []);
});
