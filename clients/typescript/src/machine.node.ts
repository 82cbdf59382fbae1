/** What a registration says of the machine without being told, and how its process ends: Node. */

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { arch, cpus, hostname, platform, totalmem } from "node:os";
import type { RegisterInput } from "./api.js";

/** Hostname, our address on the way to the gateway (no packet is sent to learn it), and what the machine is. */
export async function describe(url: string): Promise<Partial<RegisterInput>> {
  const systemInfo = { os: platform(), arch: arch(), cpu: cpus().length, memoryMb: Math.floor(totalmem() / 2 ** 20), node: process.version };
  return { hostname: hostname(), privateIp: await ownAddress(url), systemInfo };
}

async function ownAddress(url: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  const socket = createSocket(host.startsWith("[") ? "udp6" : "udp4");
  try {
    const failed = once(socket, "error");
    socket.connect(Number(port) || 80, host.replace(/^\[|\]$/g, ""));
    await Promise.race([once(socket, "connect"), failed.then(([error]) => Promise.reject(error))]);
    return socket.address().address;
  } catch {
    return "";
  } finally {
    socket.close();
  }
}

/** What runs before SIGTERM ends the process. */
const lasts = new Set<() => Promise<void>>();

function hear(): void {
  if (process.listenerCount("SIGTERM") > 1) return;
  void Promise.allSettled([...lasts].map(last => last())).then(() => {
    process.off("SIGTERM", hear);
    process.kill(process.pid, "SIGTERM");
  });
}

/**
 * On SIGTERM run `last`, and all others that were given, then let the signal end the process. Where the program listens
 * to SIGTERM itself, it decides alone. Gives back the way to stop listening.
 */
export function beforeTermination(last: () => Promise<void>): () => void {
  if (!lasts.size) process.on("SIGTERM", hear);
  lasts.add(last);
  return () => {
    lasts.delete(last);
    if (!lasts.size) process.off("SIGTERM", hear);
  };
}
