/** How a process of Node ends, in a process of its own. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";

/** What a program said before SIGTERM ended it. */
async function terminated(program: string): Promise<string> {
  const from = `import { beforeTermination } from ${JSON.stringify(new URL("../src/machine.node.js", import.meta.url).href)};`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", `${from} setTimeout(() => {}, 5000); ${program}; console.log("up");`]);
  let said = "";
  child.stdout.on("data", data => {
    said += String(data);
    if (said.startsWith("up\n") && !child.killed) child.kill("SIGTERM");
  });
  const signal = await new Promise(resolve => child.on("close", (_, signal) => resolve(signal)));
  assert.equal(signal, "SIGTERM");
  return said;
}

test("SIGTERM ends a process with several instances, after each was taken out", async () => {
  const last = (name: string) => `beforeTermination(async () => console.log("${name}"))`;
  assert.equal(await terminated(`${last("one")}; ${last("two")}; ${last("three")}()`), "up\none\ntwo\n");
});
