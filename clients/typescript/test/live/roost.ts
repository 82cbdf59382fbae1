/** The running Roost that pytest started, as it says in ROOST_TEST. */

import { connect as connectTcp } from "node:net";
import { connect, type Client, type ConnectOptions } from "../../src/index.js";

interface Told {
  /** Gateways of one store. */
  url: string;
  token: string;
  /** Port of the store on this machine. */
  storePort: number;
  /** Gates: the second may be killed. */
  gates: { ws: string; tcp: string; pid: number }[];
  /** Login tokens by user. */
  logins: Record<string, string>;
  /** Entry signatures by user, each good for the world that the test uses. */
  entries: Record<string, string>;
}

export const roost = JSON.parse(process.env["ROOST_TEST"]!) as Told;

export function client(options: ConnectOptions = {}): Client {
  return connect(roost.url, { token: roost.token, ...options });
}

/** Everything in the store is gone. */
export async function wipeStore(): Promise<void> {
  const socket = connectTcp(roost.storePort, "127.0.0.1");
  socket.write("FLUSHALL\r\n");
  await new Promise(resolve => socket.once("data", resolve));
  socket.destroy();
}
