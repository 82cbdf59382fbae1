// Who are you? A token is asked for once and given to the gateway, which keeps it in a cookie that no script reads.

import * as api from './api.js';
import { h, set, show, text } from './elements.js';
import { choose, language, languages, t } from './i18n.js';
import { refused } from './refusal.js';

/** A token that may not look would show pages without anything on them: the gateway says what it lacks. */
async function turnAway() {
  const why = await api.get('/overview/v1').catch(error => error);
  await api.logOut();
  throw why;
}

export function loginView(entered, begin) {
  const token = h('input', { id: 'token', type: 'password', autocomplete: 'current-password', required: true, spellcheck: 'false' });
  const who = h('input', { type: 'text', autocomplete: 'username', value: 'token', hidden: true });  // what a password keeper files it under
  const trouble = h('p', { class: 'trouble', role: 'alert', hidden: true });
  const button = h('button', { class: 'main', type: 'submit' }, t('login.enter'));

  async function submit(event) {
    event.preventDefault();
    set(button, 'disabled', true);
    try {
      const session = await api.logIn(token.value.trim());
      if (!session.scopes.includes('read')) await turnAway();
      entered(session);
    } catch (error) {
      text(trouble, error instanceof api.NoAnswer ? t('error.noAnswer') : error.status === 401 ? t('login.refused') : refused(error));
      set(trouble, 'hidden', false);
      token.select();
    } finally {
      set(button, 'disabled', false);
    }
  }

  const speaks = languages().map(one => h('button', {
    type: 'button', class: 'quiet', lang: one, 'aria-pressed': String(one === language), onclick: async () => { await choose(one); begin(); },
  }, new Intl.DisplayNames([one], { type: 'language' }).of(one)));

  return h('main', { class: 'login' },
    h('form', { class: 'card', onsubmit: submit },
      h('img', { src: '/console/icon.svg', alt: '', width: 40, height: 40 }),
      h('h1', {}, t('login.title')),
      h('p', { class: 'dim' }, t('login.how')),
      h('p', {}, h('code', { class: 'command' }, 'roost token create console --scope admin')),
      who, h('label', { for: 'token' }, t('login.token')), token, trouble, button,
      h('div', { class: 'row between' }, h('span', { class: 'row' }, speaks), h('a', { href: '/docs' }, t('nav.docs')))));
}
