/** One client for servers and backends: who is there, being one of them, letting people in. */

import { beforeTermination, describe } from "#machine";
import type { Beat, BeatReply, Change, Home, Instance, InstanceDetail, RegisterInput, Registered } from "./api.js";
import { Door, type DoorOptions } from "./door.js";
import { InvalidInput, ServerIdTaken, StoreError, UnknownInstance, isNotNow } from "./errors.js";
import { Heart, Registration, type Directive } from "./heart.js";
import { BEAT_TIMEOUT_MS, Session, type Api, type Fetch } from "./session.js";
import { Backoff, pause } from "./timing.js";
import { Differences, ListGuard, watch, type Wanted } from "./watch.js";

const LONGEST_DEFAULT_TTL_S = 30;
/** How often a server id that a crashed predecessor still bears is tried again. */
const TAKEN_RETRY_MS = 1000;
/** How long a server that ends tries to be removed: who stops it does not wait for ever. */
const LAST_MS = 1000;
/** Where several die together, leases are prolonged: only some of a fleet end in ten seconds. */
const HELD_BACK_MS = 60_000;

export interface ConnectOptions {
  /** API token, with the scopes that the calls need. */
  token?: string;
  /** Lease of what is registered, unless the registration says otherwise; 0: what the gateway's profile says. */
  ttlSeconds?: number;
  /** By default three beats to a lease. */
  heartbeatIntervalMs?: number;
  /** Another `fetch`, for proxies and tests. */
  fetch?: Fetch;
}

/** What a registration may say, with what must be known of an instance. */
export type Registering = Partial<RegisterInput> & { type: string; group: string };

/**
 * A client of the gateway at `url`; several gateways of one store are a comma list: when one does not answer, the
 * next is asked, within the time of the call, and heartbeats and watches go on there too.
 */
export function connect(url: string, options: ConnectOptions = {}): Client {
  return new Client(url, options);
}

/** Made by `connect`. `close` ends what it repeats in the background. */
export class Client {
  readonly session: Session;
  readonly #registrations = new Map<string, Registration>();
  readonly #hearts = new Map<string, Heart>();
  readonly #guards = new Map<string, ListGuard>();
  readonly #closing = new AbortController();

  constructor(url: string, private readonly options: ConnectOptions = {}) {
    const { heartbeatIntervalMs: interval, ttlSeconds: ttl } = options;
    if (interval !== undefined && !(interval > 0 && interval * 2 <= (ttl || LONGEST_DEFAULT_TTL_S) * 1000)) {
      throw new InvalidInput(`a lease of ${ttl || LONGEST_DEFAULT_TTL_S} s needs at least two beats, not one every ${interval} ms`);
    }
    this.session = new Session(url, options.token, options.fetch);
  }

  /** The typed HTTP API of the gateway in use, for what has no verb here: `client.api.GET("/overview/v1")`. */
  get api(): Api {
    return this.session.api;
  }

  /** Stop beating and watching. What is registered stays, until its lease ends or it is removed. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([...this.#hearts.values()].map(heart => heart.stop()));
    this.#hearts.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // -- an instance speaks

  /** Make an instance known. In Node hostname, private address and systemInfo are filled in. */
  async register(given: Registering, signal?: AbortSignal): Promise<Registration> {
    const own = await describe(this.session.urls[0]!);
    const filled: RegisterInput = { ttlSeconds: this.options.ttlSeconds ?? 0, ...own, ...given };
    const registration = new Registration(filled, await this.#register(filled, signal), this.options.heartbeatIntervalMs);
    this.#registrations.set(registration.instanceId, registration);
    return registration;
  }

  /** One beat by hand; the id may be a server id. */
  async heartbeat(id: string, beat: Beat = {}): Promise<BeatReply> {
    const known = this.#own(id);
    if (known) return this.#heartbeat(known.instanceId, { life: known.life, ...beat });
    return this.#byAnyId(id, found => this.#heartbeat(found, beat));
  }

  /** Beat for what was registered here, until it is removed or the client is closed. */
  startAutoHeartbeat(registration: Registration, onDirective?: (directive: Directive) => void): void {
    if (onDirective) registration.onDirective = onDirective;
    if (this.#hearts.has(registration.instanceId)) return;
    const registrar = {
      register: (given: RegisterInput, signal?: AbortSignal) => this.#register(given, signal),
      heartbeat: (id: string, beat: Beat, signal?: AbortSignal) => this.#heartbeat(id, beat, signal),
    };
    this.#hearts.set(registration.instanceId, new Heart(registrar, registration));
  }

  /** Take it out; `crashed` tells the others that what it did is lost. The id may be a server's. */
  async remove(id: string, cause: "terminated" | "crashed" = "terminated"): Promise<void> {
    const known = this.#own(id);
    if (!known) return this.#byAnyId(id, found => this.#remove(found, "", cause));
    await this.#stopBeating(known);
    return this.#remove(known.instanceId, known.life, cause);
  }

  /**
   * Registered and beating while `work` runs; removed when it ends, also on SIGTERM where the program does not listen
   * to it. A server id that a crashed predecessor still bears is waited for, until its lease is over, also where that was
   * prolonged because others died with it.
   */
  async registered<Result>(
    given: Registering & { onDirective?: (directive: Directive) => void },
    work: (me: Registration) => Promise<Result>,
  ): Promise<Result> {
    const { onDirective, ...fields } = given;
    const me = await this.#registerWhenFree(fields);
    this.startAutoHeartbeat(me, onDirective);
    const remove = () => (me.ended ? Promise.resolve() : this.#removeAtLast(me));
    const stopListening = beforeTermination(remove);
    try {
      return await work(me);
    } finally {
      stopListening();
      await remove();
    }
  }

  // -- questions

  /** Live instances. While nobody answers: the last list that was believed. */
  async discover({ type = "*", group = "*", labels = [] }: Wanted = {}, verify = false): Promise<Instance[]> {
    const guard = this.#guard(type, group);
    const query = { type, group, ...(labels.length ? { label: [...labels] } : {}), ...(verify ? { verify } : {}) };
    try {
      const ask = (api: Api, signal: AbortSignal) => api.GET("/sd/v1/instances", { params: { query }, signal });
      const fresh = await this.session.ask(ask, { repeatable: true });
      return labels.length ? fresh.instances : guard.believe(fresh).instances;
    } catch (error) {
      if (error instanceof StoreError && !labels.length && guard.believed) return guard.believed.instances;
      throw error;
    }
  }

  /** One instance with its history: living or gone by its instance id, living by its server id. */
  get(id: string, type = "*"): Promise<InstanceDetail> {
    return this.#byAnyId(id, found => this.#get(found), type);
  }

  /** Every change, a snapshot first. Outlives outages; a snapshot that cannot be true is held back. */
  watch(wanted: Wanted = {}, signal?: AbortSignal): AsyncGenerator<Change, void, undefined> {
    return watch(this.session, wanted, signal ? AbortSignal.any([signal, this.#closing.signal]) : this.#closing.signal);
  }

  /** Call back for every instance that is there or appears; gives back the way to stop. */
  onServerAdded(callback: (instance: Instance) => void, wanted: Wanted = {}): () => void {
    return this.#listen(wanted, new Differences(guarded(callback), () => {}));
  }

  /** Call back with the server id of everybody who leaves (the instance id of one without). */
  onServerRemoved(callback: (id: string) => void, wanted: Wanted = {}): () => void {
    return this.#listen(wanted, new Differences(() => {}, guarded(callback)));
  }

  /** Which server holds a user, since when and why; `UnknownBinding` if none does. */
  homeOf(user: string, type = "entity"): Promise<Home> {
    const params = { path: { userId: user }, query: { type } };
    return this.session.ask((api, signal) => api.GET("/bind/v1/users/{userId}", { params, signal }), { repeatable: true });
  }

  // -- a game server lets people in

  /** The door of a registered server to the waiting room of a world: it reports until it is closed. */
  async door(registration: Registration, options: DoorOptions = {}): Promise<Door> {
    const door = new Door(this.session, registration, options);
    await door.open();
    return door;
  }

  // -- inside

  #register(given: RegisterInput, signal?: AbortSignal): Promise<Registered> {
    return this.session.ask((api, own) => api.POST("/sd/v1/instances", { body: given, signal: own }), { signal });
  }

  #heartbeat(id: string, body: Beat, signal?: AbortSignal): Promise<BeatReply> {
    const params = { path: { id } };
    return this.session.ask(
      (api, own) => api.POST("/sd/v1/instances/{id}/heartbeat", { params, body, signal: own }),
      { repeatable: true, timeoutMs: BEAT_TIMEOUT_MS, signal },
    );
  }

  async #remove(id: string, life: string, cause: "terminated" | "crashed"): Promise<void> {
    const params = { path: { id }, query: { cause, ...(life ? { life } : {}) } };
    await this.session.ask((api, signal) => api.DELETE("/sd/v1/instances/{id}", { params, signal }), { repeatable: true });
  }

  /** On the way out: tried again for a moment. Where nobody answers the lease ends by itself. */
  async #removeAtLast(me: Registration): Promise<void> {
    await this.#stopBeating(me);
    const until = performance.now() + LAST_MS, backoff = new Backoff();
    for (;;) {
      try {
        return await this.#remove(me.instanceId, me.life, "terminated");
      } catch (error) {
        if (error instanceof UnknownInstance) return;
        if (!(error instanceof StoreError) && !isNotNow(error)) throw error;
        if (performance.now() > until) return console.error("roost: not removed", me.instanceId, error);
        await pause(backoff.next());
      }
    }
  }

  async #stopBeating(me: Registration): Promise<void> {
    await this.#hearts.get(me.instanceId)?.stop();
    this.#hearts.delete(me.instanceId);
    this.#registrations.delete(me.instanceId);
  }

  #get(id: string): Promise<InstanceDetail> {
    const params = { path: { id } };
    return this.session.ask((api, signal) => api.GET("/sd/v1/instances/{id}", { params, signal }), { repeatable: true });
  }

  async #registerWhenFree(given: Registering): Promise<Registration> {
    const leaseMs = 1000 * (given.ttlSeconds || this.options.ttlSeconds || LONGEST_DEFAULT_TTL_S);
    const deadline = performance.now() + 2 * leaseMs + HELD_BACK_MS;
    for (;;) {
      try {
        return await this.register(given);
      } catch (error) {
        if (!(error instanceof ServerIdTaken) || performance.now() > deadline || this.#closing.signal.aborted) throw error;
        await pause(TAKEN_RETRY_MS, this.#closing.signal);
      }
    }
  }

  /** What this client registered under that instance or server id. */
  #own(id: string): Registration | undefined {
    return this.#registrations.get(id) ?? [...this.#registrations.values()].find(one => one.given.serverId === id);
  }

  /** Ask by the id; where it is no instance id, by that of the only living server that is called so. */
  async #byAnyId<Reply>(id: string, ask: (instanceId: string) => Promise<Reply>, type = "*"): Promise<Reply> {
    try {
      return await ask(id);
    } catch (error) {
      if (!(error instanceof UnknownInstance)) throw error;
      const bearers = (await this.discover({ type })).filter(one => one.serverId === id);
      if (bearers.length > 1) throw new InvalidInput(`${bearers.length} servers of different types are called ${id}`);
      if (!bearers[0] || bearers[0].instanceId === id) throw error;
      return ask(bearers[0].instanceId);
    }
  }

  #guard(type: string, group: string): ListGuard {
    const question = `${type}\0${group}`;
    const guard = this.#guards.get(question) ?? new ListGuard();
    this.#guards.set(question, guard);
    return guard;
  }

  #listen(wanted: Wanted, differences: Differences): () => void {
    const stop = new AbortController(), closing = this.#closing.signal;
    const end = () => stop.abort();
    if (closing.aborted) end();
    closing.addEventListener("abort", end);
    void this.#keepListening(wanted, differences, stop.signal).finally(() => closing.removeEventListener("abort", end));
    return end;
  }

  /** Callbacks have nobody to tell of a refusal, which may pass: it is logged, and the watch begun again. */
  async #keepListening(wanted: Wanted, differences: Differences, signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(500, 5000);
    for (let told = ""; !signal.aborted; await pause(backoff.next(), signal)) {
      try {
        for await (const change of watch(this.session, wanted, signal)) {
          backoff.reset();
          told = "";
          differences.tell(change);
        }
      } catch (error) {
        if (told !== String(error)) console.error("roost: a watch is begun again", error);
        told = String(error);
      }
    }
  }
}

/** A callback that throws must not end the watch that calls it. */
function guarded<Told>(callback: (told: Told) => void): (told: Told) => void {
  return told => {
    try {
      callback(told);
    } catch (error) {
      console.error("roost: a callback failed", error);
    }
  };
}
