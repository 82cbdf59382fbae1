/** Players at gates of a running Roost: the stories of `roost.play`, over WebSocket and TCP. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { GateRefused, InvalidInput, play, type Player, type Push } from "../../src/index.js";
import { eventually } from "../support.js";
import { client, roost } from "./roost.js";

const [first, second] = roost.gates as [(typeof roost.gates)[0], (typeof roost.gates)[0]];
const login = (user: string, url: string) => play(url, roost.logins[user]!);

/** Count up so many times, pipelined; what the answers say. */
async function counted(player: Player, howMany: number): Promise<unknown[]> {
  const asked = await Promise.all(Array.from({ length: howMany }, () => player.send("count")));
  return (await Promise.all(asked.map(one => one.answer))).map(reply => reply.result);
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => from + n);

test("both ways in lead to the same home", async () => {
  {
    await using player = await login("ways", first.ws);
    assert.equal(player.types["entity"]!.reason, "new");
    assert.deepEqual(await counted(player, 200), range(1, 201), "more than may wait, in order");
  }
  await using player = await login("ways", first.tcp);
  assert.equal(player.types["entity"]!.lastSeq, 200);
  assert.deepEqual(await counted(player, 5), range(201, 206));
  const { result, durability } = await player.ask("version");
  assert.equal((result as { serverId: string }).serverId, "501");
  assert.match(durability, /^write-back:|journal|write-through/);
  assert.equal((await client().homeOf("ways")).serverId, "501");
});

test("pushes of the home arrive, over both ways", async () => {
  for (const url of [first.ws, first.tcp]) {
    const player = await login("push", url);
    await player.request({ op: "say", text: "hello" });
    const heard: Push[] = [];
    for await (const push of player.pushes()) {
      heard.push(push);
      break;
    }
    assert.deepEqual([heard[0]!.body, heard[0]!.type], [{ said: "hello" }, "entity"]);
    await player.close();
    for await (const _ of player.pushes()) assert.fail("pushes end with the player");
  }
});

test("a second login takes over, and the first one stays away", async () => {
  await using one = await login("twice", first.ws);
  assert.deepEqual(await counted(one, 3), [1, 2, 3]);
  await using other = await login("twice", first.tcp);
  await eventually(() => one.ended, "the first one to be told");
  assert.equal((one.ended as GateRefused).reason, "TAKEN_OVER");
  await assert.rejects(one.request("count"), GateRefused);
  assert.deepEqual(await counted(other, 3), [4, 5, 6]);
});

test("another object goes on with the session by its resume token", async () => {
  const one = await login("resumed", first.ws);
  assert.deepEqual(await counted(one, 3), [1, 2, 3]);
  await using other = await play(first.tcp, "", { resume: one.resume });
  assert.equal(other.user, "resumed");
  assert.deepEqual(await counted(other, 2), [4, 5]);
  await one.close();
});

test("who is not let in hears why, and what no gate takes is refused before it is sent", async () => {
  await assert.rejects(play(first.ws, "v1.k1.forged.mac"), { reason: "TOKEN_REFUSED" });
  await assert.rejects(play(first.tcp, "nonsense"), { reason: "TOKEN_REFUSED" });
  await assert.rejects(play("http://127.0.0.1:1", "x"), InvalidInput);
  await using player = await login("body", first.ws);
  await assert.rejects(player.request("x".repeat(100_000)), InvalidInput);
  await assert.rejects(player.request(() => 0), InvalidInput);
  await assert.rejects(player.request("count", "another-type"), InvalidInput);
  assert.equal(await player.request("count"), 1, "no number was spent");
});

test("after kill -9 of a gate players resume at the other, in order and once", async () => {
  const players = await Promise.all([
    login("killed-0", `${second.ws},${first.ws}`), login("killed-1", `${second.tcp},${first.tcp}`), login("killed-2", `${second.ws},${first.tcp}`),
  ]);
  let isKilled = false;
  const until = Date.now() + 60_000;
  const playing = players.map(async player => {
    const results: unknown[] = [];
    while ((player.connects < 2 && Date.now() < until) || results.length < 100) {
      results.push(...(await counted(player, 20)));
      if (!isKilled && results.length >= 60) {
        isKilled = true;
        process.kill(second.pid, "SIGKILL");
      }
    }
    return results;
  });
  for (const results of await Promise.all(playing)) assert.deepEqual(results, range(1, results.length + 1), "each once, in order");
  assert.deepEqual(players.map(player => player.connects), [2, 2, 2]);
  await Promise.all(players.map(player => player.close()));
});
