// src/schema.ts from the HTTP API's own document: `npm run generate`. With a file name: writes there instead.
//
// The document comes from `roost openapi` (ROOST_COMMAND names another command line that prints it).

import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import openapiTS, { astToString } from "openapi-typescript";

const HEAD = "// Made by `npm run generate` from `roost openapi`; do not edit.\n\n";
const REFUSAL = { "application/json": { schema: { $ref: "#/components/schemas/ErrorReply" } } };
const PAGES = ["/", "/console/{file}", "/console/{folder}/{file}", "/docs", "/queue/{world}"];  // for people
const [command, ...args] = (process.env.ROOST_COMMAND ?? "roost openapi").split(" ");
const document = JSON.parse(execFileSync(command, args, { encoding: "utf8", maxBuffer: 64 << 20 }));

/** Names of the schemas that can be reached from here. */
function reached(from, found = new Set()) {
  for (const [key, value] of Object.entries(from ?? {})) {
    if (key === "$ref") {
      const name = value.split("/").at(-1);
      if (!found.has(name)) {
        found.add(name);
        reached(document.components.schemas[name], found);
      }
    } else if (typeof value === "object") reached(value, found);
  }
  return found;
}

// A default says what a field is if a request leaves it out; a reply leaves nothing out.
const operations = Object.values(document.paths).flatMap(path => Object.values(path).filter(one => one.responses));
const sent = reached(operations.map(one => one.requestBody));
for (const name of reached(operations.map(one => one.responses))) {
  const schema = document.components.schemas[name];
  if (!sent.has(name) && schema.properties) schema.required = Object.keys(schema.properties);
}

/** Beside a type, `anyOf` says which of its values fit (a range, or 0): TypeScript has no word for that. */
function widen(schema) {
  if (typeof schema !== "object" || schema === null) return;
  if (schema.type && schema.anyOf) delete schema.anyOf;
  Object.values(schema).forEach(widen);
}
widen(document);

// Every refusal has one form, and its code says more than its status; headers are read by nobody here.
for (const path of Object.values(document.paths)) delete path.parameters;
for (const operation of operations) {
  const done = Object.entries(operation.responses).filter(([status]) => status < "300");
  operation.responses = { ...Object.fromEntries(done), default: { description: "refused", content: REFUSAL } };
  for (const [, response] of done) delete response.headers;
}
for (const page of PAGES) delete document.paths[page];

const nodes = await openapiTS(document, { defaultNonNullable: false, emptyObjectsUnknown: true, alphabetize: true });
writeFileSync(process.argv[2] ?? new URL("../src/schema.ts", import.meta.url), HEAD + astToString(nodes));
