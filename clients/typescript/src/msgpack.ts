/**
 * msgpack, as gates speak it: null, booleans, numbers, texts, bytes, arrays and maps with text keys.
 *
 * A whole number beyond 2^53 is read as a bigint, and a bigint is written as one; all others are numbers. Extension
 * types are refused, and so is what nests deeper than 128.
 */

import { InvalidInput } from "./errors.js";

const MAX_DEPTH = 128;
const utf8 = new TextEncoder();

/** What can be sent: JSON, and bytes and bigints beside it. `undefined` in a map is left out. */
export type Packable =
  | null | boolean | number | bigint | string | Uint8Array | readonly Packable[] | { readonly [key: string]: Packable | undefined };

/** The bytes of a value; `InvalidInput` for what msgpack cannot say. */
export function encode(value: unknown): Uint8Array {
  const writer = new Writer();
  writer.value(value, 0);
  return writer.done();
}

/** The value of exactly these bytes; `InvalidInput` for anything else. */
export function decode(bytes: Uint8Array): unknown {
  return new Reader(bytes).whole();
}

class Writer {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  done(): Uint8Array {
    return this.#bytes.slice(0, this.#at);
  }

  value(value: unknown, depth: number): void {
    if (depth > MAX_DEPTH) throw new InvalidInput("nested too deeply for msgpack");
    if (value === null || value === undefined) this.#byte(0xc0);
    else if (typeof value === "boolean") this.#byte(value ? 0xc3 : 0xc2);
    else if (typeof value === "number") this.#number(value);
    else if (typeof value === "bigint") this.#bigint(value);
    else if (typeof value === "string") this.#text(value);
    else if (value instanceof Uint8Array) this.#sized(value.length, [0xc4, 0xc5, 0xc6], value);
    else if (Array.isArray(value)) this.#array(value, depth);
    else if (typeof value === "object") this.#map(value, depth);
    else throw new InvalidInput(`msgpack cannot say a ${typeof value}`);
  }

  #number(value: number): void {
    if (Number.isSafeInteger(value) && !Object.is(value, -0)) return this.#integer(value);
    this.#byte(0xcb);
    this.#space(8);
    this.#view.setFloat64(this.#at - 8, value);
  }

  #integer(value: number): void {
    if (value >= 0 && value < 0x80) this.#byte(value);
    else if (value < 0 && value >= -0x20) this.#byte(value & 0xff);
    else if (value >= 0 && value <= 0xff) this.#head(0xcc, 1, value);
    else if (value >= 0 && value <= 0xffff) this.#head(0xcd, 2, value);
    else if (value >= 0 && value <= 0xffffffff) this.#head(0xce, 4, value);
    else if (value < 0 && value >= -0x80) this.#head(0xd0, 1, value);
    else if (value < 0 && value >= -0x8000) this.#head(0xd1, 2, value);
    else if (value < 0 && value >= -0x80000000) this.#head(0xd2, 4, value);
    else this.#bigint(BigInt(value));
  }

  #bigint(value: bigint): void {
    if (value >= 1n << 64n || value < -(1n << 63n)) throw new InvalidInput("msgpack has 64 bits for a number");
    this.#byte(value < 0n ? 0xd3 : 0xcf);
    this.#space(8);
    this.#view.setBigUint64(this.#at - 8, BigInt.asUintN(64, value));
  }

  #text(value: string): void {
    const bytes = utf8.encode(value);
    if (bytes.length >= 32) return this.#sized(bytes.length, [0xd9, 0xda, 0xdb], bytes);
    this.#byte(0xa0 | bytes.length);
    this.#copy(bytes);
  }

  #array(items: readonly unknown[], depth: number): void {
    if (items.length < 16) this.#byte(0x90 | items.length);
    else this.#sized(items.length, [undefined, 0xdc, 0xdd]);
    for (const item of items) this.value(item, depth + 1);
  }

  #map(object: object, depth: number): void {
    const entries = Object.entries(object).filter(([, value]) => value !== undefined);
    if (entries.length < 16) this.#byte(0x80 | entries.length);
    else this.#sized(entries.length, [undefined, 0xde, 0xdf]);
    for (const [key, value] of entries) {
      this.#text(key);
      this.value(value, depth + 1);
    }
  }

  /** A size under the shortest of its three heads, and what it is the size of. */
  #sized(size: number, heads: [number | undefined, number, number], bytes?: Uint8Array): void {
    if (heads[0] !== undefined && size <= 0xff) this.#head(heads[0], 1, size);
    else if (size <= 0xffff) this.#head(heads[1], 2, size);
    else this.#head(heads[2], 4, size);
    if (bytes) this.#copy(bytes);
  }

  #head(head: number, width: 1 | 2 | 4, value: number): void {
    this.#byte(head);
    this.#space(width);
    if (width === 1) this.#view.setUint8(this.#at - 1, value);
    else if (width === 2) this.#view.setUint16(this.#at - 2, value);
    else this.#view.setUint32(this.#at - 4, value);
  }

  #byte(value: number): void {
    this.#space(1);
    this.#bytes[this.#at - 1] = value;
  }

  #copy(bytes: Uint8Array): void {
    this.#space(bytes.length);
    this.#bytes.set(bytes, this.#at - bytes.length);
  }

  #space(size: number): void {
    this.#at += size;
    if (this.#at <= this.#bytes.length) return;
    const larger = new Uint8Array(Math.max(this.#at, this.#bytes.length * 2));
    larger.set(this.#bytes);
    this.#bytes = larger;
    this.#view = new DataView(larger.buffer);
  }
}

class Reader {
  readonly #view: DataView;
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #at = 0;

  constructor(private readonly bytes: Uint8Array) {
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  whole(): unknown {
    const value = this.#value(0);
    if (this.#at !== this.bytes.length) throw new InvalidInput("something follows the msgpack value");
    return value;
  }

  #value(depth: number): unknown {
    if (depth > MAX_DEPTH) throw new InvalidInput("msgpack that is nested too deeply");
    const head = this.#uint(1);
    if (head < 0x80) return head;
    if (head < 0x90) return this.#map(head & 0x0f, depth);
    if (head < 0xa0) return this.#array(head & 0x0f, depth);
    if (head < 0xc0) return this.#text(head & 0x1f);
    if (head >= 0xe0) return head - 0x100;
    return this.#long(head, depth);
  }

  #long(head: number, depth: number): unknown {
    switch (head) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xc4: case 0xc5: case 0xc6: return this.#raw(this.#uint(1 << (head - 0xc4))).slice();
      case 0xca: return this.#view.getFloat32(this.#step(4));
      case 0xcb: return this.#view.getFloat64(this.#step(8));
      case 0xcc: case 0xcd: case 0xce: return this.#uint(1 << (head - 0xcc));
      case 0xcf: return fitting(this.#view.getBigUint64(this.#step(8)));
      case 0xd0: return this.#view.getInt8(this.#step(1));
      case 0xd1: return this.#view.getInt16(this.#step(2));
      case 0xd2: return this.#view.getInt32(this.#step(4));
      case 0xd3: return fitting(this.#view.getBigInt64(this.#step(8)));
      case 0xd9: case 0xda: case 0xdb: return this.#text(this.#uint(1 << (head - 0xd9)));
      case 0xdc: case 0xdd: return this.#array(this.#uint(2 << (head - 0xdc)), depth);
      case 0xde: case 0xdf: return this.#map(this.#uint(2 << (head - 0xde)), depth);
      default: throw new InvalidInput(`msgpack of kind 0x${head.toString(16)} is not understood`);
    }
  }

  #uint(width: number): number {
    const at = this.#step(width);
    return width === 1 ? this.#view.getUint8(at) : width === 2 ? this.#view.getUint16(at) : this.#view.getUint32(at);
  }

  #text(size: number): string {
    try {
      return this.#utf8.decode(this.#raw(size));
    } catch (error) {
      if (error instanceof TypeError) throw new InvalidInput("a text that is not UTF-8");
      throw error;
    }
  }

  #array(size: number, depth: number): unknown[] {
    const items: unknown[] = [];  // not made at its size, which the other side may invent
    while (items.length < size) items.push(this.#value(depth + 1));
    return items;
  }

  #map(size: number, depth: number): Record<string, unknown> {
    const entries: [string, unknown][] = [];
    while (entries.length < size) entries.push([String(this.#value(depth + 1)), this.#value(depth + 1)]);
    return Object.fromEntries(entries);
  }

  #raw(size: number): Uint8Array {
    const at = this.#step(size);
    return this.bytes.subarray(at, at + size);
  }

  /** Where the next so many bytes begin. */
  #step(size: number): number {
    const at = this.#at;
    if (size > this.bytes.length - at) throw new InvalidInput("msgpack ends too early");
    this.#at += size;
    return at;
  }
}

/** As a number where that is exact. */
function fitting(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
