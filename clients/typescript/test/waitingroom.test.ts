/** A player's way through a waiting room whose answers the test writes, to game servers that hear or do not. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { PlaceReply } from "../src/api.js";
import type { WebSocketClass } from "../src/lines.js";
import { enter, type Place } from "../src/waitingroom.js";
import { settled } from "./support.js";

type Answer = Partial<PlaceReply> | Response;

const inside: Answer = { status: "ENTERED", nextPollMs: 30_000 };
const ticket = (ticketId: string, serverUrl = "ws://one/"): Answer => ({ status: "PROMOTED", ticketId, serverUrl, expiresInMs: 60_000, nextPollMs: 2000 });

/** A gateway that gives these answers to entries and questions, one after the other, the last one again and again. */
async function entered(...answers: (Answer | (() => Answer))[]): Promise<{ place: Place; asked: string[] }> {
  const asked: string[] = [];
  const fetch = async (request: Request): Promise<Response> => {
    asked.push(`${request.method} ${new URL(request.url).pathname}`);
    if (request.method === "DELETE") return new Response(null, { status: 204 });
    const next = answers.length > 1 ? answers.shift()! : answers[0]!;
    const answer = typeof next === "function" ? next() : next;
    return answer instanceof Response ? answer : Response.json({ receipt: "r", ticketId: "", serverUrl: "", expiresInMs: 0, ...answer });
  };
  return { place: await enter("http://gw", { userId: "ann" }, { push: false, fetch }), asked };
}

/** Game servers by what their URL says: `ws://silent` takes the connection and says nothing. */
const shown: string[] = [];
class Socket extends EventTarget {
  constructor(private readonly url: string) {
    super();
    if (!url.includes("silent")) queueMicrotask(() => this.dispatchEvent(new Event("open")));
  }

  send(said: string): void {
    shown.push(`${new URL(this.url).hostname} ${JSON.parse(said).ticketId}`);
  }

  close(): void {
    setImmediate(() => this.dispatchEvent(new Event("close")));
  }
}
const options = { WebSocket: Socket as unknown as WebSocketClass };

/** A promise whose pauses pass. */
async function done<Value>(promise: Promise<Value>): Promise<Value> {
  let isOver = false;
  const end = () => (isOver = true);
  promise.then(end, end);
  for (let n = 0; n < 400 && !isOver; n++) {
    await settled();
    mock.timers.tick(500);
  }
  assert.ok(isOver, "it never ends");
  return promise;
}

beforeEach(() => (shown.splice(0), mock.timers.enable({ apis: ["setTimeout"] })));
afterEach(() => mock.timers.reset());

test("after a lost connection the next ticket is asked for: the last one is used", async () => {
  const { place, asked } = await entered(ticket("t1"), inside, { ...inside, expiresInMs: 9000 }, ticket("t2"));
  await done(place.join(options));
  await done(place.join(options));
  assert.deepEqual(shown, ["one t1", "one t2"]);
  assert.deepEqual(asked, ["POST /api/queue/entry", "GET /api/queue/status", "POST /api/queue/entry", "POST /api/queue/entry"]);
});

test("a ticket that a server refused is shown to the server that the next answer names", async () => {
  const { place } = await entered(ticket("t1"), ticket("t1", "ws://two/"));
  await done(place.join(options));
  assert.equal((await done(place.ticket())).serverUrl, "ws://two/");
});

test("a server that takes the connection and says nothing costs only time", async () => {
  const { place } = await entered(ticket("t1", "ws://silent/"), ticket("t1", "ws://two/"));
  await done(place.join(options));
  assert.deepEqual(shown, ["two t1"]);
});

test("who gives up while the world is closed is not entered when it opens", async () => {
  let isOpen = false;
  const closed = () => Response.json({ error: { code: "WORLD_CLOSED", message: "closed" } }, { status: 503, headers: { "Retry-After": "5" } });
  const waiting: Answer = { status: "WAITING", rank: 1, nextPollMs: 2000 };
  const { place, asked } = await entered(waiting, { status: "NONE" }, () => isOpen ? waiting : closed());
  const turn = assert.rejects(done(place.ticket()), /given up/);
  for (let n = 0; n < 20; n++) await settled();
  await place.leave();
  const { length } = asked;
  isOpen = true;
  await turn;
  assert.deepEqual(asked.slice(length), []);
});

/** Somebody whose place is gone, and whose receipt does not enter them again: the login service is asked. */
async function signedAgain(signature: () => Promise<string>, answer: () => Promise<Response>): Promise<{ place: Place; asked: string[] }> {
  const asked: string[] = [];
  const refused = () => Response.json({ error: { code: "TOKEN_REFUSED", message: "whose receipt?" } }, { status: 401 });
  const reply = (status: string) => Response.json({ status, receipt: "r", ticketId: "", serverUrl: "", expiresInMs: 0, nextPollMs: 2000 });
  const fetch = async (request: Request): Promise<Response> => {
    asked.push(request.method);
    if (request.method === "DELETE") return new Response(null, { status: 204 });
    if (request.method === "GET") return reply("NONE");
    if (asked.length === 1) return reply("WAITING");
    return (await request.json()).signature === "fresh" ? answer() : refused();
  };
  let isFirst = true;
  const sign = async () => isFirst ? ((isFirst = false), "first") : signature();
  return { place: await enter("http://gw", { userId: "ann", signature: sign }, { push: false, fetch }), asked };
}

test("who gives up while a signature is fetched is not entered with it", async () => {
  let sign: (signature: string) => void = () => {};
  const { place, asked } = await signedAgain(() => new Promise(resolve => (sign = resolve)), async () => assert.fail("entered"));
  const turn = assert.rejects(done(place.ticket()), /given up/);
  while (!asked.includes("GET") || asked.at(-1) !== "POST") { await settled(); mock.timers.tick(500); }
  for (let n = 0; n < 20; n++) await settled();
  await place.leave();
  sign("fresh");
  await turn;
  assert.deepEqual(asked, ["POST", "GET", "POST", "DELETE"]);
});

test("who gives up while an entry is under way leaves behind it", async () => {
  let arrive: (answer: Response) => void = () => {};
  const { place, asked } = await signedAgain(async () => "fresh", () => new Promise(resolve => (arrive = resolve)));
  const turn = assert.rejects(done(place.ticket()), /given up/);
  while (asked.filter(method => method === "POST").length < 3) { await settled(); mock.timers.tick(500); }
  const left = place.leave();
  await settled();
  assert.ok(!asked.includes("DELETE"));
  arrive(Response.json({ status: "WAITING", receipt: "r2", ticketId: "", serverUrl: "", expiresInMs: 0, nextPollMs: 2000 }));
  await left;
  await turn;
  assert.deepEqual(asked.slice(-2), ["POST", "DELETE"]);
});

test("a question that took too long to arrive is asked again", async () => {
  const late = () => Response.json({ error: { code: "REQUEST_TIMEOUT", message: "too slow" } }, { status: 408 });
  const { place } = await entered({ status: "WAITING", rank: 1, nextPollMs: 2000 }, late, ticket("t1"));
  assert.equal((await done(place.ticket())).ticketId, "t1");
});
