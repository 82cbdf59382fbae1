/** The golden vectors of docs/: what is computed here is what every other language computes. */

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { FrameReader, PUSH, REPLY, encodeFrame, frame, type Frame } from "../src/frames.js";
import { ProtocolError } from "../src/frames.js";
import * as lanes from "../src/lanes.js";
import { decode, encode } from "../src/msgpack.js";
import { hex, repositoryFile, unhex } from "./support.js";

type Told = Record<"flags" | "service" | "method" | "code" | "budgetMs", number> & Record<"request" | "epoch" | "payload", string>
  & Record<"sequence" | "oldest" | "traceparent", string | null>;
interface Vector { name: string; hex: string; frame: Told }

const wire = JSON.parse(repositoryFile("docs/protocol-vectors.json"));
const lane = JSON.parse(repositoryFile("docs/lane-vectors.json"));

function frameOf(told: Told): Frame {
  const { request, epoch, payload, sequence, oldest, traceparent, ...numbers } = told;
  return {
    ...numbers,
    request: BigInt(request),
    epoch: BigInt(epoch),
    payload: unhex(payload),
    ...(sequence === null ? {} : { sequence: BigInt(sequence) }),
    ...(oldest === null ? {} : { oldest: BigInt(oldest) }),
    ...(traceparent === null ? {} : { traceparent: unhex(traceparent) }),
  };
}

test("every frame is encoded and decoded as in the vectors", () => {
  assert.ok(wire.frames.length >= 13);
  for (const { name, hex: bytes, frame: told } of wire.frames as Vector[]) {
    assert.equal(hex(encodeFrame(frameOf(told))), bytes, name);
    assert.deepEqual(new FrameReader().take(unhex(bytes)), [frameOf(told)], name);
  }
  for (const { name, hex: bytes, frame: told } of wire.decodeOnly as Vector[]) {
    assert.deepEqual(new FrameReader().take(unhex(bytes)), [frameOf(told)], name);
  }
});

test("frames that arrive byte by byte, or all at once, are the same frames", () => {
  const all = (wire.frames as Vector[]).map(one => one.hex).join("");
  const expected = (wire.frames as Vector[]).map(one => frameOf(one.frame));
  assert.deepEqual(new FrameReader().take(unhex(all)), expected);
  const reader = new FrameReader();
  assert.deepEqual([...unhex(all)].flatMap(byte => reader.take(Uint8Array.of(byte))), expected);
});

/** What a server judges of requests after the handshake: their form by the reader, their numbers here. */
function serve(bytes: Uint8Array): string {
  let last = 0n;
  try {
    for (const { flags, request } of new FrameReader(wire.maxFrameBytes).take(bytes)) {
      if (flags & (REPLY | PUSH) || request <= last) return "BAD_REQUEST";
      last = request;
    }
  } catch (error) {
    assert.ok(error instanceof ProtocolError);
    return error.code;
  }
  return "taken";
}

test("what a server must refuse is refused with the code of its farewell", () => {
  assert.ok(wire.refused.length >= 11);
  for (const { name, hex: bytes, code } of wire.refused) assert.equal(serve(unhex(bytes)), code, name);
  assert.equal(serve(unhex(wire.frames[0].hex)), "taken");
});

test("a whole handshake is that of the vectors", () => {
  const { secret, client, server, helloPayload, challengePayload, clientProof, serverProof, frames } = wire.handshake;
  const said = ({ role, nonce, version, maxFrameBytes, maxInFlight }: typeof client) =>
    encode({ role, nonce: unhex(nonce), version, maxFrameBytes, maxInFlight });
  const u32 = (n: number) => new Uint8Array(new Uint32Array([n]).buffer);
  const hello = said(client), challenge = said(server);
  assert.equal(hex(hello), helloPayload);
  assert.equal(hex(challenge), challengePayload);
  const mac = (side: string) => createHmac("sha256", unhex(secret)).update(`roost-wire/1 ${side}\0`)
    .update(u32(hello.length)).update(hello).update(u32(challenge.length)).update(challenge).digest();
  assert.equal(hex(mac("client")), clientProof);
  assert.equal(hex(mac("server")), serverProof);
  const sent = [frame({ method: 1, payload: hello }), frame({ flags: REPLY, method: 1, payload: challenge }),
    frame({ method: 2, payload: mac("client") }), frame({ flags: REPLY, method: 2, payload: mac("server") })];
  assert.deepEqual(sent.map(one => hex(encodeFrame(one))), frames.map((one: Vector) => one.hex));
});

test("hashes, symbols, ring and places of lanes are those of the vectors", () => {
  for (const { text, fnv1a32, fmix32 } of lane.hashes) {
    assert.equal(lanes.fnv1a32(text), fnv1a32);
    assert.equal(lanes.fmix32(fnv1a32), fmix32);
  }
  for (const { typed, symbol } of lane.symbols) {
    if (symbol === null) assert.throws(() => lanes.symbolOf(typed), { code: "INVALID_ID" }, JSON.stringify(typed));
    else assert.equal(lanes.symbolOf(typed), symbol);
  }
  assert.deepEqual(lanes.RING_V1.map(point => point.join(":")), lane.ring);
  const told = ({ shard, lane }: lanes.Spot) => `${shard}:${lane}`;
  for (const { symbol, mixed, ring_v1 } of lane.places) {
    assert.deepEqual([told(lanes.spotOf(symbol)), told(lanes.ringSpotOf(symbol))], [mixed, ring_v1], symbol);
  }
});

test("order ids are packed and unpacked as in the vectors", () => {
  assert.equal(String(lanes.EPOCH_MS), lane.epochMs);
  for (const { id, ms, shard, lane: at, sequence } of lane.ids) {
    const parts = { ms: BigInt(ms), shard, lane: at, sequence };
    assert.deepEqual(lanes.orderIdParts(BigInt(id)), parts);
    assert.equal(String(lanes.orderId(parts)), id);
  }
});

test("the ids of a lane rise as in the vectors whatever the clock does", () => {
  const shard = 5, mostAhead = (5000n << 22n) | 4095n;
  let last = 0n;
  for (const { nowMs, lane: at, id, aheadMs } of lane.issued) {
    const first = lanes.orderId({ ms: BigInt(nowMs), shard, lane: at, sequence: 0 });
    let next = last + 1n <= first ? first : last + 1n;
    if (next !== first && !(next & 4095n)) next += (1n << 22n) - 4096n;
    if (next - first > mostAhead) assert.equal(Number((next - first) >> 22n), aheadMs);
    else assert.equal(String((last = next)), id);
  }
});

test("msgpack says everything that JSON says, and bytes and 64 bits beside it", () => {
  const values = [null, true, false, 0, 127, 128, 255, 256, 65535, 65536, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1, -1, -32, -33, -128, -129,
    -32768, -32769, -(2 ** 31), -(2 ** 31) - 1, 1.5, -0.25, 1e300, "", "é", "x".repeat(31), "x".repeat(32), "x".repeat(300),
    "x".repeat(70_000), [], [1, [2, ["3"]]], Array(20).fill(7), Array(70_000).fill(1), {}, { a: { b: [null] } },
    Object.fromEntries(Array.from({ length: 20 }, (_, n) => [`k${n}`, n])), new Uint8Array([1, 2, 3]), new Uint8Array(70_000),
    2n ** 64n - 1n, -(2n ** 63n), 2n ** 60n];
  for (const value of values) assert.deepEqual(decode(encode(value)), value);
  assert.equal(hex(encode({ do: "count", left: undefined })), "81a2646fa5636f756e74");
});

test("msgpack that cannot be said or read is refused", () => {
  const endless: unknown[] = [];
  endless.push(endless);
  for (const value of [2n ** 64n, -(2n ** 63n) - 1n, () => 0, Symbol("x"), endless]) assert.throws(() => encode(value), { code: "INVALID_INPUT" });
  for (const bytes of ["", "c1", "a2ff", "92", "ddffffffff", "c7", "cf00", "0101", "a2c328", "91".repeat(200)]) {
    assert.throws(() => decode(unhex(bytes)), { code: "INVALID_INPUT" }, bytes);
  }
});
