/**
 * One frame of the wire protocol (docs/protocol.md): a header of 32 bytes, extensions, a payload.
 *
 *     u32 length after itself | u8 version | u8 flags | u16 service | u16 method | u16 code
 *     | u32 budgetMs | u64 request | u64 epoch | [u16 length, TLVs] | payload          all little-endian
 *
 * 64-bit numbers are bigints. Players at a gate need no more of the protocol than this: they have no handshake.
 */

import { RoostError } from "./errors.js";

export const REPLY = 1, ERROR = 2, PUSH = 4, EXT = 8;
const KNOWN_FLAGS = REPLY | ERROR | PUSH | EXT;
const VERSION = 1;
const HEADER_BYTES = 32;
/** What the length field of a frame without extensions and payload says. */
const AFTER_LENGTH = HEADER_BYTES - 4;
const MAX_EXTENSIONS_BYTES = 1024;
const TRACEPARENT = 1, SEQUENCE = 2, OLDEST = 3;

/** A frame. `sequence`, `oldest` and `traceparent` travel as extensions; others are skipped. */
export interface Frame {
  flags: number;
  service: number;
  method: number;
  code: number;
  budgetMs: number;
  request: bigint;
  epoch: bigint;
  payload: Uint8Array;
  sequence?: bigint;
  oldest?: bigint;
  traceparent?: Uint8Array;
}

/** The peer does not keep to the protocol; `code` is that of the farewell: BAD_REQUEST or TOO_LARGE. */
export class ProtocolError extends RoostError {
  constructor(message: string, code: "BAD_REQUEST" | "TOO_LARGE" = "BAD_REQUEST") {
    super(message, code);
  }
}

/** A frame with these fields; the others are 0. */
export function frame(fields: Partial<Frame>): Frame {
  return { flags: 0, service: 0, method: 0, code: 0, budgetMs: 0, request: 0n, epoch: 0n, payload: new Uint8Array(), ...fields };
}

/** The bytes of a frame; its flag EXT follows from whether it has extensions. */
export function encodeFrame(frame: Frame): Uint8Array {
  const extensions = encodeExtensions(frame);
  const bytes = new Uint8Array(HEADER_BYTES + extensions.length + frame.payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, bytes.length - 4, true);
  view.setUint8(4, VERSION);
  view.setUint8(5, extensions.length ? frame.flags | EXT : frame.flags & ~EXT);
  view.setUint16(6, frame.service, true);
  view.setUint16(8, frame.method, true);
  view.setUint16(10, frame.code, true);
  view.setUint32(12, frame.budgetMs, true);
  view.setBigUint64(16, frame.request, true);
  view.setBigUint64(24, frame.epoch, true);
  bytes.set(extensions, HEADER_BYTES);
  bytes.set(frame.payload, HEADER_BYTES + extensions.length);
  return bytes;
}

/** The block of extensions with its length before it; empty where there is none. */
function encodeExtensions({ traceparent, sequence, oldest }: Frame): Uint8Array {
  const parts: [number, Uint8Array][] = [];
  if (traceparent) parts.push([TRACEPARENT, traceparent]);
  if (sequence !== undefined) parts.push([SEQUENCE, u64(sequence)]);
  if (oldest !== undefined) parts.push([OLDEST, u64(oldest)]);
  if (!parts.length) return new Uint8Array();
  const size = parts.reduce((sum, [, value]) => sum + 3 + value.length, 0);
  const bytes = new Uint8Array(2 + size);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, size, true);
  let at = 2;
  for (const [kind, value] of parts) {
    view.setUint8(at, kind);
    view.setUint16(at + 1, value.length, true);
    bytes.set(value, at + 3);
    at += 3 + value.length;
  }
  return bytes;
}

function u64(value: bigint): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, value, true);
  return bytes;
}

/** Frames of a stream that arrives in parts. A frame that is too large is refused by its first four bytes. */
export class FrameReader {
  #rest = new Uint8Array();

  constructor(private readonly maxFrameBytes = 1 << 20) {}

  /** The frames that are complete now; `ProtocolError` if there is something else. */
  take(part: Uint8Array): Frame[] {
    let bytes: Uint8Array = part;
    if (this.#rest.length) {
      bytes = new Uint8Array(this.#rest.length + part.length);
      bytes.set(this.#rest);
      bytes.set(part, this.#rest.length);
    }
    const found: Frame[] = [];
    let at = 0;
    for (let end = this.#end(bytes, at); end <= bytes.length; end = this.#end(bytes, at)) {
      found.push(decodeFrame(bytes.subarray(at, end)));
      at = end;
    }
    this.#rest = bytes.slice(at);
    return found;
  }

  /** Where the frame ends that begins here; beyond the bytes where not even its length is there. */
  #end(bytes: Uint8Array, at: number): number {
    if (bytes.length - at < 4) return Infinity;
    const length = new DataView(bytes.buffer, bytes.byteOffset + at).getUint32(0, true);
    if (length < AFTER_LENGTH) throw new ProtocolError(`a frame of ${length} bytes is shorter than its header`);
    if (length > this.maxFrameBytes) {
      throw new ProtocolError(`a frame of ${length} bytes; at most ${this.maxFrameBytes} are allowed`, "TOO_LARGE");
    }
    return at + 4 + length;
  }
}

function decodeFrame(bytes: Uint8Array): Frame {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const version = view.getUint8(4);
  const flags = view.getUint8(5);
  if (version !== VERSION) throw new ProtocolError(`the peer speaks version ${version} of the protocol, this side version ${VERSION}`);
  if (flags & ~KNOWN_FLAGS) throw new ProtocolError(`unknown flags ${flags}`);
  const more = flags & EXT ? decodeExtensions(bytes, view) : { end: HEADER_BYTES, found: {} };
  return {
    flags,
    service: view.getUint16(6, true),
    method: view.getUint16(8, true),
    code: view.getUint16(10, true),
    budgetMs: view.getUint32(12, true),
    request: view.getBigUint64(16, true),
    epoch: view.getBigUint64(24, true),
    payload: bytes.slice(more.end),
    ...more.found,
  };
}

type Extensions = Pick<Frame, "sequence" | "oldest" | "traceparent">;

function decodeExtensions(bytes: Uint8Array, view: DataView): { end: number; found: Extensions } {
  if (bytes.length < HEADER_BYTES + 2) throw new ProtocolError("a frame ends within its extensions");
  const size = view.getUint16(HEADER_BYTES, true);
  const end = HEADER_BYTES + 2 + size;
  if (end > bytes.length || size > MAX_EXTENSIONS_BYTES) throw new ProtocolError("extensions are longer than their frame, or than 1024 bytes");
  const found: Extensions = {};
  for (let at = HEADER_BYTES + 2; at < end; ) {
    if (end - at < 3) throw new ProtocolError("an extension ends within its head");
    const kind = view.getUint8(at);
    const length = view.getUint16(at + 1, true);
    at += 3;
    if (length > end - at) throw new ProtocolError("an extension is longer than its block");
    if ((kind === SEQUENCE || kind === OLDEST) && length !== 8) throw new ProtocolError("a sequence has 8 bytes");
    if (kind === SEQUENCE) found.sequence = view.getBigUint64(at, true);
    else if (kind === OLDEST) found.oldest = view.getBigUint64(at, true);
    else if (kind === TRACEPARENT) found.traceparent = bytes.slice(at, at + length);
    at += length;
  }
  return { end, found };
}
