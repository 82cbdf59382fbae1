/**
 * The golden transcripts of tests/stories, told through this client against a running Roost. Time passes there by
 * itself: what a story shows is waited for, and nothing else may come.
 */

import assert from "node:assert/strict";
import { test } from "node:test";
import { RoostError, enter, type Client, type Door, type Place, type Registration } from "../../src/index.js";
import { eventually, repositoryFile } from "../support.js";
import { client, roost } from "./roost.js";

type Verb = (subject: string, options: Record<string, string>) => Promise<string>;

/** Blocks of commands, each with what they answer. */
function blocksOf(story: string): { commands: string[]; answers: string[] }[] {
  return repositoryFile(`tests/stories/${story}.txt`).trim().split(/\n\n/).map(block => {
    const lines = block.split("\n").filter(line => !line.startsWith("#"));
    const at = lines.indexOf("----");
    return { commands: lines.slice(0, at), answers: lines.slice(at + 1) };
  });
}

/** Ids and tickets are new in every run: each is called by its kind and its number. */
class Names {
  readonly #names = new Map<string, string>();

  hide(text: string): string {
    return text.replace(/\b[0-9A-HJKMNP-TV-Z]{26}\b|\bv1\.[\w.-]+/g, found => {
      const kind = found.startsWith("v1.") ? "ticket" : "instance";
      const count = [...this.#names.values()].filter(name => name.startsWith(`<${kind}`)).length;
      if (!this.#names.has(found)) this.#names.set(found, `<${kind}-${count + 1}>`);
      return this.#names.get(found)!;
    });
  }

  show(text: string): string {
    return [...this.#names].reduce((shown, [found, name]) => shown.replaceAll(name, found), text);
  }
}

async function tell(story: string, verbs: Record<string, Verb>, repeatable: string[]): Promise<void> {
  const names = new Names();
  for (const { commands, answers } of blocksOf(story)) {
    for (const command of commands) {
      const [verb = "", ...words] = names.show(command).split(" ");
      const options = Object.fromEntries(words.filter(word => word.includes("=")).map(word => word.split("=")));
      const subject = words.find(word => !word.includes("=")) ?? "";
      const ask = async () => names.hide(await verbs[verb]!(subject, options).catch(refusal)).split("\n");
      let said = await ask();
      const expected = answers.splice(0, said.length);
      for (let n = 0; n < 100 && repeatable.includes(verb) && said.join() !== expected.join(); n++) {
        await new Promise(resolve => setTimeout(resolve, 50));
        said = await ask();
      }
      assert.deepEqual(said, expected, command);
    }
    assert.deepEqual(answers, [], "every answer was given");
  }
}

function refusal(error: unknown): string {
  if (error instanceof RoostError) return `refused: ${error.status} ${error.code}`;
  throw error;
}

const numbers = (options: Record<string, string>) => Object.fromEntries(Object.entries(options).map(([name, value]) => [name, Number(value)]));

test("story: a server is drained and leaves", async () => {
  await using one = client();
  const registered = new Map<string, Registration>();
  const type = "ts-story-discovery";
  await tell("a_server_is_drained_and_leaves", {
    register: async (serverId, options) => {
      registered.set(serverId, await one.register({ type, group: "eu", serverId, ...numbers(options) }));
      return `registered as ${registered.get(serverId)!.instanceId}`;
    },
    beat: async (server, options) => (await one.heartbeat(registered.get(server)!.instanceId, numbers(options))).status,
    override: async (server, options) => {
      const params = { path: { id: registered.get(server)!.instanceId } };
      const body = { drain: options["drain"] === "true" };
      await one.session.ask((api, signal) => api.PUT("/sd/v1/instances/{id}/override", { params, body, signal }));
      return "done";
    },
    remove: async server => (await one.remove(registered.get(server)!.instanceId), "done"),
    discover: async () => (await one.discover({ type })).sort((a, b) => a.serverId.localeCompare(b.serverId))
      .map(row => `${row.serverId} ${row.status}, ${row.accepting ? "accepting" : "not accepting"}, ${row.load} of ${row.capacity}`).join("\n"),
  }, ["discover"]);
});

test("story: a player enters and gets a ticket", async () => {
  await using one = client();
  const world = "story";
  const places = new Map<string, Place>();
  const doors = new Map<string, Door>();
  const shown = ({ now }: Place) => [now!.status, `rank=${now!.rank}`, `ahead=${now!.ahead}`, ...(now!.ticketId ? [`ticketId=${now!.ticketId}`] : [])].join(" ");
  await tell("a_player_enters_and_gets_a_ticket", {
    enter: async userId => {
      places.set(userId, await enter(roost.url, { userId, world, signature: roost.entries[`${userId} ${world}`]! }, { token: roost.token }));
      return shown(places.get(userId)!);
    },
    status: async user => (await places.get(user)!.status(), shown(places.get(user)!)),
    leave: async user => (await places.get(user)!.leave(), "done"),
    tick: async () => `tickets issued: ${(await worldNow(one, world)).counters["issued"]}`,
    report: async (serverId, options) => (doors.set(serverId, await openDoor(one, world, serverId, Number(options["capacity"]))), "done"),
    consume: async (ticket, { at = "" }) => {
      if (!doors.has(at)) doors.set(at, await openDoor(one, world, at, 1, true));
      return `${(await doors.get(at)!.consume(ticket)).userId} is in`;
    },
  }, ["tick", "status"]);
  for (const door of doors.values()) await door.close();
});

function worldNow(one: Client, world: string) {
  return one.session.ask((api, signal) => api.GET("/queue/v1/worlds/{world}", { params: { path: { world } }, signal }));
}

/** A server of the world with a door; one that drains brings no room. */
async function openDoor(one: Client, world: string, serverId: string, capacity: number, drains = false): Promise<Door> {
  const me = await one.register({ type: "ts-story", group: "eu", serverId, capacity });
  one.startAutoHeartbeat(me);
  if (drains) me.status = "draining";
  const door = await one.door(me, { world, url: `ws://127.0.0.1:1/${serverId}` });
  await eventually(() => door.isKnown, "the waiting room to know the server");
  return door;
}
