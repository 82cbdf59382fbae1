/** Waiting: how long before the next attempt, and waiting that can be ended. */

/**
 * Delays that double from `baseMs` to `capMs`, each drawn from its upper half. The jitter keeps a fleet that lost
 * the same server from returning in the same instant.
 */
export class Backoff {
  #attempt = 0;

  constructor(private readonly baseMs = 50, private readonly capMs = 2000) {}

  next(): number {
    const ceiling = Math.min(this.capMs, this.baseMs * 2 ** Math.min(this.#attempt++, 32));
    return ceiling * (0.5 + Math.random() / 2);
  }

  reset(): void {
    this.#attempt = 0;
  }
}

/** `intervalMs` give or take `share` of it, so that loops started together drift apart. */
export function jittered(intervalMs: number, share = 0.1): number {
  return intervalMs * (1 - share + 2 * share * Math.random());
}

/** Resolves after the time, or as soon as the signal is aborted; it never rejects. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve();
  return new Promise(resolve => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end);
  });
}

/**
 * Work under a signal of its own, which is aborted along with `outer`. NB: in place of `AbortSignal.any`, which in
 * Node 20 keeps what it made as long as the outer signal lives.
 */
export async function linked<Value>(
  outer: AbortSignal | undefined, work: (own: AbortController) => Promise<Value>,
): Promise<Value> {
  const own = new AbortController();
  const end = () => own.abort(outer?.reason);
  if (outer?.aborted) end();
  outer?.addEventListener("abort", end);
  try {
    return await work(own);
  } finally {
    outer?.removeEventListener("abort", end);
  }
}

/** Work that is aborted when the time is over, and not waited for any longer, whether it heeds that or not. */
export function within<Value>(
  ms: number, outer: AbortSignal | undefined, work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  return linked(outer, async own => {
    const timer = setTimeout(() => own.abort(new Error("no answer in time")), ms);
    const over = deferred<never>();
    own.signal.addEventListener("abort", () => over.reject(own.signal.reason as Error));
    try {
      return await Promise.race([work(own.signal), over.promise]);
    } finally {
      clearTimeout(timer);
    }
  });
}

/** A flag that can be waited for: `set` wakes whoever waits, and whoever comes before `clear`. */
export class Flag {
  #isSet = false;
  #wake = new Set<() => void>();

  set(): void {
    this.#isSet = true;
    for (const wake of this.#wake) wake();
  }

  clear(): void {
    this.#isSet = false;
  }

  /** Resolves when it is set, when the time is over, or when the signal is aborted. */
  async wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isSet) return;
    await linked(signal, async woken => {
      const wake = () => woken.abort();
      this.#wake.add(wake);
      await pause(ms, woken.signal);
      this.#wake.delete(wake);
    });
  }
}

/** A promise and the way to settle it; who does not look at its failure is not troubled by it. */
export interface Deferred<Value> {
  promise: Promise<Value>;
  resolve(value: Value): void;
  reject(reason: Error): void;
}

export function deferred<Value>(): Deferred<Value> {
  let settle!: Omit<Deferred<Value>, "promise">;
  const promise = new Promise<Value>((resolve, reject) => (settle = { resolve, reject }));
  promise.catch(() => {});
  return { promise, ...settle };
}
