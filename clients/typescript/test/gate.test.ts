/** A player at a scripted gate: frames over TCP, in this process. The stories at real gates are in live/gate.test.ts. */

import assert from "node:assert/strict";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { after, test } from "node:test";
import { GateRefused, OutcomeUnknown } from "../src/errors.js";
import { FrameReader, PUSH, encodeFrame, frame } from "../src/frames.js";
import { decode, encode } from "../src/msgpack.js";
import { play } from "../src/play.js";
import { deferred } from "../src/timing.js";
import { eventually } from "./support.js";

type Said = Record<string, unknown>;
const closing: (() => void)[] = [];
after(() => closing.forEach(close => close()));

/** A gate that keeps what it hears, and answers as the test says. */
class Gate {
  readonly heard: Said[] = [];
  readonly sockets: Socket[] = [];
  url = "";
  lastSeq = 0;

  constructor(readonly answer: (gate: Gate, said: Said) => void) {}

  async open(): Promise<this> {
    const server = createServer(socket => this.#take(socket));
    await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
    closing.push(() => (this.sockets.forEach(socket => socket.destroy()), server.close()));
    this.url = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return this;
  }

  say(said: Said): void {
    this.sockets.at(-1)?.write(encodeFrame(frame({ flags: PUSH, service: 2, method: 1, payload: encode(said) })));
  }

  welcome(resume = "r-1"): void {
    const types = { entity: { lastSeq: this.lastSeq, reason: "new", durability: "journal", epoch: 1 } };
    this.say({ welcome: { user: "ann", session: "s-1", resume, types, maxBytes: 1000 } });
  }

  #take(socket: Socket): void {
    this.sockets.push(socket);
    const reader = new FrameReader();
    socket.on("error", () => {});
    socket.on("data", data => {
      for (const one of reader.take(data)) {
        if (one.service !== 2) continue;
        const said = decode(one.payload) as Said;
        this.heard.push(said);
        this.answer(this, said);
      }
    });
  }
}

const seqs = (gate: Gate) => gate.heard.flatMap(said => ("seq" in said ? [said["seq"]] : []));

function echo(gate: Gate, said: Said): void {
  if ("login" in said) gate.welcome();
  else if ("seq" in said) gate.say({ seq: said["seq"], type: "entity", result: said["body"], durability: "journal", epoch: 2 });
}

test("login, answers, refusals, pushes, logout", async () => {
  const gate = await new Gate((gate, said) => {
    if (said["body"] === "no") gate.say({ seq: said["seq"], type: "entity", error: { code: "QUEUE_FULL", message: "full", retryAfterMs: 50 } });
    else if (said["body"] === "lost") gate.say({ seq: said["seq"], type: "entity", error: { code: "OUTCOME_UNKNOWN", message: "gone" } });
    else echo(gate, said);
  }).open();
  gate.lastSeq = 7;
  const player = await play(gate.url, "token", { types: ["entity"] });
  assert.deepEqual([player.user, player.session, player.resume], ["ann", "s-1", "r-1"]);
  assert.deepEqual(await player.ask({ op: 1 }), { result: { op: 1 }, seq: 8, durability: "journal", epoch: 2 });
  const refused = (await player.request("no").catch((error: unknown) => error)) as GateRefused;
  assert.deepEqual([refused.reason, refused.retryAfterMs], ["QUEUE_FULL", 50]);
  await assert.rejects(player.request("lost"), OutcomeUnknown);
  gate.say({ push: null, type: "entity", epoch: 1, n: 1 });
  gate.say({ push: { hello: 2n ** 60n }, type: "entity", epoch: 1, n: 2 });
  gate.say({ resume: "r-2" });
  const pushes = player.pushes();
  assert.deepEqual([(await pushes.next()).value?.body, (await pushes.next()).value?.body], [null, { hello: 2n ** 60n }]);
  await eventually(() => player.resume === "r-2");
  await player.close();
  assert.equal((await pushes.next()).done, true);
  await eventually(() => gate.heard.some(said => said["logout"] === true));
  assert.deepEqual(gate.heard[0], { login: "token", types: ["entity"] });
});

test("what has no answer is sent again at the next gate, under the same numbers, after the resume token", async () => {
  const first = await new Gate((gate, said) => "login" in said && gate.welcome()).open();
  const second = await new Gate(echo).open();
  const player = await play(`${first.url},${second.url}`, "token");
  const asked = await Promise.all([1, 2, 3].map(body => player.send(body)));
  await eventually(() => seqs(first).length === 3);
  first.sockets[0]!.destroy();
  assert.deepEqual((await Promise.all(asked.map(one => one.answer))).map(reply => reply.result), [1, 2, 3]);
  assert.deepEqual([second.heard[0], seqs(second), player.connects], [{ login: "", types: [], resume: "r-1" }, [1, 2, 3], 2]);
  assert.equal((await player.ask(4)).seq, 4);
  await player.close();
});

test("a gate that refuses what was sent before it knows nothing of the first attempt", async () => {
  const first = await new Gate((gate, said) => "login" in said && gate.welcome()).open();
  const second = await new Gate((gate, said) => {
    if ("login" in said) gate.welcome("r-2");
    else if ("seq" in said) gate.say({ seq: said["seq"], type: "entity", error: { code: said["body"] as string, message: "so it is" } });
  }).open();
  const mayLogIn = deferred<void>();
  let logins = 0;
  const player = await play(`${first.url},${second.url}`, async () => (++logins > 1 && (await mayLogIn.promise), "token"));
  const refusals = ["GATE_FULL", "QUEUE_FULL", "MIGRATING", "NO_SERVER", "UNAVAILABLE", "REFUSED"];
  const before = await Promise.all([...refusals, "FAILED"].map(code => player.send(code)));
  await eventually(() => seqs(first).length === before.length);
  first.sockets[0]!.destroy();
  await eventually(() => logins === 2);
  const meanwhile = await player.send("GATE_FULL");
  const ends = Promise.allSettled([...before, meanwhile].map(one => one.answer));
  mayLogIn.resolve();
  const [told, last] = [(await ends).map(end => (end as PromiseRejectedResult).reason as Error), refusals.length];
  for (const [n, code] of refusals.entries()) {
    assert.ok(told[n] instanceof OutcomeUnknown, `${code}: ${told[n]}`);
    assert.match(told[n].message, new RegExp(code));
  }
  assert.equal((told[last] as GateRefused).reason, "FAILED", "the home has judged it");
  assert.equal((told[last + 1] as GateRefused).reason, "GATE_FULL", "it was not sent before");
  await assert.rejects(player.request("MIGRATING"), { name: "GateRefused", reason: "MIGRATING" });
  assert.equal(player.connects, 2);
  await player.close();
});

test("a gate that drains is left, one that was taken over is not fought for", async () => {
  const draining = await new Gate((gate, said) => {
    if ("login" in said) gate.welcome();
    else if ("seq" in said) gate.say({ bye: { code: "DRAINING", message: "" }, resume: "r-9" });
  }).open();
  const taken = await new Gate((gate, said) => {
    if ("login" in said) gate.welcome();
    else if ("seq" in said) gate.say({ bye: { code: "TAKEN_OVER", message: "elsewhere" } });
  }).open();
  const player = await play(`${draining.url},${taken.url}`, "token");
  await assert.rejects(player.request("count"), OutcomeUnknown);
  assert.equal((player.ended as GateRefused).reason, "TAKEN_OVER");
  assert.equal(taken.heard[0]!["resume"], "r-9");
  assert.deepEqual([draining.sockets.length, taken.sockets.length], [1, 1]);
  await player.close();
});

test("a resume token that is too old begins a new session, and says that nobody knows", async () => {
  let logins = 0;
  const gate = await new Gate((gate, said) => {
    if (!("login" in said)) return;
    if (++logins === 2) gate.say({ bye: { code: "TOKEN_REFUSED", message: "" } });
    else gate.welcome(`r-${logins}`);
  }).open();
  const player = await play(gate.url, async () => "fresh");
  const { answer } = await player.send("count");
  gate.sockets[0]!.destroy();
  await assert.rejects(answer, OutcomeUnknown);
  await eventually(() => player.connects === 2);
  assert.deepEqual(gate.heard.filter(said => "login" in said).map(said => [said["login"], said["resume"]]), [["fresh", undefined], ["fresh", "r-1"], ["fresh", undefined]]);
  assert.equal(player.types["entity"]!.lastSeq, 0);
  assert.equal((await player.send("again")).seq, 2, "numbers never go back");
  await player.close();
});

test("at most 128 messages wait for an answer; the next waits for a place, in order", async () => {
  const gate = await new Gate((gate, said) => "login" in said && gate.welcome()).open();
  const player = await play(gate.url, "token");
  const asked = Array.from({ length: 130 }, (_, n) => player.send(n));
  await eventually(() => seqs(gate).length === 128);
  gate.say({ seq: 1, type: "entity", result: 0, durability: "", epoch: 1 });
  await eventually(() => seqs(gate).length === 129);
  gate.say({ seq: 2, type: "entity", result: 1, durability: "", epoch: 1 });
  await eventually(() => seqs(gate).length === 130);
  assert.deepEqual(seqs(gate), Array.from({ length: 130 }, (_, n) => n + 1));
  await Promise.all(asked);
  await player.close();
});
