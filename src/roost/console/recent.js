// The last minutes of every number that the overview brings, for the charts; kept over a reload of the tab.

const KEY = 'roost:recent';
const KEPT_MS = 15 * 60 * 1000;
const MOST = 900;

/** What was seen lately: `overview` is the newest, `series(name)` its numbers as [time, value]. */
export class Recent {
  #series = new Map();
  #tellers = new Set();
  overview = null;

  constructor(live) {
    live.listen('overview', events => this.take(events.at(-1)));
    this.#recall();
    addEventListener('pagehide', () => this.#remember());
  }

  take(overview) {
    this.overview = overview;
    const at = +new Date(overview.at);
    for (const [name, value] of numbersOf(overview)) this.#add(name, at, value);
    this.#tellers.forEach(tell => tell(overview));
  }

  /** Hear of every new overview, and of the last one at once. */
  listen(tell) {
    this.#tellers.add(tell);
    if (this.overview) tell(this.overview);
    return () => this.#tellers.delete(tell);
  }

  series(name) { return this.#series.get(name) ?? []; }

  /** Another session may see another system. */
  forget() { this.overview = null; }

  /** A number that is not in the overview; chartable like the others. */
  note(name, value, at = Date.now()) { this.#add(name, at, value); }

  #add(name, at, value) {
    const kept = this.#series.get(name) ?? [];
    if (!this.#series.has(name)) this.#series.set(name, kept);
    if (kept.length && at <= kept.at(-1)[0]) return;
    kept.push([at, value]);
    if (kept.length > MOST || kept[0][0] < at - KEPT_MS) kept.splice(0, kept.findIndex(([when]) => when >= at - KEPT_MS) || 1);
  }

  #remember() {
    try { sessionStorage.setItem(KEY, JSON.stringify([...this.#series])); } catch { /* then not */ }
  }

  #recall() {
    try { this.#series = new Map(JSON.parse(sessionStorage.getItem(KEY)) ?? []); } catch { /* then not */ }
  }
}

function* numbersOf({ worlds, servers, homes, orders }) {
  for (const world of worlds ?? []) {
    for (const name of ['waiting', 'away', 'present', 'tickets', 'held', 'inside', 'capacity', 'free', 'issuedPerSecond', 'enteredPerSecond', 'etaSeconds']) {
      yield [`world.${world.world}.${name}`, world[name]];
    }
  }
  yield ['waiting', sum(worlds, 'waiting')];
  yield ['tickets', sum(worlds, 'tickets')];
  yield ['issuedPerSecond', sum(worlds, 'issuedPerSecond')];
  yield ['enteredPerSecond', sum(worlds, 'enteredPerSecond')];
  yield ['inside', sum(worlds, 'inside')];
  yield ['accepting', servers?.accepting];
  yield ['servers', servers?.total];
  yield ['users', homes?.users];
  yield ['moving', homes?.moving];
  yield ['movesPerSecond', homes?.movesPerSecond];
  yield ['depth', orders?.depth];
  yield ['acceptedPerSecond', orders?.acceptedPerSecond];
  yield ['rejectedPerSecond', orders?.rejectedPerSecond];
}

/** The sum over all; null if nobody knows any of it. */
export function sum(rows, name) {
  const known = (rows ?? []).map(row => row[name]).filter(value => value !== null && value !== undefined);
  return known.length ? known.reduce((all, one) => all + one, 0) : null;
}
