/** A watch that outlives outages, and lists that are doubted when they cannot be true. */

import type { Change, Instance } from "./api.js";
import { isNotNow, isRefusal } from "./errors.js";
import { events } from "./events.js";
import type { Session } from "./session.js";
import { Backoff, pause } from "./timing.js";

const CONFIRM_AFTER_MS = 10_000;

/** Instances at a point of one history. */
export interface Listed {
  instances: Instance[];
  revision: number;
}

/** Which instances are wanted; `*` is any. */
export interface Wanted {
  type?: string | undefined;
  group?: string | undefined;
  /** `name` or `name=value`, each of which an instance must have. */
  labels?: readonly string[] | undefined;
}

/**
 * Doubts a list that lost more than half of its instances without the changes to account for it: it comes from a
 * store that was wiped or fell back, and is believed only when a second one, 10 s later, agrees.
 */
export class ListGuard {
  /** The list to act on. */
  believed: Listed | undefined;
  #doubtedAt: number | undefined;

  /** The list to act on: `fresh`, or the last one that was believed. */
  believe(fresh: Listed, nowMs = performance.now()): Listed {
    const isConfirmed = this.#doubtedAt !== undefined && nowMs - this.#doubtedAt >= CONFIRM_AFTER_MS;
    if (this.believed === undefined || isConfirmed || !isDoubtful(this.believed, fresh)) {
      this.#doubtedAt = undefined;
      this.believed = fresh;
    } else this.#doubtedAt ??= nowMs;
    return this.believed;
  }
}

function isDoubtful(before: Listed, fresh: Listed): boolean {
  const listed = new Set(fresh.instances.map(one => one.instanceId));
  const missing = before.instances.filter(one => !listed.has(one.instanceId)).length;
  return missing * 2 > before.instances.length && missing > fresh.revision - before.revision;
}

/**
 * Every change, a snapshot first; another snapshot when continuity cannot be proved. It goes on after outages from
 * the last change that was seen. Throws only what repeating cannot cure: a refusal that is no fault of the store.
 */
export async function* watch(session: Session, wanted: Wanted, signal: AbortSignal): AsyncGenerator<Change, void, undefined> {
  const guard = new ListGuard();
  const backoff = new Backoff(500, 5000);
  let mark = "";
  while (!signal.aborted) {
    try {
      for await (const change of changes(session, wanted, mark, signal)) {
        backoff.reset();
        if (change.event === "snapshot" && !isBelieved(guard, change)) {
          mark = "";
          await pause(CONFIRM_AFTER_MS, signal);  // a second snapshot will confirm it or not
          break;
        }
        mark = `${change.revision}-${change.revisionAt}`;
        yield change;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (isRefusal(error)) throw error;
      if (!isNotNow(error)) mark = "";  // asking for the same again might fail the same way
    }
    await pause(backoff.next(), signal);
  }
}

function isBelieved(guard: ListGuard, change: Change): boolean {
  const listed = { instances: change.instances ?? [], revision: change.revision };
  return guard.believe(listed) === listed;
}

async function* changes(
  session: Session, { type = "*", group = "*", labels = [] }: Wanted, mark: string, signal: AbortSignal,
): AsyncGenerator<Change, void, undefined> {
  const query = new URLSearchParams([["type", type], ["group", group], ...labels.map(label => ["label", label])]);
  const headers: Record<string, string> = mark ? { "Last-Event-ID": mark } : {};
  for await (const { data } of events(session, `/sd/v1/watch?${query}`, headers, signal)) {
    const change = readChange(data);
    if (change) yield change;
  }
}

/** The change in an event; one that cannot be read is skipped: it must not end the watch. */
export function readChange(data: string): Change | undefined {
  try {
    const change = JSON.parse(data) as Change;
    return typeof change?.event === "string" && typeof change.revision === "number" ? change : undefined;
  } catch {
    return undefined;
  }
}

/** Turns changes into calls: once per life of an instance, also across snapshots. */
export class Differences {
  /** Instance id → its life and what callers call it. */
  readonly #known = new Map<string, { life: string; name: string }>();

  constructor(private readonly added: (instance: Instance) => void, private readonly removed: (id: string) => void) {}

  /** A callback that throws is not called again for the same. */
  tell(change: Change): void {
    if (change.event === "snapshot") {
      const present = new Set(change.instances?.map(one => one.instanceId));
      for (const id of [...this.#known.keys()]) if (!present.has(id)) this.#left(id);
      change.instances?.forEach(one => this.#came(one));
    } else if (change.event === "removed") this.#left(change.instanceId);
    else if (change.instance) this.#came(change.instance);
  }

  #came(instance: Instance): void {
    if (this.#known.get(instance.instanceId)?.life === instance.life) return;
    this.#known.set(instance.instanceId, { life: instance.life, name: instance.serverId || instance.instanceId });
    this.added(instance);
  }

  #left(id: string): void {
    const known = this.#known.get(id);
    this.#known.delete(id);
    if (known) this.removed(known.name);
  }
}
