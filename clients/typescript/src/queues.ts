/** Waiting in line, for producers (`Room`) and for consumers (`Queue`). */

import { deferred, type Deferred } from "./timing.js";

/** At most so many at once; the others wait, first come, first served. */
export class Room {
  readonly #waiting: Deferred<void>[] = [];

  constructor(private free: number) {}

  async enter(): Promise<void> {
    if (this.free > 0) {
      this.free--;
      return;
    }
    const turn = deferred<void>();
    this.#waiting.push(turn);
    await turn.promise;
  }

  leave(): void {
    const next = this.#waiting.shift();
    if (next) next.resolve();
    else this.free++;
  }
}

/** What was put and not taken yet, at most `most`: then the oldest is dropped, and `onDrop` called. */
export class Queue<Item> {
  #items: Item[] = [];
  #taking: Deferred<void> | undefined;
  #isOver = false;

  constructor(private readonly most: number, private readonly onDrop: () => void) {}

  put(item: Item): void {
    if (this.#items.length >= this.most) {
      this.#items.shift();
      this.onDrop();
    }
    this.#items.push(item);
    this.#taking?.resolve();
  }

  end(): void {
    this.#isOver = true;
    this.#taking?.resolve();
  }

  /** Each item once, also if several take; ends when the queue is over and empty. */
  async *all(): AsyncGenerator<Item, void, undefined> {
    for (;;) {
      while (this.#items.length) yield this.#items.shift()!;
      if (this.#isOver) return;
      const waitedFor = (this.#taking ??= deferred<void>());
      await waitedFor.promise;
      if (this.#taking === waitedFor) this.#taking = undefined;  // else another waits for the next already
    }
  }
}
