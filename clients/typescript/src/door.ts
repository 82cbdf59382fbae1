/**
 * A game server's door to a waiting room. The rules of the ledger are in here, so nobody can get them wrong.
 *
 *     const door = await client.door(me, { url: "wss://game.example/501" });
 *     const guest = await door.consume(ticket);        // TicketRefused, ServerFull, AlreadyConnected
 *     await door.leave(guest);                         // "dropped" holds their place for a while
 *
 * A report says how many people are here (n), and up to which consume that is all of them (k): the last number such
 * that every consume up to it was in the table when n was counted. So a late report makes the room too careful, never
 * too generous. A number that the door never learned (its answer was lost for good) is passed over by the reply to a
 * report during which no consume was under way, begun or unsettled: then everybody whom the store let in is in the
 * table or has left.
 */

import type { ConsumeInput, ConsumeReply, How, ReleaseInput, ReportInput, ReportReply } from "./api.js";
import {
  AlreadyConnected, FencedInstance, InvalidInput, OutcomeUnknown, RoostError, ServerFull, ServerNotReported,
  StoreError, StoreUnavailable, TicketRefused, TicketUsed, isNotNow, isRefusal,
} from "./errors.js";
import { Leaves, type Guest } from "./guests.js";
import type { Registration } from "./heart.js";
import { ticketUser } from "./passes.js";
import type { Session } from "./session.js";
import { Backoff, Flag, jittered, pause } from "./timing.js";

const REPORT_INTERVAL_MS = 5000;
/** After a change the next report follows this soon; changes in between ride along. */
const SOON_MS = 200;
const ATTEMPTS = 4;
/** Until a consume whose answer was lost is asked about again. */
const SETTLE_MS = 1000;

export interface DoorOptions {
  /** Default `main`. */
  world?: string;
  /** How many people it takes; by default what the registration says. */
  capacity?: number;
  /** Where players connect with their tickets. */
  url?: string;
  reportIntervalMs?: number;
}

/** The waiting room as a game server sees it. Every verb may be repeated with the same input. */
export interface Admission {
  consume(given: ConsumeInput): Promise<ConsumeReply>;
  release(world: string, serverId: string, given: ReleaseInput): Promise<ReleaseReply>;
  report(world: string, serverId: string, given: ReportInput): Promise<ReportReply>;
}
type ReleaseReply = { heldMs: number };

/** `Admission` through a gateway. */
export function admission(session: Session): Admission {
  const again = { repeatable: true };
  return {
    consume: body => session.ask((api, signal) => api.POST("/api/queue/tickets/consume", { body, signal }), again),
    release: (world, serverId, body) => {
      const params = { path: { world, serverId } };
      const path = "/queue/v1/worlds/{world}/servers/{serverId}/release";
      return session.ask((api, signal) => api.POST(path, { params, body, signal }), again);
    },
    report: (world, serverId, body) => {
      const params = { path: { world, serverId } };
      const path = "/queue/v1/worlds/{world}/servers/{serverId}/report";
      return session.ask((api, signal) => api.POST(path, { params, body, signal }), again);
    },
  };
}

/** Up to which consume everybody let in is in the table, or has left: `k` of a report. */
export class Counted {
  k = 0;
  /** Known consumes behind one of which nothing is known yet. */
  #later = new Set<number>();

  note(number: number): void {
    this.#later.add(number);
    this.reach(this.k);
  }

  /** Nothing up to this one is missing; true if that is news. */
  reach(number: number): boolean {
    const before = this.k;
    this.k = Math.max(this.k, number);
    while (this.#later.has(this.k + 1)) this.k++;
    for (const later of this.#later) if (later <= this.k) this.#later.delete(later);
    return this.k > before;
  }
}

/** Lets people in by their tickets, counts them and reports. */
export class Door {
  /** By user id. */
  readonly guests = new Map<string, Guest>();
  readonly world: string;
  capacity: number;
  /** Set it to take nobody new: its capacity is then what it holds. An operator's drain does so too. */
  drain = false;
  /** Whether the waiting room knows this life of the server; until then it brings no capacity. */
  isKnown = false;

  readonly #room: Admission;
  readonly #leaves = new Leaves((guest, how) => this.#release(guest, how), () => this.#life);
  readonly #changed = new Flag();
  readonly #closing = new AbortController();
  /** Consumes under way, by connection: the first, or a retry. */
  readonly #asking = new Map<string, number>();
  /** They find out what became of a consume whose answer was lost; with its connection. */
  readonly #settling = new Map<Promise<void>, string>();
  readonly #untilKnown: Backoff;
  readonly #intervalMs: number;
  readonly #url: string;
  #life: string;
  #counted = new Counted();
  #reportNumber = 0;
  /** Consumes begun so far. */
  #consumes = 0;
  #reporting: Promise<void> | undefined;

  constructor(room: Session | Admission, private readonly me: Registration, options: DoorOptions = {}) {
    this.#room = "consume" in room ? room : admission(room);
    this.world = options.world ?? "main";
    this.capacity = options.capacity ?? me.given.capacity ?? 0;
    if (this.capacity <= 0) throw new InvalidInput("a server without a capacity takes nobody: register with one, or name it here");
    this.#url = options.url ?? "";
    this.#intervalMs = options.reportIntervalMs ?? REPORT_INTERVAL_MS;
    this.#untilKnown = new Backoff(SOON_MS, this.#intervalMs);
    this.#life = me.life;
  }

  /** Report, and go on reporting. A room that does not answer now is told later. */
  async open(): Promise<void> {
    await this.report().catch(error => {
      if (!(error instanceof StoreError) && !isNotNow(error)) throw error;
    });
    this.#reporting = this.#keepReporting();
  }

  /** Everybody here has dropped out, and its capacity is taken back. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all([this.#reporting, ...this.#settling.keys()]);
    for (const guest of this.guests.values()) this.#leaves.add(guest, "dropped");
    this.guests.clear();
    await this.tellLeaves();
    this.capacity = 0;
    await this.report().catch(() => {});  // its lease, or the next life, will say the same
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Let the holder of the ticket in; a refusal says what to do next. */
  async consume(ticket: string, connection: string = crypto.randomUUID()): Promise<Guest> {
    if (this.#leaves.has(connection)) throw new TicketRefused("they are being sent back to the line");
    const life = this.me.life;
    this.#consumes++;
    this.#asking.set(connection, (this.#asking.get(connection) ?? 0) + 1);
    let reply: ConsumeReply;
    try {
      reply = await this.#ask(ticket, connection, life);
    } catch (error) {
      if (isUncertain(error)) this.#settleLater(ticket, connection, life);
      // The ticket is a good one, so what it says is true.
      else if (error instanceof TicketUsed && this.guests.has(ticketUser(ticket))) {
        throw new AlreadyConnected("this person is connected here already");
      }
      throw error;
    } finally {
      this.#asked(connection);
    }
    return this.#admit(reply, connection, life);
  }

  /** They are gone from here; what becomes of their place depends on how. */
  async leave(guest: Guest, how: How = "clean"): Promise<void> {
    if (this.guests.get(guest.userId)?.connection === guest.connection) {
      this.guests.delete(guest.userId);
      this.#changed.set();
    }
    this.#leaves.add(guest, how);
    await this.tellLeaves();
  }

  /** Tell of all who left; what cannot be told now is told with the next report. */
  tellLeaves(): Promise<void> {
    return this.#leaves.tell();
  }

  /** Say how many people are here, and which consumes that counts. */
  async report(): Promise<void> {
    this.#followLife();
    this.#reportNumber = Math.max(this.#reportNumber + 1, Date.now() * 1000);
    const given = this.#reportInput();
    const begun = this.#consumes;
    const wasQuiet = !this.#asking.size && !this.#settling.size;
    const reply = await this.#room.report(this.world, this.me.serverId, given);
    const isQuiet = wasQuiet && begun === this.#consumes && given.life === this.#life;
    if (isQuiet && this.#counted.reach(reply.consumed)) this.#changed.set();  // the room must hear of it
    for (const one of reply.asking) this.#answer(one.userId, one.connection, given.life);
    this.isKnown = reply.known;
    if (reply.known) this.#untilKnown.reset();
  }

  /** Whether it takes nobody new, by its own will or an operator's. */
  get draining(): boolean {
    return this.drain || this.me.draining || this.me.status === "draining";
  }

  /** Consumes of which it is not known yet what became of them. */
  get settling(): number {
    return this.#settling.size;
  }

  // -- inside

  #reportInput(): ReportInput {
    return {
      life: this.#life,
      number: this.#reportNumber,
      capacity: this.draining ? Math.min(this.capacity, this.guests.size) : this.capacity,
      // Who dropped out is counted until the waiting room holds their place inside: else it is given away.
      users: this.guests.size + this.#leaves.dropped,
      counted: this.#counted.k,
      url: this.#url,
      proof: this.#proof(this.#life),
    };
  }

  /**
   * In the table first, counted after: a report in between may say too little of k, never of n. A store that lost
   * its last writes may let in whom we have, or more than we take.
   */
  #admit(reply: ConsumeReply, connection: string, life: string): Guest {
    const guest = guestOf(reply, connection, life);
    const there = this.guests.get(guest.userId);
    if (there) {
      this.#note(reply.number, life);
      if (there.connection === connection && there.life === life) return there;
      throw new AlreadyConnected("this person is connected here already");
    }
    if (life !== this.me.life) {
      this.#handBack(guest, reply.number);
      throw new TicketRefused("this server was registered again meanwhile");
    }
    if (this.guests.size >= this.capacity) {
      this.#handBack(guest, reply.number);
      throw new ServerFull(`server ${this.me.serverId} takes nobody more`);
    }
    this.guests.set(guest.userId, guest);
    this.#note(reply.number, life);
    return guest;
  }

  /** They were let in and are not here: they stand where they stood. */
  #handBack(guest: Guest, number: number): void {
    this.#leaves.add(guest, "failed");
    this.#note(number, guest.life);
  }

  /** Somebody asks to come in who is inside by what the store knows: or it forgot that they left. */
  #answer(userId: string, connection: string, life: string): void {
    if (this.guests.has(userId) || this.#isEntering(connection) || this.#leaves.has(connection)) return;
    this.#leaves.add({ userId, nickname: "", region: "", connection, life }, "dropped");
    this.#changed.set();
  }

  /** Whether the store may have let them in, and they are in no table yet. */
  #isEntering(connection: string): boolean {
    return this.#asking.has(connection) || [...this.#settling.values()].includes(connection);
  }

  #asked(connection: string): void {
    const others = this.#asking.get(connection)! - 1;
    if (others) this.#asking.set(connection, others);
    else this.#asking.delete(connection);
  }

  #note(number: number, life: string): void {
    if (life === this.#life) this.#counted.note(number);
    this.#changed.set();
  }

  #proof(life: string): string {
    return this.me.proofs.get(life) ?? "";
  }

  /** A new life begins with everybody who is here, and counts its consumes from 0. */
  #followLife(): void {
    if (this.me.life === this.#life) return;
    this.#life = this.me.life;
    this.#counted = new Counted();
    this.#reportNumber = 0;
  }

  #consumeInput(ticket: string, connection: string, life: string): ConsumeInput {
    return { ticketId: ticket, serverId: this.me.serverId, life, connection, world: this.world, proof: this.#proof(life) };
  }

  /** Consume, again and again while the answer gets lost: the same connection gets the same answer. */
  async #ask(ticket: string, connection: string, life: string): Promise<ConsumeReply> {
    const given = this.#consumeInput(ticket, connection, life);
    const backoff = new Backoff(50, 1000);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#room.consume(given);
      } catch (error) {
        const isUnreported = error instanceof ServerNotReported;
        const isLost = error instanceof OutcomeUnknown || error instanceof StoreUnavailable;
        if (attempt === ATTEMPTS || !(isUnreported || isLost)) throw error;
        if (isUnreported) await this.report();
        await pause(backoff.next());
      }
    }
  }

  #settleLater(ticket: string, connection: string, life: string): void {
    const settling: Promise<void> = this.#settle(this.#consumeInput(ticket, connection, life)).finally(() => {
      this.#settling.delete(settling);
    });
    this.#settling.set(settling, connection);
  }

  /** Find out what became of a consume whose answer was lost; whom no retry brought in goes back. */
  async #settle(given: ConsumeInput): Promise<void> {
    while (!this.#closing.signal.aborted) {
      await pause(jittered(SETTLE_MS, 0.5), this.#closing.signal);
      try {
        const reply = await this.#room.consume(given);
        if (this.#asking.has(given.connection)) continue;  // the retry may bring them in, or leave them inside: look again after it
        const isHere = this.guests.get(reply.userId)?.connection === given.connection;
        if (isHere || this.#leaves.has(given.connection)) this.#note(reply.number, given.life);
        else this.#handBack(guestOf(reply, given.connection, given.life), reply.number);
        break;
      } catch (error) {
        if (isRefusal(error)) break;  // a refusal: they are not inside
      }
    }
  }

  #release(guest: Guest, how: How): Promise<unknown> {
    const { userId, life, connection } = guest;
    return this.#room.release(this.world, this.me.serverId, { userId, life, connection, how, proof: this.#proof(life) });
  }

  /** Wait for the time or for a change, then tell the waiting room. A failed report is due at once. */
  async #keepReporting(): Promise<void> {
    const { signal } = this.#closing;
    const afterFailure = new Backoff(100, 2000);
    while (!signal.aborted) {
      await this.#changed.wait(this.isKnown ? jittered(this.#intervalMs) : this.#untilKnown.next(), signal);
      await pause(SOON_MS, signal);
      if (signal.aborted) return;
      this.#changed.clear();
      try {
        await this.tellLeaves();
        await this.report();
        afterFailure.reset();
      } catch (error) {
        if (error instanceof FencedInstance) continue;  // this life is over; a new one, if any, reports
        this.#changed.set();  // a room that forgot something must hear of it before it lets people in
        await pause(afterFailure.next(), signal);
      }
    }
  }
}

function guestOf(reply: ConsumeReply, connection: string, life: string): Guest {
  return { userId: reply.userId, nickname: reply.nickname, region: reply.region, connection, life };
}

/** Whether they may be inside all the same: nobody who was let in may be forgotten. */
function isUncertain(error: unknown): boolean {
  return !(error instanceof RoostError) || error instanceof OutcomeUnknown || error instanceof StoreUnavailable;
}
