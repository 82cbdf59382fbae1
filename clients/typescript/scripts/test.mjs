// Runs the compiled tests: `npm test`, or with parts of their names. Those that need a running Roost are in test/live
// and are told where it is by ROOST_TEST (tests/clients/test_typescript.py starts one).

import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../dist/test/", import.meta.url));
const wanted = process.argv.slice(2);
const found = ["", "live/"].filter(part => part === "" || process.env.ROOST_TEST).flatMap(part =>
  existsSync(folder + part) ? readdirSync(folder + part).filter(name => name.endsWith(".test.js")).map(name => part + name) : []);
const files = found.filter(name => !wanted.length || wanted.some(part => name.includes(part)));
const [major, minor] = process.versions.node.split(".").map(Number);
// Node has a WebSocket of its own from 22 on.
const flags = major < 22 ? ["--experimental-websocket", "--no-warnings"] : [];
// One that hangs is named and fails, and the others are still told.
if (major > 20 || minor >= 11) flags.push("--test-timeout=90000");
const run = (names) => names.length === 0 ? 0
  : spawnSync(process.execPath, [...flags, "--test", "--test-concurrency=2", ...names.map(name => folder + name)], { stdio: "inherit" }).status ?? 1;
// What wipes the store of that Roost runs when nobody else uses it any more.
const isLast = name => name.includes("wiped");
process.exit(run(files.filter(name => !isLast(name))) || run(files.filter(isLast)));
