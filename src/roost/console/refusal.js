// What the gateway refused, in words: in the language of the console as far as it has words for it.

import { h } from './elements.js';
import { known_text, said } from './i18n.js';

/** A code that has a text here says what it is; what the gateway says of this case follows. */
export function refusal({ code, message, hint }) {
  const title = known_text(`errorCode.${code}`);
  return title ? { title, more: [message, said(hint)].filter(Boolean).join(' · ') } : { title: said(message), more: said(hint) };
}

/** The same in one line. */
export function refused(error) {
  const { title, more } = refusal(error);
  return [title, more].filter(Boolean).join(' ');
}

/** The same in place of what was asked for. */
export function troubleOf(error) {
  const { title, more } = refusal(error);
  return [h('p', { class: 'trouble' }, title), more ? h('p', { class: 'dim' }, more) : null];
}
