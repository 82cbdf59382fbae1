/**
 * A player at a gate.
 *
 *     const player = await play("wss://gate-1.example,wss://gate-2.example", token);
 *     const total = await player.request({ op: "add", n: 2 });
 *     for await (const push of player.pushes()) …
 *
 * Messages are numbered. When the connection is lost the player connects again, to the next gate of the list, shows
 * its resume token and sends again what has no answer, under the same numbers: in order, executed once. A gate that
 * refuses one of those knows nothing of its first attempt: it ends with `OutcomeUnknown`.
 */

import { GateRefused, InvalidInput, OutcomeUnknown, RoostError, StoreError, StoreUnavailable } from "./errors.js";
import { gateUrls, openLine, type Line, type LineListener, type WebSocketClass } from "./lines.js";
import { decode, encode } from "./msgpack.js";
import { Queue, Room } from "./queues.js";
import { Backoff, deferred, pause, type Deferred } from "./timing.js";

/** Messages without an answer; who sends more waits. */
const MAX_PENDING = 128;
/** Pushes that nobody has read; then the oldest is dropped, and counted. */
const MAX_PUSHES = 10_000;
/** How long the first welcome may take; after it the player tries for ever. */
const FIRST_MS = 20_000;
const WELCOME_MS = 10_000;
const PING_MS = 10_000;
/** A gate that says nothing for so long, not even to a ping, is gone. */
const SILENT_MS = 2 * PING_MS;
const BACKOFF_CAP_MS = 1000;

/** Farewells after which the player connects again. */
const COME_AGAIN = new Set(["DRAINING", "SLOW_READER", "UNAVAILABLE", "TOO_MANY_REQUESTS", "REQUEST_TIMEOUT"]);

/** The one refusal by which a home says that it has judged the number. */
const FAILED = "FAILED";

/** A login token, or where a fresh one (or a ticket) comes from whenever one is needed. */
export type Token = string | (() => Promise<string>);

/** What a home sent unasked. */
export interface Push {
  type: string;
  body: unknown;
  epoch: number;
  n: number;
}

/** An answer with what it rests on. */
export interface Reply {
  result: unknown;
  seq: number;
  /** How safe it is: `write-back:<ms>`, `journal` or `write-through`. */
  durability: string;
  epoch: number;
}

/** How the user stood with a service type at the last login. */
export interface Standing {
  lastSeq: number;
  reason: string;
  durability: string;
  epoch: number;
}

export interface PlayOptions {
  /** The service types that it will talk to, by default the gate's own. */
  types?: readonly string[];
  /** Goes on with the session of another player object, whose messages without an answer are then not known here. */
  resume?: string;
  /** Where the runtime has none of its own (Node 20): a class with the WebSocket interface of browsers. */
  WebSocket?: WebSocketClass;
}

interface Fault {
  code: string;
  message?: string;
  retryAfterMs?: number;
}

interface FromGate {
  welcome?: { user: string; session: string; resume: string; types: Record<string, Standing>; maxBytes?: number };
  seq?: number;
  type?: string;
  result?: unknown;
  durability?: string;
  epoch?: number;
  error?: Fault;
  push?: unknown;
  n?: number;
  resume?: string;
  bye?: Fault;
}

interface Waiting {
  data: Uint8Array;
  answer: Deferred<Reply>;
  /** The first connection on which it went out, counted as `connects` does; 0: on none yet. */
  sentOn: number;
}

/** Log in at a gate (`ws://host:8410`, `wss://…`, in Node also `tcp://host:8411`; several are a comma list). */
export async function play(url: string, token: Token = "", options: PlayOptions = {}): Promise<Player> {
  const player = new Player(url, token, options);
  await player.open();
  return player;
}

/** One user at a gate. Made by `play`. */
export class Player {
  /** The token with which this session goes on, anywhere. */
  resume: string;
  user = "";
  session = "";
  types: Record<string, Standing> = {};
  /** How often it was welcomed. */
  connects = 0;
  droppedPushes = 0;
  /** Why it does not connect any more. */
  ended: RoostError | undefined;

  readonly #urls: string[];
  readonly #options: PlayOptions;
  /** By type and number, in the order of sending. */
  readonly #pending = new Map<string, Waiting>();
  readonly #room = new Room(MAX_PENDING);
  readonly #next = new Map<string, number>();
  readonly #pushes = new Queue<Push>(MAX_PUSHES, () => this.droppedPushes++);
  readonly #welcomed = deferred<void>();
  readonly #closing = new AbortController();
  readonly #backoff = new Backoff(50, BACKOFF_CAP_MS);
  #token: Token;
  #line: Line | undefined;
  #running: Promise<void> | undefined;
  #maxBytes = 0;
  /** Whether the present connection was welcomed. */
  #isIn = false;

  constructor(url: string, token: Token, options: PlayOptions = {}) {
    this.#urls = gateUrls(url);
    this.#token = token;
    this.#options = options;
    this.resume = options.resume ?? "";
  }

  /** Resolves with the first welcome. */
  async open(): Promise<void> {
    this.#running = this.#keepConnected();
    const timer = setTimeout(() => this.#end(new StoreUnavailable(`no gate let this player in within ${FIRST_MS / 1000} s`)), FIRST_MS);
    try {
      await this.#welcomed.promise;
    } catch (error) {
      await this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Log out and hang up; what has no answer yet ends with `OutcomeUnknown`. */
  async close(): Promise<void> {
    this.#line?.send(encode({ logout: true }));
    this.#end(new GateRefused("CLOSED", "the player was closed"));
    await this.#running;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  // -- what a player does

  /** Send a message and wait for its result. `GateRefused`, or `OutcomeUnknown`. */
  async request(body: unknown, type = ""): Promise<unknown> {
    return (await this.ask(body, type)).result;
  }

  /** `request` with everything that the answer says. */
  async ask(body: unknown, type = ""): Promise<Reply> {
    return (await this.send(body, type)).answer;
  }

  /** Send a message; messages are executed in the order of these calls. `answer` gets its answer. */
  async send(body: unknown, type = ""): Promise<{ seq: number; answer: Promise<Reply> }> {
    const to = type || (Object.keys(this.types)[0] ?? "");
    if (!this.#next.has(to)) throw new InvalidInput(`this player did not log in to "${to}": name it in the option types`);
    await this.#room.enter();
    try {
      if (this.ended) throw this.ended;
      const seq = this.#next.get(to)!;
      const waiting = { data: this.#encoded(seq, to, body), answer: deferred<Reply>(), sentOn: 0 };
      this.#next.set(to, seq + 1);
      this.#pending.set(`${to}\0${seq}`, waiting);
      if (this.#line) this.#transmit(this.#line, waiting);  // what is lost goes again after the next welcome
      return { seq, answer: waiting.answer.promise };
    } catch (error) {
      this.#room.leave();
      throw error;
    }
  }

  /** What the homes send unasked, until the player ends. */
  pushes(): AsyncGenerator<Push, void, undefined> {
    return this.#pushes.all();
  }

  #transmit(line: Line, waiting: Waiting): void {
    waiting.sentOn ||= this.connects;
    line.send(waiting.data);
  }

  #encoded(seq: number, type: string, body: unknown): Uint8Array {
    const data = encode({ seq, type, body: body ?? null });
    if (data.length > this.#maxBytes) throw new InvalidInput(`a message of ${data.length} bytes; the gate takes ${this.#maxBytes}`);
    return data;
  }

  // -- the connection

  async #keepConnected(): Promise<void> {
    while (!this.ended) {
      this.#isIn = false;
      try {
        await this.#serve(this.#urls[0]!);
      } catch (error) {
        if (!this.#isWorthRepeating(error)) this.#end(asRoost(error));
      }
      this.#urls.push(this.#urls.shift()!);
      if (!this.ended) await pause(this.#backoff.next(), this.#closing.signal);
    }
  }

  /** Of what came from the token's source: its failures end only a player that never was in. */
  #isWorthRepeating(error: unknown): boolean {
    if (error instanceof GateRefused) return this.#mayComeAgain(error);
    return !(error instanceof InvalidInput) && (error instanceof StoreError || this.connects > 0);
  }

  #mayComeAgain(error: GateRefused): boolean {
    if (error.reason === "TAKEN_OVER" && !this.#isIn) return true;  // by an earlier attempt of our own, most likely
    if (error.reason === "TOKEN_REFUSED" && this.resume && this.#token) {
      this.resume = "";  // too old: a new session, and nobody knows what became of the old one's messages
      this.#failPending(new OutcomeUnknown("the session could not be resumed"));
      return true;
    }
    const isTicket = error.reason === "TICKET_REFUSED" || error.reason === "TICKET_USED";
    if (isTicket && typeof this.#token === "function" && this.resume) return true;
    return COME_AGAIN.has(error.reason);
  }

  /** One connection from its login to its end; throws why it ended. */
  async #serve(url: string): Promise<void> {
    const login = encode(await this.#login());
    const visit = new Visit(said => this.#take(said, visit), this.#closing.signal);
    const line = await openLine(url, visit, this.#options.WebSocket);
    try {
      visit.begin(line, login);
      await visit.over;
    } finally {
      this.#line = undefined;
      visit.finish();
      line.close();
    }
  }

  async #login(): Promise<Record<string, unknown>> {
    const isFunction = typeof this.#token === "function";
    const login = typeof this.#token === "function" ? await this.#token() : this.#token;
    const said = { login: this.resume && !isFunction ? "" : login, types: this.#options.types ?? [] };
    return this.resume ? { ...said, resume: this.resume } : said;
  }

  #take(said: FromGate, visit: Visit): void {
    if (said.resume) this.resume = said.resume;
    if (said.bye) visit.fail(new GateRefused(said.bye.code, said.bye.message, said.bye.retryAfterMs));
    else if (said.welcome) this.#welcome(said.welcome, visit);
    else if (said.push !== undefined) this.#pushes.put({ type: said.type ?? "", body: said.push, epoch: said.epoch ?? 0, n: said.n ?? 0 });
    else if (said.error) this.#settle(said, waiting => waiting.answer.reject(this.#judged(waiting, raised(said.error!))));
    else if (said.seq) this.#settle(said, waiting => waiting.answer.resolve(replyOf(said)));
  }

  #welcome(welcome: NonNullable<FromGate["welcome"]>, visit: Visit): void {
    ({ user: this.user, session: this.session, resume: this.resume, types: this.types } = welcome);
    this.#maxBytes = welcome.maxBytes ?? 65_536;
    for (const [type, standing] of Object.entries(welcome.types)) {
      this.#next.set(type, Math.max(this.#next.get(type) ?? 0, standing.lastSeq + 1));
    }
    this.connects++;
    this.#isIn = true;
    this.#backoff.reset();
    visit.isIn();
    for (const waiting of this.#pending.values()) this.#transmit(visit.line, waiting);  // everything without an answer, in order
    this.#line = visit.line;
    this.#welcomed.resolve();
  }

  #settle(said: FromGate, how: (waiting: Waiting) => void): void {
    const key = `${said.type ?? ""}\0${said.seq ?? 0}`;
    const waiting = this.#pending.get(key);
    if (!waiting) return;
    this.#pending.delete(key);
    this.#room.leave();
    how(waiting);
  }

  /** A gate speaks for the attempt that came to it; of one on an earlier connection the home knows. */
  #judged(waiting: Waiting, error: RoostError): RoostError {
    const isAgain = waiting.sentOn > 0 && waiting.sentOn < this.connects;
    if (!isAgain || !(error instanceof GateRefused) || error.reason === FAILED) return error;
    return new OutcomeUnknown(`it was sent before this connection, on which it is refused: ${error.message}`);
  }

  // -- the end

  #failPending(error: RoostError): void {
    for (const { answer } of this.#pending.values()) {
      this.#room.leave();
      answer.reject(error);
    }
    this.#pending.clear();
  }

  #end(error: RoostError): void {
    if (this.ended) return;
    this.ended = error;
    this.#failPending(new OutcomeUnknown(`the player ended: ${error.message}`));
    this.#pushes.end();
    this.#welcomed.reject(error);
    this.#closing.abort();
  }
}

/** One connection while it lasts: what is heard on it, that it is not silent, and why it ended. */
class Visit implements LineListener {
  line!: Line;
  readonly #over = deferred<void>();
  #timers: ReturnType<typeof setInterval>[] = [];
  #heardAt = performance.now();

  constructor(private readonly take: (said: FromGate) => void, private readonly closing: AbortSignal) {
    closing.addEventListener("abort", this.#close);
    if (closing.aborted) this.#close();
  }

  /** Rejects with why it ended. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  begin(line: Line, login: Uint8Array): void {
    this.line = line;
    line.send(login);
    this.#timers.push(setTimeout(() => this.fail(new StoreUnavailable("the gate sent no welcome in time")), WELCOME_MS));
  }

  /** Welcomed: from now on it is pinged, and silence ends it. */
  isIn(): void {
    clearTimeout(this.#timers.pop());
    this.#timers.push(setInterval(() => this.#ping(), PING_MS));
  }

  onMessage(data: Uint8Array): void {
    this.#heardAt = performance.now();
    try {
      this.take(decode(data) as FromGate);
    } catch (error) {
      this.fail(new StoreUnavailable(`the gate said what cannot be read: ${asRoost(error).message}`));
    }
  }

  onEnd(why: string): void {
    this.fail(new StoreUnavailable(why));
  }

  /** The first reason counts. */
  fail(error: RoostError): void {
    this.#over.reject(error);
  }

  finish(): void {
    this.closing.removeEventListener("abort", this.#close);
    this.#timers.forEach(clearInterval);
  }

  readonly #close = () => this.fail(new StoreUnavailable("the player was closed"));

  #ping(): void {
    if (performance.now() - this.#heardAt > SILENT_MS) this.fail(new StoreUnavailable("the gate says nothing any more"));
    else this.line.send(encode({ ping: 0 }));
  }
}

function raised(fault: Fault): RoostError {
  if (fault.code === "OUTCOME_UNKNOWN") return new OutcomeUnknown(fault.message);
  return new GateRefused(fault.code, fault.message, fault.retryAfterMs);
}

function replyOf(said: FromGate): Reply {
  return { result: said.result ?? null, seq: said.seq ?? 0, durability: said.durability ?? "", epoch: said.epoch ?? 0 };
}

function asRoost(error: unknown): RoostError {
  return error instanceof RoostError ? error : new StoreUnavailable(error instanceof Error ? error.message : String(error));
}
