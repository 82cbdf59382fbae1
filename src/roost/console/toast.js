// Short messages that come and go: what was done, what was refused and why.

import { NoAnswer } from './api.js';
import { h } from './elements.js';
import { t } from './i18n.js';
import { refusal } from './refusal.js';

const SHOWN_MS = 6000;
export const toasts = h('div', { class: 'toasts', role: 'status', 'aria-live': 'polite' });

function tell(level, title, more) {
  const note = h('div', { class: `toast ${level}` }, h('div', {}, h('b', {}, title), more ? h('p', {}, more) : null),
    h('button', { type: 'button', class: 'quiet', 'aria-label': t('action.close'), onclick: () => note.remove() }, '×'));
  toasts.append(note);
  setTimeout(() => note.remove(), level === 'bad' ? 2 * SHOWN_MS : SHOWN_MS);
}

export const done = (title, more) => tell('good', title, more);

/** What went wrong, in words, and what to do about it. */
export function failed(error) {
  if (error instanceof NoAnswer) return tell('bad', t('error.noAnswer'), t('error.tryAgain'));
  const { title, more } = refusal(error);
  tell('bad', title, more);
}
