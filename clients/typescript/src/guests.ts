/** Who is on a game server, and who left it, until the waiting room knows. */

import type { How } from "./api.js";
import { Forbidden, NotAuthenticated, isRefusal } from "./errors.js";

/** Leaves that are on their way to the waiting room at the same time. */
const TOLD_AT_ONCE = 32;

/** Somebody who was let in. */
export interface Guest {
  readonly userId: string;
  readonly nickname: string;
  readonly region: string;
  readonly connection: string;
  readonly life: string;
}

/** Who left, until the waiting room knows it. Of a life before the present one it holds nothing. */
export class Leaves {
  /** By connection. */
  readonly #untold = new Map<string, { guest: Guest; how: How }>();
  #telling: Promise<void> | undefined;

  /** `life` is the server's present one. */
  constructor(
    private readonly release: (guest: Guest, how: How) => Promise<unknown>,
    private readonly life: () => string,
  ) {}

  has(connection: string): boolean {
    return this.#untold.has(connection);
  }

  add(guest: Guest, how: How): void {
    this.#untold.set(guest.connection, { guest, how });
  }

  /** Whose place inside is to be held, which the waiting room does not know yet. */
  get dropped(): number {
    const life = this.life();
    return [...this.#untold.values()].filter(one => one.how === "dropped" && one.guest.life === life).length;
  }

  /** Tell of all, of each once; what cannot be told now stays. Who calls while somebody tells waits for the same telling. */
  tell(): Promise<void> {
    this.#telling ??= this.#tellAll();
    return this.#telling;
  }

  async #tellAll(): Promise<void> {
    await Promise.resolve();  // so that `#telling` is set before it can be taken back
    const tried = new Set<string>();
    for (;;) {
      const part = [...this.#untold.values()].filter(one => !tried.has(one.guest.connection)).slice(0, TOLD_AT_ONCE);
      if (!part.length) break;
      part.forEach(one => tried.add(one.guest.connection));
      const mayGoOn = await Promise.all(part.map(one => this.#tell(one)));
      if (!mayGoOn.every(Boolean)) break;
    }
    this.#telling = undefined;  // in the same turn as the last look: nobody is missed in between
  }

  /** Whether others may be told now. */
  async #tell(one: { guest: Guest; how: How }): Promise<boolean> {
    try {
      await this.release(one.guest, one.how);
    } catch (error) {
      // The proof of one life may be no good, that of others is; a former life nothing will ever prove again.
      if (error instanceof Forbidden && one.guest.life === this.life()) return true;
      if (!isRefusal(error) || error instanceof NotAuthenticated) return false;
    }
    if (this.#untold.get(one.guest.connection) === one) this.#untold.delete(one.guest.connection);
    return true;
  }
}
