/**
 * A player's way through the waiting room: a place, the turn, a ticket, the game server.
 *
 *     const place = await enter("https://roost.example", { userId: "u-17", nickname: "Ann", signature });
 *     for await (const now of place.changes()) show(now.ahead, now.etaSeconds);   // ends with the ticket
 *     const socket = await place.join();
 *
 * The place outlives lost connections, gateways and stores: whoever keeps `receipt` can come back to it.
 */

import type { EntryInput, PlaceReply } from "./api.js";
import { RoostError, StoreError, StoreUnavailable, TokenRefused, WorldClosed, errorOf, isNotNow } from "./errors.js";
import { events } from "./events.js";
import { CONNECT_MS, socketClass, type WebSocketClass } from "./lines.js";
import { Session, type Fetch } from "./session.js";
import { Backoff, pause, within } from "./timing.js";

/** At first, where one has not noticed yet that a line was cut; always, where the answer says nothing. */
const ASK_AGAIN_MS = 1000;
const FIRST_RETRY_MS = 2000;
const LONGEST_RETRY_MS = 30_000;
/** Until a stream that broke is opened again; meanwhile the place is asked for. */
const FIRST_PUSH_RETRY_MS = 5000;
const GIVEN_UP = "the place was given up";

export interface Entering extends Omit<EntryInput, "signature"> {
  /** The login service's word: one, or where a fresh one comes from whenever one is needed. */
  signature?: string | (() => Promise<string>);
}

export interface EnterOptions {
  /** Of an earlier answer: comes back to that place. */
  receipt?: string;
  /** Called with every new receipt, to keep it beyond a crash of the client. */
  onReceipt?: (receipt: string) => void;
  /** Be told of changes (server-sent events) in place of asking; default true. Where it breaks, it asks. */
  push?: boolean;
  /** API token of a backend that asks for its players. Never in a player's hands. */
  token?: string;
  fetch?: Fetch;
}

/** What to do with a ticket: show it at the server, within the time. */
export interface Ticket {
  ticketId: string;
  serverUrl: string;
  expiresInMs: number;
}

/** Take a place in the line of a world, or come back to it. Several gateways are a comma list. */
export async function enter(url: string, who: Entering, options: EnterOptions = {}): Promise<Place> {
  const place = new Place(new Session(url, options.token, options.fetch), who, options);
  await place.enter();
  return place;
}

/** What one person has in a world. Made by `enter`. */
export class Place {
  /** The newest proof of the place. Keep it until the player is in. */
  receipt: string;
  /** The last answer. */
  now: PlaceReply | undefined;
  readonly world: string;
  #hasLeft = false;
  #entering: Promise<PlaceReply> | undefined;
  /** The answer whose ticket was given out: that may be used by now, or over, so only a later answer has one. */
  #givenOut: PlaceReply | undefined;
  /** Between two questions of who was cut off and still counts as inside: most servers notice at once. */
  readonly #cutOff = new Backoff(ASK_AGAIN_MS, LONGEST_RETRY_MS);

  constructor(private readonly session: Session, private readonly who: Entering, private readonly options: EnterOptions = {}) {
    this.world = who.world ?? "main";
    this.receipt = options.receipt ?? "";
  }

  /**
   * Enter, or enter again: the same person has the same place. Whoever has a place, a ticket or a held place shows
   * only the receipt; `TokenRefused` then asks for a fresh signature.
   */
  enter(signal?: AbortSignal): Promise<PlaceReply> {
    this.#hasLeft = false;
    return this.#enterAgain(signal);
  }

  /** Ask about the place. It is also the sign that somebody is there: do so after `nextPollMs`, not sooner. */
  async status(signal?: AbortSignal): Promise<PlaceReply> {
    const params = { query: { userId: this.who.userId, world: this.world }, header: this.#proof() };
    return this.#note(await this.session.ask((api, own) => api.GET("/api/queue/status", { params, signal: own }), { repeatable: true, signal }));
  }

  /** Give up the place or the ticket. An entry that is under way is waited for: it must not arrive after this. */
  async leave(): Promise<void> {
    this.#hasLeft = true;
    await this.#entering?.catch(() => {});
    const params = { query: { userId: this.who.userId, world: this.world }, header: this.#proof() };
    await this.session.ask((api, signal) => api.DELETE("/api/queue/entry", { params, signal }), { repeatable: true });
  }

  /**
   * What the person has, now and whenever it changes or was asked for. Ends with a ticket for a server that takes
   * people, or when the place was given up. Outages cost nothing but time: it goes on asking. A place that is gone is
   * entered again; so is one inside that is held, after a lost connection.
   */
  async *changes(signal: AbortSignal = new AbortController().signal): AsyncGenerator<PlaceReply, void, undefined> {
    const news = this.options.push === false ? undefined : new News(this.session, () => this.#eventsPath(), () => this.#proof());
    if (this.now && this.now !== this.#givenOut) yield this.now;
    while (!signal.aborted && !this.#hasLeft && !this.#hasTicket()) {
      if (news && this.now?.status === "WAITING") {
        for await (const reply of news.listen(signal)) {
          yield this.#note(reply);
          if (reply.status !== "WAITING") break;
        }
        if (this.#hasTicket()) return;
      }
      await pause(this.#waitMs(), signal);
      if (!signal.aborted && !this.#hasLeft) yield await this.#askAgain(signal);
    }
  }

  /** Wait for the turn. Called again, it asks again: it gives a ticket that an answer has named since. */
  async ticket(signal?: AbortSignal): Promise<Ticket> {
    for await (const _ of this.changes(signal));
    signal?.throwIfAborted();
    if (!this.#hasTicket()) throw new RoostError(GIVEN_UP);
    this.#givenOut = this.now;
    const { ticketId, serverUrl, expiresInMs } = this.now!;
    return { ticketId, serverUrl, expiresInMs };
  }

  /**
   * Wait for the turn and connect to the game server, which gets the ticket as the first message: that works in
   * browsers, and keeps it out of access logs. A server that does not answer costs nothing: the next answer names
   * another. A ticket that is refused closes the socket: see `refusalOf`.
   */
  async join(options: { WebSocket?: WebSocketClass; signal?: AbortSignal } = {}): Promise<WebSocket> {
    for (;;) {
      const ticket = await this.ticket(options.signal);
      try {
        return await openSocket(ticket, options.WebSocket);
      } catch (error) {
        if (!(error instanceof StoreError)) throw error;
      }
    }
  }

  // -- inside

  async #enterAgain(signal?: AbortSignal): Promise<PlaceReply> {
    try {
      return await this.#enter(this.receipt && this.now ? "" : await this.#signature(), signal);
    } catch (error) {
      if (!(error instanceof TokenRefused) || !this.receipt || !this.who.signature) throw error;
      return this.#enter(await this.#signature(), signal);
    }
  }

  /** Whoever left while the signature was fetched is not entered. */
  #enter(signature: string, signal?: AbortSignal): Promise<PlaceReply> {
    if (this.#hasLeft) throw new RoostError(GIVEN_UP);
    const body = { ...this.who, world: this.world, signature };
    const params = { header: this.#proof() };
    this.#entering = this.session.ask((api, own) => api.POST("/api/queue/entry", { body, params, signal: own }), { repeatable: true, signal });
    return this.#entering.then(reply => this.#note(reply));
  }

  async #signature(): Promise<string> {
    const { signature = "" } = this.who;
    return typeof signature === "function" ? signature() : signature;
  }

  /** Ask until there is an answer: one of the other side, or a refusal that repeating cannot cure. Who left asks no more. */
  async #askAgain(signal?: AbortSignal): Promise<PlaceReply> {
    const backoff = new Backoff(FIRST_RETRY_MS, LONGEST_RETRY_MS);
    for (;;) {
      if (this.#hasLeft && this.now) return this.now;
      try {
        return await (this.#mustEnter() ? this.#enterAgain(signal) : this.status(signal));
      } catch (error) {
        signal?.throwIfAborted();
        if (this.#hasLeft && this.now) return this.now;
        if (error instanceof TokenRefused && !this.#mustEnter()) this.#note({ ...this.now!, status: "NONE", receipt: "" });
        else if (isPassing(error)) await pause(error.retryAfterMs || backoff.next(), signal);
        else throw error;
      }
    }
  }

  #mustEnter(): boolean {
    return this.now?.status !== "WAITING" && this.now?.status !== "PROMOTED";
  }

  #hasTicket(): boolean {
    return this.now !== this.#givenOut && this.now?.status === "PROMOTED" && this.now.ticketId !== "" && this.now.serverUrl !== "";
  }

  #waitMs(): number {
    if (this.now === this.#givenOut) return ASK_AGAIN_MS;
    if (this.now?.status === "NONE") return 0;
    if (this.now?.status === "ENTERED") return this.now.expiresInMs > 0 ? 0 : this.#cutOff.next();
    return this.now?.nextPollMs || ASK_AGAIN_MS;
  }

  #eventsPath(): string {
    return `/api/queue/events?${new URLSearchParams({ userId: this.who.userId, world: this.world })}`;
  }

  #proof(): Record<string, string> {
    return this.receipt ? { "X-Queue-Receipt": this.receipt } : {};
  }

  #note(reply: PlaceReply): PlaceReply {
    this.now = reply;
    if (reply.status !== "ENTERED") this.#cutOff.reset();
    if (reply.receipt && reply.receipt !== this.receipt) {
      this.receipt = reply.receipt;
      this.options.onReceipt?.(reply.receipt);
    }
    return reply;
  }
}

/** The stream of one place. Where it breaks it is left alone for a while. */
class News {
  #nextAt = 0;
  readonly #backoff = new Backoff(FIRST_PUSH_RETRY_MS, 12 * FIRST_PUSH_RETRY_MS);

  constructor(private readonly session: Session, private readonly path: () => string, private readonly proof: () => Record<string, string>) {}

  /** Answers until the stream ends, for whatever reason: who asks next hears of it. */
  async *listen(signal: AbortSignal): AsyncGenerator<PlaceReply, void, undefined> {
    if (performance.now() < this.#nextAt) return;
    try {
      for await (const { data } of events(this.session, this.path(), this.proof(), signal)) {
        this.#backoff.reset();
        yield JSON.parse(data) as PlaceReply;
      }
    } catch {
      // a refusal is told again to whoever asks
    }
    this.#nextAt = performance.now() + this.#backoff.next();
  }
}

/** Whether the same call may go better later. */
function isPassing(error: unknown): error is RoostError {
  return isNotNow(error) || error instanceof StoreError || error instanceof WorldClosed;
}

function openSocket(ticket: Ticket, given?: WebSocketClass): Promise<WebSocket> {
  const url = new URL(ticket.serverUrl);
  url.searchParams.set("ticket", "message");
  const socket = new (socketClass(given))(url.href);
  const opened = new Promise<void>((resolve, reject) => {
    socket.addEventListener("open", () => resolve(), { once: true });
    socket.addEventListener("close", () => reject(new StoreError(`${ticket.serverUrl} hung up`)), { once: true });
  });
  return within(CONNECT_MS, undefined, async signal => {
    signal.addEventListener("abort", () => socket.close());
    await opened;
    socket.send(JSON.stringify({ ticketId: ticket.ticketId }));
    return socket;
  }).catch(error => {
    throw error instanceof StoreError ? error : new StoreUnavailable(`${ticket.serverUrl} does not answer`);
  });
}

/** The refusal of a ticket that closed a socket (`event.code` is 4000 above the status); undefined: it was none. */
export function refusalOf(event: { code: number; reason: string }): RoostError | undefined {
  if (event.code < 4400 || event.code >= 4600) return undefined;
  return errorOf({ code: event.reason, message: `the server refused: ${event.reason}`, hint: "", requestId: "" }, event.code - 4000);
}
