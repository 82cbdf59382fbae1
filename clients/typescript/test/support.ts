/** What tests share. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** A file of the repository. */
export function repositoryFile(path: string): string {
  return readFileSync(fileURLToPath(new URL(`../../../../${path}`, import.meta.url)), "utf8");
}

export const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
export const unhex = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, "hex"));

/** Wait for a condition by asking again and again. */
export async function eventually(condition: () => unknown, what = "it to come true", withinMs = 15_000): Promise<void> {
  for (const until = Date.now() + withinMs; !(await condition()); ) {
    if (Date.now() > until) throw new Error(`waited ${withinMs} ms for ${what}`);
    await new Promise(resolve => setTimeout(resolve, 10));
  }
}

/** All turns of the loop that are ready now, and those that they make ready. */
export async function settled(): Promise<void> {
  for (let n = 0; n < 20; n++) await new Promise(resolve => setImmediate(resolve));
}

/** Everything that nobody holds is gone, and with it what only weak references led to. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let n = 0; n < 5; n++) {
    collect();
    await new Promise(resolve => setTimeout(resolve, 20));
  }
}
