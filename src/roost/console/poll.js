// Looking again and again while somebody sees the page.

import { Refused } from './api.js';

/**
 * Do it now and then every so many ms, one after the other. Hidden pages do not ask; whoever comes back is served at once.
 * `now()` does it at once, `soon()` once in a while however often it is called, `end()` ends it.
 */
export function every(ms, action, { live, failed } = {}) {
  let timer = 0;
  let isBusy = false;
  let isWanted = false;
  let hasEnded = false;
  let pauseMs = ms;

  async function now() {
    clearTimeout(timer);
    if (hasEnded) return;
    if (isBusy) { isWanted = true; return; }
    isBusy = true;
    try {
      if (!document.hidden) await action();
      pauseMs = ms;
    } catch (error) {
      if (error instanceof Refused && failed) failed(error);
      else if (!(error instanceof Refused) && error.constructor.name !== 'NoAnswer') console.error(error);
      pauseMs = Math.min(10000, Math.max(ms, 1000) * 2);
    }
    isBusy = false;
    if (hasEnded) return;
    const next = isWanted ? Math.min(250, pauseMs) : pauseMs;
    isWanted = false;
    clearTimeout(timer);
    timer = setTimeout(now, next);
  }

  const seen = () => { if (!document.hidden) now(); };
  document.addEventListener('visibilitychange', seen);
  const endGap = live?.onGap(now);
  let due = 0;
  Promise.resolve().then(now);  // not before the page that asks is made
  return {
    now,
    soon: (within = 1000) => { due ||= setTimeout(() => { due = 0; now(); }, within); },
    pace: other => { ms = other; },
    end: () => { hasEnded = true; clearTimeout(timer); clearTimeout(due); document.removeEventListener('visibilitychange', seen); endGap?.(); },
  };
}
