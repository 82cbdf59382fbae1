// What happens, as it happens: one connection for the whole console, and the news of one frame told together.

const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 10000;
const SILENCE_MS = 25000;  // the gateway says something at least every 15 s

/**
 * One line to `/events/v1` that is opened again for ever. `listen(scope, tell)` hears the events of a scope, all of one
 * frame at once; `onState(tell)` hears 'connected', 'waiting' and 'connecting'; after a gap `onGap(tell)` is told to look anew.
 */
export class Live {
  #source = null;
  #listeners = new Map();
  #pending = new Map();
  #frame = 0;
  #timer = 0;
  #retryMs = FIRST_RETRY_MS;
  #heardAt = 0;
  #wasConnected = false;
  #stateTellers = new Set();
  #gapTellers = new Set();
  state = 'connecting';

  constructor() {
    addEventListener('online', () => this.retryNow());
    document.addEventListener('visibilitychange', () => { if (!document.hidden && this.state === 'waiting') this.retryNow(); });
    setInterval(() => this.#lookForSilence(), 5000);
  }

  start() {
    this.stop();
    this.#become('connecting');
    const source = this.#source = new EventSource('/events/v1');
    source.onopen = () => {
      this.#heardAt = Date.now();
      this.#retryMs = FIRST_RETRY_MS;
      const isBack = this.#wasConnected;
      this.#wasConnected = true;
      this.#become('connected');
      if (isBack) this.#gapTellers.forEach(tell => tell());
    };
    source.onerror = () => this.#lost();
    for (const kind of KINDS) source.addEventListener(kind, event => this.#hear(kind, event));
  }

  stop() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  retryNow() {
    if (this.#source && this.state !== 'connected') this.start();
    else if (this.state === 'waiting') this.start();
  }

  listen(scope, tell) {
    if (!this.#listeners.has(scope)) this.#listeners.set(scope, new Set());
    this.#listeners.get(scope).add(tell);
    return () => this.#listeners.get(scope).delete(tell);
  }

  onState(tell) {
    this.#stateTellers.add(tell);
    tell(this.state);
    return () => this.#stateTellers.delete(tell);
  }

  onGap(tell) {
    this.#gapTellers.add(tell);
    return () => this.#gapTellers.delete(tell);
  }

  #hear(kind, event) {
    this.#heardAt = Date.now();
    if (kind === 'gap') return this.#gapTellers.forEach(tell => tell());
    let told;
    try { told = JSON.parse(event.data); } catch { return; }
    const scope = kind === 'overview' ? 'overview' : told.scope;
    const kept = this.#pending.get(scope) ?? [];
    if (kind === 'overview') kept.length = 0;  // the newest says all
    kept.push(told);
    this.#pending.set(scope, kept);
    // A hidden page has no frames: what it missed is looked up when it is shown again.
    if (!this.#frame) this.#frame = document.hidden ? setTimeout(() => this.#tell(), 1000) : requestAnimationFrame(() => this.#tell());
  }

  #tell() {
    this.#frame = 0;
    const pending = this.#pending;
    this.#pending = new Map();
    for (const [scope, events] of pending) {
      this.#listeners.get(scope)?.forEach(tell => tell(events));
      if (scope !== 'overview') this.#listeners.get('*')?.forEach(tell => tell(events));
    }
  }

  #lost() {
    this.stop();
    this.#become('waiting');
    const pause = this.#retryMs * (0.8 + 0.4 * Math.random());
    this.#retryMs = Math.min(LONGEST_RETRY_MS, this.#retryMs * 2);
    this.retryAt = Date.now() + pause;
    this.#timer = setTimeout(() => this.start(), pause);
  }

  #lookForSilence() {
    if (this.state === 'connected' && Date.now() - this.#heardAt > SILENCE_MS && !document.hidden) this.#lost();
  }

  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.#stateTellers.forEach(tell => tell(state));
  }
}

/** The kinds of events that a gateway sends. */
const KINDS = ['instance', 'world', 'ticket', 'binding', 'move', 'job', 'shard', 'symbol', 'placement', 'audit', 'overview', 'event', 'gap', 'message'];
