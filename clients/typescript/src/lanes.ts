/**
 * Where orders belong, and what their ids say, as every process of Roost computes it; docs/lane-vectors.json holds
 * golden vectors. Order ids are bigints: they are above 2^53, and travel as text in JSON.
 *
 *     41 bits ms since 2024-01-01 UTC | 4 bits shard | 6 bits lane | 12 bits sequence within the millisecond
 */

import { InvalidId } from "./errors.js";

export const EPOCH_MS = 1_704_067_200_000n;
const MAX_SYMBOL_CHARACTERS = 32;
const MAX_ID_BYTES = 128;
const SHARDS = 16;
const VIRTUAL_NODES = 8;
const utf8 = new TextEncoder();

/** A lane among all: 16 shards with 64 lanes each. */
export interface Spot {
  shard: number;
  lane: number;
}

/** What an id is made of; `ms` counts from 1970. */
export interface OrderIdParts extends Spot {
  ms: bigint;
  sequence: number;
}

/** The one spelling of a symbol: spaces around it are cut, NFKC, upper case. `InvalidId` for what is none. */
export function symbolOf(typed: string): string {
  const spelt = typed.normalize("NFKC").replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "").toUpperCase().normalize("NFKC");
  const length = [...spelt].length;
  if (!length || length > MAX_SYMBOL_CHARACTERS || utf8.encode(spelt).length > MAX_ID_BYTES || /[{}\p{C}\p{Z}]/u.test(spelt)) {
    throw new InvalidId(`${JSON.stringify(typed)} is no symbol: 1 to 32 characters that can be seen, no braces, no spaces`);
  }
  return spelt;
}

/** FNV-1a over UTF-8, all 32 bits. */
export function fnv1a32(text: string): number {
  let found = 0x811c9dc5;
  for (const byte of utf8.encode(text)) found = Math.imul(found ^ byte, 0x01000193);
  return found >>> 0;
}

/** The finalizer of Murmur 3. */
export function fmix32(number: number): number {
  let mixed = number ^ (number >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** The default selector, `mixed`. NB: an operator's placement table stands above it: GET /orders/v1/placement/{symbol}. */
export function spotOf(symbol: string): Spot {
  const mixed = fmix32(fnv1a32(symbol));
  return { shard: mixed >>> 28, lane: (mixed >>> 12) & 63 };
}

/** The points of the selector `ring_v1`: hash and shard, from the lowest on. */
export const RING_V1: readonly (readonly [hash: number, shard: number])[] = [
  ...new Map(
    Array.from({ length: SHARDS * VIRTUAL_NODES }, (_, n) => {
      const shard = Math.floor(n / VIRTUAL_NODES);
      return [fnv1a32(`shard-${shard}-v${n % VIRTUAL_NODES}`) & 0x7fffffff, shard];
    }),
  ),
].sort(([one], [other]) => one - other);

/** The same by `ring_v1`; the lane, which that ring does not know, is that of `mixed`. */
export function ringSpotOf(symbol: string): Spot {
  const hash = fnv1a32(symbol) & 0x7fffffff;
  const [, shard] = RING_V1.find(([point]) => point >= hash) ?? RING_V1[0]!;
  return { shard, lane: spotOf(symbol).lane };
}

/** What an order id says of itself. Any number has a shard and a lane in it: only a lookup is proof. */
export function orderIdParts(id: bigint): OrderIdParts {
  return { ms: (id >> 22n) + EPOCH_MS, shard: Number((id >> 18n) & 15n), lane: Number((id >> 12n) & 63n), sequence: Number(id & 4095n) };
}

/** The id of these parts. */
export function orderId({ ms, shard, lane, sequence }: OrderIdParts): bigint {
  return ((ms - EPOCH_MS) << 22n) | (BigInt(shard) << 18n) | (BigInt(lane) << 12n) | BigInt(sequence);
}
