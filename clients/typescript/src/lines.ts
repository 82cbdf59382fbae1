/** A player's connection to a gate: WebSocket or TCP, the same two verbs, one msgpack message at a time. */

import { openTcp } from "#tcp";
import { InvalidInput, StoreUnavailable } from "./errors.js";

export const CONNECT_MS = 5000;

/** What a line tells: each message, and once that it is over. */
export interface LineListener {
  onMessage(data: Uint8Array): void;
  onEnd(why: string): void;
}

/** An open connection. */
export interface Line {
  /** Hands over a message; one that nobody is there for any more is lost, and `onEnd` follows. */
  send(data: Uint8Array): void;
  close(): void;
}

/** The part of the WebSocket of browsers that is used here. */
export type WebSocketClass = new (url: string) => WebSocket;

/** The gates of a comma list; `InvalidInput` names a bad one. */
export function gateUrls(text: string): string[] {
  const urls = text.split(",").map(url => url.trim()).filter(Boolean);
  for (const url of urls) {
    const { protocol, hostname } = URL.canParse(url) ? new URL(url) : { protocol: "", hostname: "" };
    if (!["ws:", "wss:", "tcp:"].includes(protocol) || !hostname) {
      throw new InvalidInput(`${url} is no gate: ws://host:8410, wss://… or, in Node, tcp://host:8411`);
    }
  }
  if (!urls.length) throw new InvalidInput("no gate is named: ws://127.0.0.1:8410");
  return urls;
}

/** Connect to a gate; `StoreUnavailable` says why not. */
export function openLine(url: string, listener: LineListener, given?: WebSocketClass): Promise<Line> {
  return url.startsWith("tcp:") ? openTcp(url, listener, CONNECT_MS) : openWebSocket(url, listener, given);
}

function openWebSocket(url: string, listener: LineListener, given?: WebSocketClass): Promise<Line> {
  const Socket = socketClass(given);
  return new Promise((resolve, reject) => {
    const socket = new Socket(url);
    socket.binaryType = "arraybuffer";
    const fail = (why: string) => {
      clearTimeout(timer);
      socket.close();
      reject(new StoreUnavailable(`${url} ${why}`));
    };
    const timer = setTimeout(() => fail("does not answer"), CONNECT_MS);
    socket.onerror = () => fail("cannot be reached");
    socket.onclose = () => fail("hung up");
    socket.onopen = () => {
      clearTimeout(timer);
      socket.onerror = null;
      resolve(new WebSocketLine(socket, listener));
    };
  });
}

/** The WebSocket to use; `InvalidInput` where there is none. */
export function socketClass(given?: WebSocketClass): WebSocketClass {
  const Socket = given ?? globalThis.WebSocket;
  if (Socket) return Socket;
  throw new InvalidInput(
    "there is no WebSocket here: Node has one from 22 on, or with --experimental-websocket; else name one in the options, or use tcp://",
  );
}

class WebSocketLine implements Line {
  constructor(private readonly socket: WebSocket, listener: LineListener) {
    socket.onmessage = ({ data }) => data instanceof ArrayBuffer && listener.onMessage(new Uint8Array(data));
    socket.onclose = ({ code, reason }) => listener.onEnd(reason || `closed with ${code}`);
  }

  send(data: Uint8Array): void {
    if (this.socket.readyState === 1) this.socket.send(data as Uint8Array<ArrayBuffer>);
  }

  close(): void {
    this.socket.close();
  }
}
