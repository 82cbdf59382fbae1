/**
 * The heartbeat of registered instances.
 *
 * It runs on the program's own event loop: a loop that hangs sends no beats, so it does not look alive. A beat may
 * fail, the heart may not: what it fails with is noted in the `Registration`, and the next comes sooner. A value that
 * cannot be sent is left out, so that the lease is renewed all the same.
 */

import type { Beat, BeatReply, RegisterInput, Registered, SelfStatus } from "./api.js";
import { FencedInstance, InvalidInput, RemovedInstance, UnknownInstance } from "./errors.js";
import { Flag, jittered, within } from "./timing.js";

/** What the instance must know: it shall be empty, it was removed, a later life took over. */
export type Directive = "drain" | "removed" | "fenced";

/** What the heart needs of the other side. */
export interface Registrar {
  register(given: RegisterInput, signal?: AbortSignal): Promise<Registered>;
  heartbeat(instanceId: string, beat: Beat, signal?: AbortSignal): Promise<BeatReply>;
}

const MAX_OBJECT_BYTES = 8192;
const MAX_COUNT = 2 ** 31;
const STATUSES: readonly unknown[] = ["initializing", "ready", "draining"];
/** The lease of who asked for none, at a gateway of profile lan; elsewhere it is longer. */
const SHORTEST_DEFAULT_TTL_S = 15;
/** Of the interval, that a beat waits for its answer: silence of one and a half makes suspect, so there is time for two. */
const PATIENCE_SHARE = 0.25;
const LEAST_PATIENCE_MS = 250;
/** After a beat that failed, or told of a program that hangs, the next comes in this share of the interval. */
const RETRY_SHARE = 0.2;

type Carried = { status: SelfStatus; load: number; performance: Record<string, unknown> };

/** An instance of this process. Set `status`, `load` and `performance` to have them reported. */
export class Registration {
  load: number;
  performance: Record<string, unknown>;
  /** Whether the operator wants it empty. */
  draining = false;
  /** Why it beats no more; it never comes back by itself. */
  ended: Directive | undefined;
  /** Life → what proves to a waiting room that it is ours. */
  readonly proofs = new Map<string, string>();
  beatsTaken = 0;
  beatsFailed = 0;
  /** Why the last beat failed, or what was left out of it; empty while all is well. */
  lastError = "";
  /** Called with what the instance must know. */
  onDirective: (directive: Directive) => void = () => {};
  /** Called when the next beat should not wait for its time. */
  onNews: () => void = () => {};

  readonly instanceId: string;
  life: string;
  readonly intervalMs: number;
  #status: SelfStatus;
  #sound: Carried;
  #leftOut = "";
  #hungSince: number | undefined;

  constructor(readonly given: RegisterInput, registered: Registered, intervalMs?: number) {
    this.instanceId = registered.instanceId;
    this.life = registered.life;
    this.intervalMs = intervalMs ?? registered.heartbeatIntervalMs;
    this.proofs.set(registered.life, registered.proof);
    this.#status = given.status ?? "ready";
    this.load = given.load ?? 0;
    this.performance = given.performance ?? {};
    this.#sound = { status: this.#status, load: this.load, performance: this.performance };
  }

  /** What it says of itself; a new one is told at once. */
  get status(): SelfStatus {
    return this.#status;
  }

  set status(status: SelfStatus) {
    this.#status = status;
    this.onNews();
  }

  /** What others call it: its server id, or its instance id where it has none. */
  get serverId(): string {
    return this.given.serverId || this.instanceId;
  }

  /** What it stands for does not answer any more: its beats then do not renew, until `resume`. */
  hang(): void {
    this.#hungSince ??= performance.now();
  }

  resume(): void {
    this.#hungSince = undefined;
  }

  /** What to send. A field whose value cannot be sent keeps its last one, and `lastError` names it. */
  beat(): Beat {
    const hungMs = this.#hungSince === undefined ? 0 : performance.now() - this.#hungSince;
    const proof = this.proofs.get(this.life) ?? "";
    return { life: this.life, ...this.#checked(), tickAgeMs: Math.floor(hungMs), proof };
  }

  /** Whether what it stands for has not moved for half a lease: that may be why the lease ended. */
  hangs(beat: Beat): boolean {
    return (beat.tickAgeMs ?? 0) > (this.given.ttlSeconds || SHORTEST_DEFAULT_TTL_S) * 500;
  }

  /** The current full record, to register again after it was forgotten. */
  reregistration(): RegisterInput {
    return { ...this.given, instanceId: this.instanceId, formerLife: this.life, ...this.#checked() };
  }

  /** A new life begins; its proof is kept beside those of the lives before. */
  begin(again: Registered): void {
    this.proofs.set(again.life, again.proof);
    this.life = again.life;
  }

  noteSuccess(refused = ""): void {
    this.beatsTaken++;
    this.lastError = refused || this.#leftOut;
  }

  noteFailure(reason: string): void {
    this.beatsFailed++;
    this.lastError = reason;
  }

  #checked(): Carried {
    const wanted: Carried = { status: this.#status, load: this.load, performance: this.performance };
    const problems = Object.entries(wanted).flatMap(([name, value]) => {
      const why = unsendable(name as keyof Carried, value);
      return why ? [[name, why] as const] : [];
    });
    for (const [name] of problems) Object.assign(wanted, { [name]: this.#sound[name as keyof Carried] });
    this.#leftOut = problems.map(([name, why]) => `${name} was left out: ${why}`).join("; ");
    this.#sound = wanted;
    return { ...wanted };
  }
}

/** Why a beat cannot carry the value; empty if it can. */
function unsendable(name: keyof Carried, value: unknown): string {
  if (name === "status") return STATUSES.includes(value) ? "" : `${String(value)} is no status`;
  if (name === "load") {
    return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_COUNT ? "" : `${String(value)} is no count`;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "it is no object";
  try {
    const bytes = new TextEncoder().encode(JSON.stringify(value)).length;
    return bytes > MAX_OBJECT_BYTES ? `${bytes} bytes are too many` : "";
  } catch (error) {  // a value of the program's may throw anything while it is encoded
    return String(error);
  }
}

/** Beats for one registration until it ends or is stopped. */
export class Heart {
  readonly #stop = new AbortController();
  readonly #news = new Flag();
  #toldStatus: SelfStatus;
  /** The last beat told of a program that hangs, and so renewed nothing: the first that does must not be late. */
  #hung = false;
  readonly #beating: Promise<void>;

  constructor(private readonly registrar: Registrar, private readonly me: Registration) {
    this.#toldStatus = me.status;
    me.onNews = () => this.me.status !== this.#toldStatus && this.#news.set();
    this.#beating = this.#run();
  }

  /** For good; waits for a beat that is under way. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#beating;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    // The first beat comes at a random moment of the interval: a fleet started together spreads out.
    let waitMs = jittered(this.me.intervalMs / 2, 0.9);
    while (!signal.aborted && !this.me.ended) {
      await this.#news.wait(waitMs, signal);
      this.#news.clear();
      if (!signal.aborted) waitMs = jittered(this.me.intervalMs * ((await this.#beat()) ? 1 : RETRY_SHARE));
    }
  }

  /** One beat; a failure is noted. Whether the next has its usual time. */
  async #beat(): Promise<boolean> {
    try {
      await this.#sendTwice();
      return !this.#hung;
    } catch (error) {
      if (!this.#stop.signal.aborted) this.me.noteFailure(error instanceof Error ? error.message : String(error));
      return false;
    }
  }

  /** Give up one that hangs in time for another, of another gateway where there is one. */
  async #sendTwice(): Promise<void> {
    const patienceMs = Math.max(LEAST_PATIENCE_MS, this.me.intervalMs * PATIENCE_SHARE);
    const { signal } = this.#stop;
    let late = false;
    const send = (own: AbortSignal) => {
      own.addEventListener("abort", () => (late = true));
      return this.#send(own);
    };
    try {
      await within(patienceMs, signal, send);
    } catch (error) {
      if (!late || signal.aborted) throw error;
      await within(patienceMs, signal, send);
    }
  }

  async #send(signal: AbortSignal): Promise<void> {
    const wanted = this.me.status;
    const beat = this.me.beat();
    this.#hung = this.me.hangs(beat);
    try {
      const [reply, refused] = await this.#taken(beat, signal);
      this.#toldStatus = wanted;
      this.me.noteSuccess(refused);
      if (reply.proof && beat.life) this.me.proofs.set(beat.life, reply.proof);  // the key of the former may be dropped
      this.#follow(reply);
    } catch (error) {
      if (error instanceof UnknownInstance) await this.#forgotten(beat, signal);
      else this.#endedBy(error);
    }
  }

  /** The reply to the beat; where the other side refuses what it carries, to a bare one, and why. */
  async #taken(beat: Beat, signal: AbortSignal): Promise<[BeatReply, string]> {
    try {
      return [await this.registrar.heartbeat(this.me.instanceId, beat, signal), ""];
    } catch (error) {
      if (!(error instanceof InvalidInput)) throw error;
      const bare: Beat = { life: beat.life ?? "", tickAgeMs: beat.tickAgeMs ?? 0, proof: beat.proof ?? "" };
      const reply = await this.registrar.heartbeat(this.me.instanceId, bare, signal);
      return [reply, `what the beat carried was refused: ${error.message}`];
    }
  }

  #follow(reply: BeatReply): void {
    const wasDraining = this.me.draining;
    this.me.draining = reply.status === "DRAIN";
    if (this.me.draining && !wasDraining) this.me.onDirective("drain");
  }

  /** The store forgot us: register what we are now, unless it hangs. One removed on purpose is refused. */
  async #forgotten(beat: Beat, signal: AbortSignal): Promise<void> {
    if (this.me.hangs(beat)) return;
    try {
      this.me.begin(await this.registrar.register(this.me.reregistration(), signal));
      this.me.noteSuccess();
    } catch (error) {
      this.#endedBy(error);
    }
  }

  #endedBy(error: unknown): void {
    const directive = error instanceof RemovedInstance ? "removed" : error instanceof FencedInstance ? "fenced" : undefined;
    if (!directive) throw error;
    this.me.ended = directive;
    this.me.onDirective(directive);
  }
}
