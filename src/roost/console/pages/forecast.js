// What if? Another limit, another rate, a longer line: how long would people wait. Asking changes nothing.

import { part, post } from '../api.js';
import { h, set, text } from '../elements.js';
import { compact, duration, number, rate } from '../format.js';
import { t } from '../i18n.js';
import { card, figure } from '../parts.js';

const SETTLE_MS = 120;

export function forecastCard(world) {
  const sliders = {
    waiting: slider('waiting', compact, value => Math.round(value)),
    limit: slider('limit', value => value >= sliders.limit.most ? t('forecast.noLimit') : compact(value), value => Math.round(value)),
    rate: slider('rate', value => value >= sliders.rate.most ? t('forecast.noRate') : rate(value), value => Math.max(1, Math.round(value))),
    leaving: slider('leaving', rate, value => Math.round(value * 10) / 10),
  };
  const median = figure(t('forecast.median'));
  const last = figure(t('forecast.last'));
  const note = h('p', { class: 'dim', role: 'status' });
  const back = h('button', { type: 'button', class: 'quiet', onclick: reset }, t('forecast.asItIs'));
  const element = card(h('div', { class: 'row between' }, h('h2', {}, t('forecast.title')), back), h('p', { class: 'dim' }, t('forecast.lead')), h('div', { class: 'figures' }, median.element, last.element),
    h('div', { class: 'sliders' }, Object.values(sliders).map(one => one.element)), note);
  let now = null;
  let timer = 0;
  let hasEnded = false;
  /** Those that somebody has moved: of the others the world's own value counts, exactly. */
  const touched = new Set();

  for (const one of Object.values(sliders)) one.input.addEventListener('input', () => { touched.add(one); one.tell(); soon(); });

  function know(found) {
    const isNew = now?.world !== found.world;
    now = found;
    if (isNew) touched.clear();
    if (!touched.size) { place(); soon(); }
  }

  function reset() {
    touched.clear();
    place();
    soon();
  }

  /** Where the world stands now; how many leave is said by the answer. */
  function place() {
    const capacity = now.servers.reduce((all, server) => all + server.capacity, 0);
    sliders.waiting.place(now.waiting, Math.max(100, 2 * now.waiting));
    sliders.limit.place(now.limit ?? Infinity, Math.max(10, capacity, now.limit ?? 0));
    sliders.rate.place(now.rate ?? Infinity, Math.max(100, 2 * (now.rate ?? 0)));
  }

  function soon() {
    clearTimeout(timer);
    if (hasEnded) return;
    timer = setTimeout(ask, SETTLE_MS);
  }

  async function ask() {
    const { waiting, limit, rate: issue, leaving } = sliders;
    const said = (one, asItIs) => touched.has(one) ? one.value : asItIs;
    const bound = one => touched.has(one) && one.value >= one.most ? null : said(one, -1);  // at its end: none
    const found = await post(`/queue/v1/worlds/${part(world())}/forecast`, {
      waiting: said(waiting, null), limit: bound(limit), rate: bound(issue), leavingPerSecond: said(leaving, null),
    }).catch(() => null);
    if (!found || hasEnded) return;
    if (!touched.has(leaving)) leaving.place(found.leavingPerSecond, Math.max(10, 3 * found.leavingPerSecond));
    median.tell(found.medianSeconds === null ? t('forecast.never') : duration(found.medianSeconds));
    last.tell(found.lastSeconds === null ? t('forecast.never') : duration(found.lastSeconds));
    text(note, t('forecast.how', { free: number(found.free), leaving: rate(found.leavingPerSecond), issue: rate(found.issuePerSecond) }));
  }

  return { element, know, leave: () => { hasEnded = true; clearTimeout(timer); } };
}

/** A slider of a hundred steps over any range; its value in words beside it. */
function slider(name, words, rounded) {
  const id = `forecast-${name}`;
  const input = h('input', { id, type: 'range', min: 0, max: 100, step: 1 });
  const shown = h('output', { for: id });
  const made = {
    input,
    most: 100,
    element: h('div', { class: 'slider' }, h('label', { for: id }, t(`forecast.${name}`)), shown, input),
    get value() { return rounded(Number(input.value) / 100 * made.most); },
    place(value, most) { made.most = most; input.value = String(Math.round(Math.min(1, value / most) * 100)); made.tell(); },
    tell() { text(shown, words(made.value)); set(input, 'aria-valuetext', words(made.value)); },
  };
  return made;
}
