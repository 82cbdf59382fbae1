/** Heart, watch and calls on gateways that answer badly: real HTTP servers, in this process. */

import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, mock, test } from "node:test";
import type { Beat, BeatReply, Change, Instance, Registered } from "../src/api.js";
import { connect } from "../src/client.js";
import { ERRORS, FencedInstance, Foreign, InvalidInput, OutcomeUnknown, RemovedInstance, StoreUnavailable, UnknownInstance, errorOf } from "../src/errors.js";
import { EventReader } from "../src/events.js";
import { Heart, Registration, type Registrar } from "../src/heart.js";
import { gatewayUrls } from "../src/session.js";
import { Differences, ListGuard } from "../src/watch.js";
import { collectGarbage, eventually, repositoryFile } from "./support.js";

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
const closing: (() => void)[] = [];
after(() => closing.forEach(close => close()));

async function gateway(handler: Handler): Promise<string> {
  const server = createServer(handler);
  await new Promise<void>(resolve => server.listen(0, "127.0.0.1", resolve));
  closing.push(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
}

const NOBODY = { instances: [], revision: 1, revisionAt: "1" };
const refused = (code: string) => ({ error: { code, message: "because", hint: "do this", requestId: "r-1" } });

test("every code of docs/errors.md is a class, and no class has another", () => {
  const told = [...repositoryFile("docs/errors.md").matchAll(/^\| \d+ \| `(\w+)`/gm)].map(match => match[1]!);
  assert.ok(told.length > 40);
  assert.deepEqual([...ERRORS.keys()].sort(), [...told].sort());
  for (const code of told) assert.equal(errorOf(refused(code).error).code, code);
});

test("a refusal is the class of its code, with hint, request and when to come again", async () => {
  const url = await gateway((_, response) => json(response, 429, refused("TOO_MANY_REQUESTS"), { "Retry-After": "7" }));
  const error = await connect(url).discover().catch(error => error);
  assert.deepEqual([error.name, error.code, error.hint, error.requestId, error.retryAfterMs, error.status],
    ["TooManyRequests", "TOO_MANY_REQUESTS", "do this", "r-1", 7000, 429]);
});

for (const [what, answer] of Object.entries({
  "a proxy's page": (response: ServerResponse): unknown => response.writeHead(502, { "Retry-After": "3" }).end("<h1>Bad Gateway</h1>"),
  "no JSON": (response: ServerResponse): unknown => response.writeHead(200, { "Content-Type": "application/json" }).end("{"),
})) {
  test(`what is not Roost's answer is none: ${what}`, async () => {
    const url = await gateway((_, response) => void answer(response));
    await assert.rejects(connect(url).discover(), Foreign);
    await assert.rejects(connect(url).register({ type: "game", group: "kr-1" }), OutcomeUnknown, "it may have been done");
  });
}

test("the next gateway is asked where nothing can be done twice", async () => {
  const asked: string[] = [];
  const good = await gateway((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    json(response, request.method === "POST" ? 201 : 200, request.method === "POST" ? { instanceId: "i", life: "1", ttlSeconds: 30, heartbeatIntervalMs: 10_000, proof: "" } : NOBODY);
  });
  const cut = await gateway(request => request.socket.destroy());
  const dead = await gateway(() => {});
  closing.pop()!();
  assert.deepEqual(await connect(`${cut},${good}`).discover(), []);
  await assert.rejects(connect(`${cut},${good}`).register({ type: "game", group: "kr-1" }), OutcomeUnknown);
  assert.equal((await connect(`${dead},${good}`).register({ type: "game", group: "kr-1" })).life, "1");
  assert.deepEqual(asked, ["GET /sd/v1/instances?type=*&group=*", "POST /sd/v1/instances"]);
  await assert.rejects(connect(dead).discover(), StoreUnavailable);
});

test("a comma list of gateways", () => {
  assert.deepEqual(gatewayUrls("http://a:1, b:2/,http://a:1"), ["http://a:1", "http://b:2"]);
  for (const bad of ["", " , ", "redis://a", "nonsense"]) assert.throws(() => gatewayUrls(bad), InvalidInput);
});

test("a lease needs room for two beats", () => {
  assert.throws(() => connect("http://a", { ttlSeconds: 10, heartbeatIntervalMs: 9000 }), /at least two beats/);
});

test("events arrive in any parts", () => {
  const text = ": roost\n\nid: 1-2\nevent: added\ndata: {\"a\":1}\n\nid: 2-3\r\ndata: x\r\n\n";
  for (const size of [1, 3, 1000]) {
    const reader = new EventReader();
    const found = Array.from({ length: Math.ceil(text.length / size) }, (_, n) => reader.take(text.slice(n * size, (n + 1) * size))).flat();
    assert.deepEqual(found, [{ id: "1-2", name: "added", data: '{"a":1}' }, { id: "2-3", name: "", data: "x" }]);
  }
});

// -- the heart

class Script implements Registrar {
  beats: Beat[] = [];
  registered = 0;
  answer: (beat: Beat) => BeatReply = () => ({ status: "OK", proof: "" });
  onRegister: () => Registered = () => ({ instanceId: "i-1", life: String(7 + this.registered), ttlSeconds: 3, heartbeatIntervalMs: 20, proof: "p" });

  async heartbeat(_id: string, beat: Beat): Promise<BeatReply> {
    this.beats.push(beat);
    return this.answer(beat);
  }

  async register(): Promise<Registered> {
    this.registered++;
    return this.onRegister();
  }
}

async function beating(script: Script, work: (me: Registration, directives: string[]) => Promise<void>): Promise<void> {
  const me = new Registration({ type: "game", group: "kr-1" }, { instanceId: "i-1", life: "7", ttlSeconds: 3, heartbeatIntervalMs: 20, proof: "p" });
  const directives: string[] = [];
  me.onDirective = directive => directives.push(directive);
  const heart = new Heart(script, me);
  try {
    await work(me, directives);
  } finally {
    await heart.stop();
  }
}

test("g4: what the store forgot registers itself again under a new life", () => beating(new Script(), async me => {
  await eventually(() => me.beatsTaken > 1);
}).then(() => {
  const script = new Script();
  script.answer = beat => {
    if (beat.life === "7") throw new UnknownInstance("forgotten");
    return { status: "OK", proof: "" };
  };
  return beating(script, async me => {
    await eventually(() => me.beatsTaken > 3);
    assert.deepEqual([me.life, script.registered, [...me.proofs.keys()]], ["8", 1, ["7", "8"]]);
  });
}));

for (const [error, directive] of [[new RemovedInstance("by an operator"), "removed"], [new FencedInstance("by another"), "fenced"]] as const) {
  test(`g4: one that was ${directive} beats no more, and is told`, async () => {
    const script = new Script();
    script.answer = () => {
      throw error;
    };
    await beating(script, async (me, directives) => {
      await eventually(() => me.ended);
      const { length } = script.beats;
      await new Promise(resolve => setTimeout(resolve, 100));
      assert.deepEqual([directives, script.beats.length, script.registered], [[directive], length, 0]);
    });
  });
}

test("one that was removed while it was forgotten does not come back", async () => {
  const script = new Script();
  script.answer = () => {
    throw new UnknownInstance("forgotten");
  };
  script.onRegister = () => {
    throw new RemovedInstance("by an operator");
  };
  await beating(script, async (me, directives) => {
    await eventually(() => me.ended === "removed");
    assert.deepEqual([directives, script.registered], [["removed"], 1]);
  });
});

test("a drain is told once, and again after it was lifted", async () => {
  const script = new Script();
  await beating(script, async (me, directives) => {
    script.answer = () => ({ status: "DRAIN", proof: "" });
    await eventually(() => me.draining);
    const { beatsTaken } = me;
    await eventually(() => me.beatsTaken > beatsTaken + 2);
    assert.deepEqual(directives, ["drain"]);
    script.answer = () => ({ status: "OK", proof: "" });
    await eventually(() => !me.draining);
    script.answer = () => ({ status: "DRAIN", proof: "" });
    await eventually(() => directives.length === 2);
  });
});

test("a beat shows the proof of its life and takes a new one, for the key that signed it may be dropped", async () => {
  const script = new Script();
  script.answer = beat => ({ status: "OK", proof: beat.proof === "p" ? "by the new key" : "" });
  await beating(script, async me => {
    await eventually(() => me.beatsTaken > 2);
    assert.equal(me.proofs.get("7"), "by the new key");
    assert.deepEqual(script.beats.slice(0, 3).map(beat => beat.proof), ["p", "by the new key", "by the new key"]);
  });
});

test("the heart outlives whatever fails, and says what it was", async () => {
  const script = new Script();
  await beating(script, async me => {
    for (const error of [new StoreUnavailable("away"), new TypeError("nonsense")]) {
      script.answer = () => {
        throw error;
      };
      await eventually(() => me.lastError === error.message);
    }
    script.answer = () => ({ status: "OK", proof: "" });
    await eventually(() => me.lastError === "" && me.beatsTaken > 0);
    assert.ok(me.beatsFailed >= 2);
  });
});

test("a value that cannot be sent does not stop the beat", async () => {
  const script = new Script();
  await beating(script, async me => {
    me.load = 5;
    await eventually(() => script.beats.at(-1)?.load === 5);
    me.load = Number.NaN;
    me.performance = { big: 2n ** 60n };
    await eventually(() => me.lastError.includes("load was left out") && me.lastError.includes("performance was left out"));
    assert.deepEqual([script.beats.at(-1)?.load, script.beats.at(-1)?.performance], [5, {}]);
  });
});

test("what the other side refuses is left out, and the lease renewed", async () => {
  const script = new Script();
  script.answer = beat => {
    if (beat.performance) throw new InvalidInput("too large");
    return { status: "OK", proof: "" };
  };
  await beating(script, async me => {
    await eventually(() => me.beatsTaken > 1);
    assert.match(me.lastError, /too large/);
  });
});

test("a new status does not wait for the next beat, and one that hangs is not registered again", async () => {
  const script = new Script();
  const me = new Registration({ type: "game", group: "kr-1", ttlSeconds: 1 }, { instanceId: "i-1", life: "7", ttlSeconds: 1, heartbeatIntervalMs: 60_000, proof: "" });
  const heart = new Heart(script, me);
  me.status = "draining";
  await eventually(() => script.beats.length === 1, "a beat long before its time", 2000);
  assert.equal(script.beats[0]!.status, "draining");
  me.hang();
  script.answer = () => {
    throw new UnknownInstance("forgotten");
  };
  await new Promise(resolve => setTimeout(resolve, 550));
  me.status = "ready";
  await eventually(() => script.beats.length > 1);
  assert.ok(script.beats.at(-1)!.tickAgeMs! >= 500);
  assert.equal(script.registered, 0);
  await heart.stop();
});

test("the server id of a predecessor is waited for as long as leases of many that died together are prolonged", async () => {
  let tries = 0;
  const url = await gateway((request, response) => {
    if (request.method === "DELETE") return void response.writeHead(204).end();
    if (++tries < 4) return json(response, 409, refused("SERVER_ID_TAKEN"));
    json(response, 201, { instanceId: "i", life: "1", ttlSeconds: 10, heartbeatIntervalMs: 3000, proof: "" });
  });
  const now = performance.now.bind(performance);
  const clock = mock.method(performance, "now", () => now() + 21_000 * tries);  // each attempt takes so long
  try {
    assert.equal(await connect(url, { ttlSeconds: 10 }).registered({ type: "game", group: "kr-1", serverId: "501" }, async me => me.life), "1");
  } finally {
    clock.mock.restore();
  }
});

test("who ends while the store blinks is removed all the same", async () => {
  let removals = 0;
  const url = await gateway((request, response) => {
    if (request.method === "DELETE" && ++removals < 3) return json(response, 503, refused("STORE_AWAY"));
    if (request.method === "DELETE") return void response.writeHead(204).end();
    json(response, 201, { instanceId: "i", life: "1", ttlSeconds: 10, heartbeatIntervalMs: 3000, proof: "" });
  });
  await connect(url).registered({ type: "game", group: "kr-1" }, async () => {});
  assert.equal(removals, 3);
});

test("one that hung is heard of soon after it goes on: its lease has not long to run", async () => {
  const script = new Script();
  const me = new Registration({ type: "game", group: "kr-1", ttlSeconds: 1 }, { instanceId: "i-1", life: "7", ttlSeconds: 1, heartbeatIntervalMs: 2000, proof: "" });
  me.hang();
  await new Promise(resolve => setTimeout(resolve, 550));
  const heart = new Heart(script, me);
  me.status = "draining";  // a beat at once
  await eventually(() => script.beats.length === 1);
  me.resume();
  await eventually(() => script.beats.length === 2, "the next beat", 1000);
  await heart.stop();
});

// -- lists and watches

const instance = (id: string, life = "1") => ({ instanceId: id, life, serverId: `s-${id}` }) as Instance;
const listed = (ids: string, revision: number) => ({ instances: [...ids].map(id => instance(id)), revision });

test("g3: a wiped store is believed only ten seconds later", () => {
  const guard = new ListGuard();
  const before = listed("abcd", 10);
  assert.equal(guard.believe(before, 0), before);
  assert.equal(guard.believe(listed("", 1), 1000), before);
  assert.equal(guard.believe(listed("", 1), 10_999), before);
  assert.deepEqual(guard.believe(listed("", 1), 11_000).instances, []);
});

test("a list that the revisions account for is believed at once", () => {
  const guard = new ListGuard();
  guard.believe(listed("abcd", 10), 0);
  assert.equal(guard.believe(listed("a", 13), 1).instances.length, 1);
  assert.equal(guard.believe(listed("", 13), 2).instances.length, 1, "one is missing, and nothing happened");
});

test("callbacks hear of each life once, also across snapshots", () => {
  const told: string[] = [];
  const differences = new Differences(one => told.push(`+${one.serverId}/${one.life}`), id => told.push(`-${id}`));
  const say = (change: Partial<Change>) => differences.tell(change as Change);
  say({ event: "snapshot", instances: [instance("a"), instance("b")] });
  say({ event: "changed", instance: instance("a") });
  say({ event: "added", instance: instance("a", "2") });
  say({ event: "snapshot", instances: [instance("a", "2")] });
  say({ event: "removed", instanceId: "a" });
  say({ event: "removed", instanceId: "a" });
  assert.deepEqual(told, ["+s-a/1", "+s-b/1", "+s-a/2", "-s-b", "-s-a"]);
});

/** A gateway whose streams are written by the test; one that is busy answers 429. */
async function streams(parts: (string[] | "busy")[]): Promise<{ url: string; marks: (string | undefined)[] }> {
  const marks: (string | undefined)[] = [];
  const url = await gateway((request, response) => {
    const part = parts[marks.length];
    marks.push(request.headers["last-event-id"] as string | undefined);
    if (!part) return json(response, 403, refused("FORBIDDEN"));
    if (part === "busy") return json(response, 429, refused("TOO_MANY_REQUESTS"));
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const data of part) response.write(data);
    if (part.length % 2) response.end();
    else response.write(": hello\n\n", () => setTimeout(() => request.socket.destroy(), 50));
  });
  return { url, marks };
}

const event = (change: Partial<Change>) => `id: x\nevent: ${change.event}\ndata: ${JSON.stringify(change)}\n\n`;
const snapshot = event({ event: "snapshot", revision: 4, revisionAt: "40", instances: [instance("a")] });
const added = event({ event: "added", revision: 5, revisionAt: "50", instance: instance("b") });

test("g1: a watch that was cut off goes on after the last change, and ends with what repeating cannot cure", async () => {
  const { url, marks } = await streams([[snapshot], "busy", ["data: {nonsense\n\n", added]]);
  const seen: string[] = [];
  const client = connect(url);
  await assert.rejects(async () => {
    for await (const change of client.watch()) seen.push(`${change.event} ${change.revision}`);
  }, { code: "FORBIDDEN" });
  assert.deepEqual(seen, ["snapshot 4", "added 5"]);
  assert.deepEqual(marks, [undefined, "4-40", "4-40", "5-50"]);
});

test("a callback outlives a refusal, as of a token that was missing for a while, and hears of nobody twice", async () => {
  let asked = 0;
  const url = await gateway((_, response) => {
    if (++asked % 2) return json(response, 401, refused("UNAUTHENTICATED"));
    response.writeHead(200, { "Content-Type": "text/event-stream" }).end(asked === 2 ? snapshot : snapshot + added);
  });
  const errors = mock.method(console, "error", () => {});
  const seen: string[] = [];
  await using client = connect(url);
  client.onServerAdded(one => seen.push(one.serverId));
  await eventually(() => seen.length === 2);
  errors.mock.restore();
  assert.deepEqual(seen, ["s-a", "s-b"]);
  assert.match(String(errors.mock.calls[0]!.arguments[1]), /because/);
});

test("a watch ends when its signal or its client does", async () => {
  const { url } = await streams([[snapshot, ""], [snapshot, ""]]);
  const client = connect(url), stop = new AbortController();
  for await (const change of client.watch({}, stop.signal)) {
    assert.equal(change.event, "snapshot");
    stop.abort();
  }
  for await (const _ of client.watch()) void client.close();
});

test("a watch whose request nobody holds any more still ends, and so does its connection", async () => {
  let open = 0;
  const url = await gateway((_, response) => {
    open++;
    response.on("close", () => open--);
    response.writeHead(200, { "Content-Type": "text/event-stream" }).write(snapshot);
  });
  const client = connect(url), stop = new AbortController();
  let seen = 0;
  const watching = (async () => {
    for await (const _ of client.watch({}, stop.signal)) seen++;
  })();
  await eventually(() => seen === 1);
  await collectGarbage();
  stop.abort();
  await watching;
  await eventually(() => open === 0, "the connection to be closed");
  for await (const _ of client.watch()) {
    await collectGarbage();
    break;
  }
  await eventually(() => open === 0, "the connection of who stopped listening to be closed");
});

test("a call ends in time also when its body never does", async () => {
  const url = await gateway((_, response) => void response.writeHead(200, { "Content-Type": "application/json" }).write("{"));
  const asked = connect(url).session.ask((api, signal) => api.GET("/sd/v1/instances", { signal }), { timeoutMs: 300 });
  const refusal = assert.rejects(asked, OutcomeUnknown);
  await collectGarbage();
  await refusal;
});
