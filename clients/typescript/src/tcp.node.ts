/** TCP to a gate, in Node: frames of the wire protocol, each with one message. */

import { connect, type Socket } from "node:net";
import { StoreUnavailable } from "./errors.js";
import { FrameReader, PUSH, encodeFrame, frame, type Frame } from "./frames.js";
import type { Line, LineListener } from "./lines.js";
import { encode } from "./msgpack.js";

const PLAYERS = 2, MESSAGE = 1;
/** The connection's own methods: service 0. */
const PING = 3, FAREWELL = 4;
const CLOSING = 8;
const PING_MS = 5000;
/** A gate that does not even answer pings for so long is gone. */
const SILENT_MS = 16_000;
/** Of one message of a gate. */
const MAX_BYTES = 4 << 20;

export function openTcp(url: string, listener: LineListener, connectMs: number): Promise<Line> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) || 8411, noDelay: true });
    const fail = (why: string) => {
      clearTimeout(timer);
      socket.destroy();
      reject(new StoreUnavailable(`${url} ${why}`));
    };
    const timer = setTimeout(() => fail("does not answer"), connectMs);
    socket.once("error", error => fail(`cannot be reached: ${error.message}`));
    socket.once("connect", () => {
      clearTimeout(timer);
      socket.removeAllListeners("error");
      resolve(new TcpLine(socket, listener));
    });
  });
}

class TcpLine implements Line {
  readonly #reader = new FrameReader(MAX_BYTES);
  readonly #pinging: ReturnType<typeof setInterval>;
  #request = 0n;
  #heardAt = performance.now();
  #why = "the gate hung up";

  constructor(private readonly socket: Socket, private readonly listener: LineListener) {
    socket.on("data", data => this.#hear(data));
    socket.on("error", error => (this.#why = error.message));
    socket.on("close", () => this.#end());
    this.#pinging = setInterval(() => this.#ping(), PING_MS);
  }

  send(payload: Uint8Array): void {
    if (this.socket.writable) this.socket.write(encodeFrame(frame({ service: PLAYERS, method: MESSAGE, request: ++this.#request, payload })));
  }

  /** Say farewell and end. */
  close(): void {
    const payload = encode({ message: "the player leaves" });
    if (this.socket.writable) this.socket.end(encodeFrame(frame({ flags: 3, method: FAREWELL, code: CLOSING, payload })));
    this.socket.setTimeout(1000, () => this.socket.destroy());
  }

  #hear(data: Uint8Array): void {
    this.#heardAt = performance.now();
    try {
      for (const one of this.#reader.take(data)) this.#take(one);
    } catch (error) {
      this.#cut(error instanceof Error ? error.message : String(error));
    }
  }

  #take(one: Frame): void {
    if (one.service === PLAYERS && one.flags & PUSH) this.listener.onMessage(one.payload);
    else if (one.service === 0 && one.method === PING && !one.flags) this.socket.write(encodeFrame(frame({ flags: 1, method: PING })));
    else if (one.service === 0 && one.method === FAREWELL) this.#cut("the gate said farewell");
  }

  #ping(): void {
    if (performance.now() - this.#heardAt > SILENT_MS) this.#cut("the gate says nothing any more");
    else if (this.socket.writable) this.socket.write(encodeFrame(frame({ method: PING })));
  }

  #cut(why: string): void {
    this.#why = why;
    this.socket.destroy();
  }

  #end(): void {
    clearInterval(this.#pinging);
    this.listener.onEnd(this.#why);
  }
}
