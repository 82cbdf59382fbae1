// What several pages are made of.

import { h, set, show, text } from './elements.js';
import { compact, number, percent, since } from './format.js';
import { known_text, language, said, t } from './i18n.js';

/** The top of a page: its name, one line of what it is for, and what can be done. */
export function pageHead(name, ...actions) {
  return h('div', { class: 'head' }, h('div', {}, h('h1', {}, t(`${name}.title`)), h('p', { class: 'dim' }, t(`${name}.lead`))), h('div', { class: 'row' }, actions));
}

export function card(title, ...children) {
  const head = title instanceof Node ? title : title ? h('h2', {}, title) : null;
  return h('section', { class: 'card' }, head, ...children);
}

/** A card's head with something at its right. */
export const cardHead = (title, ...right) => h('div', { class: 'row between' }, h('h2', {}, title), h('div', { class: 'row' }, right));

/** A number with its name; `tell(value, more)` changes it. */
export function figure(label, title) {
  const value = h('b', {}, '–');
  const more = h('small', {});
  const element = h('div', { class: 'figure', title: title ?? null }, h('span', {}, label), value, more);
  return { element, tell: (shown, beside = '', kind = '') => { text(value, shown); text(more, beside); set(element, 'data-kind', kind || null); } };
}

/** Names and what they are; `facts([[name, value or node], …])`. */
export function facts(rows) {
  return h('dl', { class: 'facts' }, rows.filter(([, value]) => value !== null && value !== undefined && value !== '').flatMap(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]));
}

const KINDS = {
  ready: 'good', accepting: 'good', done: 'good', held: 'good', inside: 'good', connected: 'good', running: 'busy', moving: 'busy', waiting: 'busy', offered: 'busy',
  reconciling: 'busy', 'rolling-back': 'busy', draining: 'warn', suspect: 'warn', initializing: 'warn', paused: 'warn', away: 'warn', full: 'warn', 'out-of-service': 'warn', refused: 'bad',
  unhealthy: 'bad', 'no-response': 'bad', failed: 'bad', cancelled: 'dim', terminated: 'dim', released: 'dim', removed: 'dim', left: 'dim', unknown: 'dim',
};

/** A state in a word and a colour; the word alone says it too. */
export function state(name, element = h('span', {})) {
  set(element, 'class', `state ${KINDS[name] ?? 'dim'}`);
  return text(element, known_text(`state.${name}`) ?? name);
}

/** How full something is. */
export function loadBar() {
  const bar = h('span', {});
  const words = h('span', { class: 'words' });
  const element = h('span', { class: 'load' }, h('span', { class: 'track', 'aria-hidden': 'true' }, bar), words);
  return {
    element,
    tell(load, capacity) {
      const share = capacity ? Math.min(1, load / capacity) : 0;
      bar.style.width = `${Math.round(share * 100)}%`;
      set(element, 'data-kind', share >= 1 ? 'bad' : share >= 0.9 ? 'warn' : null);
      text(words, capacity ? `${compact(load)} / ${compact(capacity)}` : compact(load));
      set(element, 'title', capacity ? `${number(load)} / ${number(capacity)} · ${percent(share)}` : number(load));
    },
  };
}

/** What happened. The gateway says it in English; another language has a text of its own, or the English one. */
export function eventText({ scope, event, text: english, subject, details = {} }) {
  if (language === 'en') return english;
  const who = details.user ?? t('event.people', { n: details.count ?? '' });
  const values = Object.fromEntries(Object.entries(details).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : value]));
  const name = scope === 'audit' ? `event.audit.${details.outcome}` : `event.${scope}.${event}`;
  const told = known_text(name, { ...values, who, world: subject?.split('/').pop() });
  return told === null ? english : [told, scope === 'drain' && details.why ? jobWhy(event, details.why) : ''].filter(Boolean).join(': ');
}

/** Why a job is in its state: a word that has a text, or a sentence of the gateway. */
export const jobWhy = (state, why) => (why === 'ordered' && state !== 'paused' ? null : known_text(`update.why.${why}`) ?? said(why));

/** One line of what happened. */
export function eventLine(event) {
  return h('li', { class: `event ${event.level ?? 'info'}` }, h('span', { class: 'dot', 'aria-hidden': 'true' }), h('span', { class: 'said' }, eventText(event)),
    h('span', { class: 'scope' }, known_text(`scope.${event.scope}`) ?? event.scope), since(event.at));
}

/** One of several: `tabs([[name, label], …], chosen, choose)`. */
export function tabs(label, options, chosen, choose) {
  return h('div', { class: 'tabs', role: 'group', 'aria-label': label }, options.map(([name, shown]) =>
    h('button', { type: 'button', 'aria-pressed': String(name === chosen), onclick: event => {
      for (const one of event.currentTarget.parentNode.children) set(one, 'aria-pressed', String(one === event.currentTarget));
      choose(name);
    } }, shown)));
}

/** A list to choose from; the options follow the data, the choice stays. */
export function chooser(label, changed, anyLabel) {
  const element = h('select', { 'aria-label': label, title: label, onchange: () => changed(element.value) });
  let known = '';
  return {
    element,
    get value() { return element.value; },
    set value(wanted) { element.value = wanted; },
    offer(options) {
      const wanted = JSON.stringify(options);
      if (wanted === known) return;
      known = wanted;
      const chosen = element.value;
      show(element, anyLabel ? h('option', { value: '' }, anyLabel) : null, options.map(one => h('option', { value: one }, one)));
      if (options.includes(chosen)) element.value = chosen;
      else if (chosen && element.isConnected) changed(element.value);  // what is gone is chosen no more, as everybody sees
    },
  };
}
