/** What tests share. */

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

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
