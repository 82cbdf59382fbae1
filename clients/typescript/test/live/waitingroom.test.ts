/** People, a waiting room and game servers: this client on both sides of a running Roost. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerFull, TicketRefused, TokenRefused, enter, refusalOf, type EnterOptions, type PlaceReply } from "../../src/index.js";
import { eventually } from "../support.js";
import { client, roost } from "./roost.js";

const entering = (userId: string, world: string, options: EnterOptions = {}) =>
  enter(roost.url, { userId, world, nickname: userId.toUpperCase(), signature: async () => roost.entries[`${userId} ${world}`]! }, options);

test("from the line to the server and back: entry, push, ticket, consume, drop, return, leave", async () => {
  const receipts: string[] = [];
  const ann = await entering("ann", "door", { onReceipt: receipt => receipts.push(receipt) });
  assert.deepEqual([ann.now!.status, ann.now!.rank], ["WAITING", 1]);
  const bob = await entering("bob", "door", { push: false });
  assert.deepEqual([bob.now!.status, bob.now!.ahead], ["WAITING", 1]);

  await using one = client({ ttlSeconds: 6 });
  await one.registered({ type: "ts-door", group: "eu", serverId: "701", capacity: 1 }, async me => {
    const seen: PlaceReply[] = [];
    const waiting = (async () => {
      for await (const now of ann.changes()) seen.push(now);
    })();
    const door = await one.door(me, { world: "door", url: "ws://127.0.0.1:1/701", reportIntervalMs: 500 });
    await eventually(() => door.isKnown, "the waiting room to know the server");
    await waiting;
    assert.deepEqual([seen[0]!.status, seen.at(-1)!.status, seen.at(-1)!.serverUrl], ["WAITING", "PROMOTED", "ws://127.0.0.1:1/701"]);
    assert.ok(seen.every((now, n) => n === 0 || now.rank <= seen[n - 1]!.rank), "g12: the rank never rises");

    const guest = await door.consume(ann.now!.ticketId);
    assert.deepEqual([guest.userId, guest.nickname, door.guests.size], ["ann", "ANN", 1]);
    assert.equal(await door.consume(ann.now!.ticketId, guest.connection), guest, "the same connection, the same answer");
    await assert.rejects(door.consume(ann.now!.ticketId), { code: "ALREADY_CONNECTED" });
    assert.equal((await ann.status()).status, "ENTERED");

    await door.leave(guest, "dropped");
    const back = await ann.ticket();
    assert.notEqual(back.ticketId, "");
    const again = await door.consume(back.ticketId);
    await door.leave(again);
    await assert.rejects(door.consume(back.ticketId), TicketRefused);

    const { ticketId } = await bob.ticket();  // by asking
    await bob.leave();
    assert.equal((await bob.status()).status, "NONE");
    await assert.rejects(door.consume(ticketId), { status: 401 });
    await door.close();
  });
  assert.ok(receipts.length >= 2);
  assert.equal(ann.receipt, receipts.at(-1));
});

test("without a proof nobody learns anything, and a receipt alone leads back to the place", async () => {
  const eve = await entering("eve", "shut");
  const stranger = await entering("eve", "shut", { receipt: "v1.k1.forged.mac" }).catch(error => error);
  assert.equal(stranger.now?.status, "WAITING", "the signature still counts");
  const later = await enter(roost.url, { userId: "eve", world: "shut" }, { receipt: eve.receipt });
  assert.deepEqual([later.now!.status, later.now!.rank], ["WAITING", 1]);
  await assert.rejects(enter(roost.url, { userId: "eve", world: "shut" }), TokenRefused);
  await assert.rejects(entering("eve", "no-such-world"), { code: "UNKNOWN_WORLD" });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 100);
  await assert.rejects(later.ticket(stop.signal), { name: "AbortError" });
  await later.leave();
  await assert.rejects(later.ticket(), /given up/);
});

test("a WebSocket to the reference game server takes the ticket as its first message", async () => {
  const cid = await entering("cid", "main");
  const socket = await cid.join();
  const ticket = cid.now!.ticketId;
  await eventually(async () => (await cid.status()).status === "ENTERED", "to be inside");
  const heard = new Promise<string>(resolve => (socket.onmessage = event => resolve(String(event.data))));
  socket.send("hello");
  assert.match(await heard, /hello/);

  const second = new WebSocket(`${cid.now!.serverUrl || socket.url}`);
  second.onopen = () => second.send(JSON.stringify({ ticketId: ticket }));
  const refused = await new Promise<{ code: number; reason: string }>(resolve => (second.onclose = resolve));
  assert.equal(refusalOf(refused)?.code, "ALREADY_CONNECTED");
  assert.equal(refusalOf({ code: 4409, reason: "SERVER_FULL" }) instanceof ServerFull, true);
  assert.equal(refusalOf({ code: 1000, reason: "" }), undefined);
  socket.close();
});
