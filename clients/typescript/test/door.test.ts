/** A game server's door, on a waiting room that loses answers, delays them and hands them out in any order. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import type { ConsumeInput, ConsumeReply, ReleaseInput, ReportInput, ReportReply } from "../src/api.js";
import { Door, type Admission, type DoorOptions } from "../src/door.js";
import { Forbidden, OutcomeUnknown, ServerFull, ServerNotReported, StoreUnavailable, TicketRefused, TicketUsed, TooManyRequests, type RoostError } from "../src/errors.js";
import { Leaves } from "../src/guests.js";
import { Registration } from "../src/heart.js";
import { encode } from "../src/msgpack.js";
import { ticketUser } from "../src/passes.js";
import { deferred, type Deferred } from "../src/timing.js";
import { settled } from "./support.js";

/** As a gateway signs it, but for the signature, which nobody here checks. */
function ticketOf(user: string): string {
  const payload = Buffer.concat([Buffer.from("T"), encode(["main", user, `tid-${user}`, 1])]).toString("base64url");
  return `v1.k.${payload}.mac`;
}

/** Keeps the truth, and checks every report against it. */
class Room implements Admission {
  readonly inside = new Map<string, { connection: string; number: number; life: string }>();
  readonly used = new Set<string>();
  /** Let in, and the door does not know it yet. */
  readonly coming = new Set<string>();
  door: Door | undefined;
  readonly consumed = new Map<string, number>();
  readonly released: string[] = [];
  readonly reports: ReportInput[] = [];
  readonly held = new Map<string, Deferred<void>>();
  asking: { userId: string; connection: string }[] = [];
  isKnown = true;
  lose = 0;
  refuse: RoostError | undefined;
  refuseRelease: (() => RoostError) | undefined;
  away = false;
  holds = false;
  consumes = 0;

  async consume(given: ConsumeInput): Promise<ConsumeReply> {
    this.consumes++;
    if (this.away) throw new StoreUnavailable("away");
    if (this.refuse) throw this.refuse;
    if (!this.reports.some(one => one.life === given.life)) throw new ServerNotReported("report first");
    const user = ticketUser(given.ticketId);
    const there = this.inside.get(user);
    if (this.used.has(user) && there?.connection !== given.connection) throw new TicketUsed("used");
    const number = there?.number ?? this.of(given.life) + 1;
    if (!there) {
      this.consumed.set(given.life, number);
      this.inside.set(user, { connection: given.connection, number, life: given.life });
      this.used.add(user);
    }
    this.coming.add(user);
    if (this.holds) await this.gate(user).promise;
    this.coming.delete(user);
    if (this.lose-- > 0) throw new OutcomeUnknown("lost");
    return { userId: user, nickname: user, region: "", number, leftMs: 1000, traceparent: "" };
  }

  async release(_world: string, _server: string, given: ReleaseInput): Promise<{ heldMs: number }> {
    if (this.away) throw new StoreUnavailable("away");
    if (this.refuseRelease) throw this.refuseRelease();
    if (this.inside.get(given.userId)?.connection === given.connection) this.inside.delete(given.userId);
    this.released.push(`${given.userId} ${given.how}`);
    return { heldMs: 0 };
  }

  async report(_world: string, _server: string, given: ReportInput): Promise<ReportReply> {
    if (this.away) throw new StoreUnavailable("away");
    this.reports.push(given);
    const here = this.coming.size + (this.door?.guests.size ?? 0);
    assert.ok(this.most >= here, `the room counts ${this.most}, ${here} are here or on their way in`);
    const reply = { consumed: this.of(given.life), known: this.isKnown, asking: this.asking };
    if (this.heldReport) await this.heldReport.promise;
    return reply;
  }

  heldReport: Deferred<void> | undefined;

  gate(user: string): Deferred<void> {
    if (!this.held.has(user)) this.held.set(user, deferred<void>());
    return this.held.get(user)!;
  }

  of(life: string): number {
    return this.consumed.get(life) ?? 0;
  }

  get last(): ReportInput {
    return this.reports.at(-1)!;
  }

  /** The most people that may be on the server, by its last report. */
  get most(): number {
    return this.last.users + this.of(this.last.life) - this.last.counted;
  }
}

function registration(capacity = 10): Registration {
  const given = { type: "game", group: "kr-1", serverId: "501", capacity };
  return new Registration(given, { instanceId: "i-1", life: "7", ttlSeconds: 30, heartbeatIntervalMs: 10_000, proof: "p-7" });
}

function doorTo(room: Room, me = registration(), options: DoorOptions = {}): Door {
  return (room.door = new Door(room, me, options));
}

/** Let time pass until it is so. */
async function until(condition: () => boolean): Promise<void> {
  for (let n = 0; n < 400 && !condition(); n++) {
    await settled();
    mock.timers.tick(50);
  }
  assert.ok(condition());
}

/** A promise whose pauses pass. */
async function done<Value>(promise: Promise<Value>): Promise<Value> {
  let isOver = false;
  const end = () => (isOver = true);
  promise.then(end, end);
  await until(() => isOver);
  return promise;
}

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] }));
afterEach(() => mock.timers.reset());

test("a guest is counted from the consume on", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  const guest = await door.consume(ticketOf("ann"));
  assert.deepEqual([guest.userId, guest.life, room.most], ["ann", "7", 1]);
  await door.report();
  assert.deepEqual([room.last.users, room.last.counted, room.last.capacity, room.last.proof], [1, 1, 10, "p-7"]);
  assert.ok(room.last.number > room.reports.at(-2)!.number);
  await door.leave(guest);
  await door.report();
  assert.deepEqual([room.released, room.last.users, room.most], [["ann clean"], 0, 0]);
});

test("a server that has not reported does so first", async () => {
  const room = new Room();
  await done(doorTo(room).consume(ticketOf("ann")));
  assert.equal(room.reports.length, 1);
});

test("a lost answer is asked for again", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.lose = 3;
  await done(door.consume(ticketOf("ann")));
  await door.report();
  assert.deepEqual([room.of("7"), room.last.counted, room.most], [1, 1, 1]);
});

test("k waits for every answer before it", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.holds = true;
  const entering = new Map(["ann", "bob", "cid"].map(user => [user, door.consume(ticketOf(user))]));
  await settled();
  assert.equal(room.of("7"), 3);
  for (const [user, counted] of [["cid", 0], ["bob", 0], ["ann", 3]] as const) {
    room.gate(user).resolve();
    await entering.get(user);
    await door.report();
    assert.deepEqual([room.last.counted, room.most], [counted, counted ? 3 : 3 + door.guests.size]);
  }
});

test("who nobody waits for any more goes back to the line", async () => {
  const room = new Room(), door = doorTo(room, undefined, { reportIntervalMs: 100 });
  await door.open();
  room.lose = 4;
  await assert.rejects(done(door.consume(ticketOf("ann"))), OutcomeUnknown);
  await until(() => room.released.includes("ann failed"));
  await until(() => room.last.counted === 1);
  assert.deepEqual([room.most, room.inside.size, door.settling], [0, 0, 0]);
  await done(door.close());
});

test("g11: a retry that came in is not undone by what became of the first attempt", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.lose = 4;
  await assert.rejects(done(door.consume(ticketOf("ann"), "c1")), OutcomeUnknown);
  const guest = await door.consume(ticketOf("ann"), "c1");
  await until(() => !door.settling);
  await door.tellLeaves();
  await door.report();
  assert.deepEqual([room.released, [...door.guests.values()], room.most], [[], [guest], 1]);
});

test("a leave is not made another by what became of the first attempt", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.lose = 4;
  await assert.rejects(done(door.consume(ticketOf("ann"), "c1")), OutcomeUnknown);
  const guest = await door.consume(ticketOf("ann"), "c1");
  room.refuseRelease = () => new TooManyRequests("one moment");
  await door.leave(guest, "dropped");
  await until(() => !door.settling);
  room.refuseRelease = undefined;
  await door.tellLeaves();
  assert.deepEqual(room.released, ["ann dropped"]);
});

test("g11: a retry that is under way is not undone either", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.lose = 4;
  await assert.rejects(done(door.consume(ticketOf("ann"), "c1")), OutcomeUnknown);
  room.holds = true;
  await until(() => room.consumes === 5);
  const again = door.consume(ticketOf("ann"), "c1");
  await settled();
  room.gate("ann").resolve();
  const guest = await again;
  await until(() => !door.settling);
  await door.tellLeaves();
  assert.deepEqual([room.released, [...door.guests.values()]], [[], [guest]]);
});

test("a retry that is refused for the moment leaves nobody inside", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.lose = 4;
  await assert.rejects(done(door.consume(ticketOf("ann"), "c1")), OutcomeUnknown);
  const answer = deferred<void>(), refusal = deferred<void>();
  const consume = room.consume.bind(room), answers = [answer, refusal];
  room.consume = async given => {
    const mine = answers.shift();
    await mine?.promise;
    if (mine === refusal) throw new TooManyRequests("one moment");
    return consume(given);
  };
  await until(() => answers.length === 1);
  const again = door.consume(ticketOf("ann"), "c1");
  answer.resolve();
  await settled();
  refusal.resolve();
  await assert.rejects(again, TooManyRequests);
  await until(() => !door.settling);
  await door.tellLeaves();
  assert.deepEqual([room.released, room.inside.size], [["ann failed"], 0]);
});

test("who is being handed back does not come in by a retry", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.lose = 4;
  await assert.rejects(done(door.consume(ticketOf("ann"), "c1")), OutcomeUnknown);
  await until(() => !door.settling);
  await assert.rejects(door.consume(ticketOf("ann"), "c1"), TicketRefused);
  await door.tellLeaves();
  assert.deepEqual([room.released, door.guests.size], [["ann failed"], 0]);
});

test("a consume that was never done is settled by its refusal", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.away = true;
  await assert.rejects(done(door.consume(ticketOf("ann"))), StoreUnavailable);
  room.away = false;
  room.refuse = new TicketRefused("expired");
  assert.equal(door.settling, 1);
  await until(() => !door.settling);
  assert.deepEqual([room.released, door.guests.size], [[], 0]);
});

for (const refusal of [new TicketRefused("no"), new ServerFull("full")]) {
  test(`a refusal is passed on at once: ${refusal.code}`, async () => {
    const room = new Room(), door = doorTo(room);
    await door.report();
    room.refuse = refusal;
    await assert.rejects(door.consume(ticketOf("ann")), refusal);
    assert.deepEqual([room.consumes, door.guests.size], [1, 0]);
  });
}

test("one person has one connection", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  const guest = await door.consume(ticketOf("ann"));
  await assert.rejects(door.consume(ticketOf("ann"), "another"), { code: "ALREADY_CONNECTED" });
  assert.equal(await door.consume(ticketOf("ann"), guest.connection), guest);
});

test("g11: whom a forgetful store lets in again is refused while they are here", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  const guest = await door.consume(ticketOf("ann"));
  room.used.clear();
  room.inside.clear();
  await assert.rejects(door.consume(ticketOf("ann"), "another"), { code: "ALREADY_CONNECTED" });
  assert.equal(door.guests.get("ann"), guest);
});

test("g10: a forgetful store lets in no more than the server takes", async () => {
  const room = new Room(), door = doorTo(room, undefined, { capacity: 1 });
  await door.report();
  await door.consume(ticketOf("ann"));
  await assert.rejects(door.consume(ticketOf("cid")), ServerFull);
  await door.tellLeaves();
  assert.deepEqual([room.released, [...door.guests.keys()]], [["cid failed"], ["ann"]]);
});

test("who asks to come in and is not here has left", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  const here = await door.consume(ticketOf("ann"));
  room.holds = true;
  const coming = door.consume(ticketOf("bob"), "b-1");
  await settled();
  room.asking = [{ userId: "ann", connection: here.connection }, { userId: "bob", connection: "b-1" }, { userId: "cid", connection: "c-1" }];
  await door.report();
  await door.tellLeaves();
  assert.deepEqual(room.released, ["cid dropped"]);
  room.gate("bob").resolve();
  assert.equal((await coming).connection, "b-1");
});

test("g12: a refusal of the moment loses no leave", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  const ann = await door.consume(ticketOf("ann"));
  room.refuseRelease = () => new TooManyRequests("one moment");
  await door.leave(ann, "dropped");
  room.refuseRelease = undefined;
  await door.tellLeaves();
  assert.deepEqual(room.released, ["ann dropped"]);
});

for (const [life, kept] of [["1", 32], ["2", 0]] as const) {
  test(`leaves that stay forbidden in life ${life} hold up no others, and ${kept} are tried again`, async () => {
    const told: string[] = [];
    let asked = 0;
    const leaves = new Leaves(async guest => {
      asked++;
      if (guest.life === "1") throw new Forbidden("nothing proves it");
      told.push(guest.userId);
    }, () => life);
    const guest = { nickname: "", region: "", traceparent: "" };
    for (let n = 0; n < 32; n++) leaves.add({ ...guest, userId: `u${n}`, connection: `c${n}`, life: "1" }, "dropped");
    leaves.add({ ...guest, userId: "ann", connection: "c", life: "2" }, "dropped");
    await leaves.tell();
    assert.deepEqual([told, asked, leaves.dropped], [["ann"], 33, kept]);
    await leaves.tell();
    assert.equal(asked, 33 + kept);
  });
}

test("a leave is told later if not now, and who dropped is counted until then", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  const [ann, bob] = [await door.consume(ticketOf("ann")), await door.consume(ticketOf("bob"))];
  room.away = true;
  await door.leave(ann, "dropped");
  await door.leave(bob);
  room.away = false;
  await door.report();
  assert.equal(room.last.users, 1);
  await door.tellLeaves();
  await door.report();
  assert.deepEqual([room.released.sort(), room.last.users], [["ann dropped", "bob clean"], 0]);
});

test("who dropped out of a former life is not counted in this one", async () => {
  const room = new Room(), me = registration(), door = doorTo(room, me);
  await door.report();
  const ann = await door.consume(ticketOf("ann"));
  await door.consume(ticketOf("bob"));
  me.begin({ instanceId: "i-1", life: "8", ttlSeconds: 30, heartbeatIntervalMs: 10_000, proof: "p-8" });
  await door.report();
  room.refuseRelease = () => new TooManyRequests("one moment");
  await door.leave(ann, "dropped");
  await door.report();
  assert.deepEqual([room.last.life, room.last.users], ["8", 1]);
});

test("a new life begins with everybody who is here", async () => {
  const room = new Room(), me = registration(), door = doorTo(room, me);
  await door.report();
  for (const user of ["ann", "bob"]) await door.consume(ticketOf(user));
  me.begin({ instanceId: "i-1", life: "8", ttlSeconds: 30, heartbeatIntervalMs: 10_000, proof: "p-8" });
  await door.report();
  assert.deepEqual([room.last.life, room.last.users, room.last.counted, room.last.proof], ["8", 2, 0, "p-8"]);
  await door.consume(ticketOf("cid"));
  await door.report();
  assert.deepEqual([room.last.counted, room.most], [1, 3]);
});

test("who was let into an earlier life is sent back", async () => {
  const room = new Room(), me = registration(), door = doorTo(room, me);
  await door.report();
  room.holds = true;
  const entering = door.consume(ticketOf("ann"));
  await settled();
  me.life = "8";
  room.gate("ann").resolve();
  await assert.rejects(entering, TicketRefused);
  await door.tellLeaves();
  assert.deepEqual([room.released, door.guests.size], [["ann failed"], 0]);
});

test("a door that drains, by its own will or an operator's, offers no room", async () => {
  const room = new Room(), me = registration(), door = doorTo(room, me);
  await door.report();
  await door.consume(ticketOf("ann"));
  door.drain = true;
  await door.report();
  assert.equal(room.last.capacity, 1);
  door.drain = false;
  me.draining = true;
  await door.report();
  assert.equal(room.last.capacity, 1);
});

test("a server without a capacity gets no door", () => {
  assert.throws(() => doorTo(new Room(), registration(0)), { code: "INVALID_INPUT" });
});

test("a number that the door never learned leaks no room", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.consumed.set("7", 6);
  await door.consume(ticketOf("ann"));
  await door.report();
  await door.report();
  assert.deepEqual([room.last.counted, room.most], [7, 1]);
});

test("nothing is passed over while a consume is under way or begins during the report", async () => {
  const room = new Room(), door = doorTo(room);
  await door.report();
  room.holds = true;
  room.heldReport = deferred<void>();
  const reporting = door.report();
  const entering = door.consume(ticketOf("ann"));
  await settled();
  room.heldReport.resolve();
  await reporting;
  room.heldReport = undefined;
  await door.report();
  assert.equal(room.last.counted, 0, "ann is in no table yet");
  room.gate("ann").resolve();
  await entering;
  await door.report();
  assert.deepEqual([room.last.counted, room.most], [1, 1]);
});

test("a late reply to a report of a former life counts for nothing", async () => {
  const room = new Room(), me = registration(), door = doorTo(room, me);
  await door.report();
  await door.consume(ticketOf("ann"));
  room.consumed.set("7", 9);
  const late = (room.heldReport = deferred<void>());
  const reporting = door.report();
  await settled();
  room.heldReport = undefined;
  me.life = "8";
  await door.report();
  late.resolve();
  await reporting;
  await door.report();
  assert.deepEqual([room.last.life, room.last.counted], ["8", 0]);
});

test("closing the door lets everybody go and takes its capacity back", async () => {
  const room = new Room(), door = doorTo(room);
  await door.open();
  for (const user of ["ann", "bob"]) await door.consume(ticketOf(user));
  await done(door.close());
  assert.deepEqual([room.released.sort(), room.last.capacity, room.last.users], [["ann dropped", "bob dropped"], 0, 0]);
});

/** Random numbers that are the same in every run (mulberry32). */
function seeded(seed: number): (below: number) => number {
  return below => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

test("g10: whatever gets lost or late, nobody is missed, and in the end the ledger is exact", async () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = seeded(seed), room = new Room(), door = doorTo(room, registration(1000));
    await door.report();
    room.holds = true;
    const entering: Promise<unknown>[] = [];
    for (let step = 0; step < 40; step++) {
      const what = random(5);
      if (what === 0) {
        room.lose = random(6);
        entering.push(door.consume(ticketOf(`u${step}`)).catch(() => {}));
      } else if (what === 1) [...room.held.values()][random(room.held.size || 1)]?.resolve();
      else if (what === 2 && door.guests.size) await door.leave([...door.guests.values()][random(door.guests.size)]!, random(2) ? "dropped" : "clean");
      else if (what === 3) await door.report();  // the room checks it
      else mock.timers.tick(random(300));
      for (let n = random(4); n > 0; n--) await Promise.resolve();
    }
    room.holds = false;
    room.lose = 0;
    for (const gate of room.held.values()) gate.resolve();
    await done(Promise.all(entering));
    await until(() => !door.settling);
    await door.tellLeaves();
    await door.report();
    await door.report();
    assert.deepEqual([room.most, door.guests.size], [room.inside.size, room.inside.size], `seed ${seed}`);
  }
});
