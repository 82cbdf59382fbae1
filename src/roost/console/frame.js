// Around every page: where one can go, who is logged in, whether the console hears what happens.

import { get } from './api.js';
import { h, icon, set, show, text } from './elements.js';
import { choose, language, languages, t } from './i18n.js';
import { applyTheme, theme, THEMES } from './theme.js';
import { toasts } from './toast.js';
import { auditPage } from './pages/audit.js';
import { hotUpdatePage } from './pages/hot_update.js';
import { ordersPage } from './pages/orders.js';
import { overviewPage } from './pages/overview.js';
import { ringPage } from './pages/ring.js';
import { serversPage } from './pages/servers.js';
import { usersPage } from './pages/users.js';
import { waitingRoomPage } from './pages/waiting_room.js';

const PAGES = [
  { name: 'overview', page: overviewPage, icon: 'M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z' },
  { name: 'servers', page: serversPage, icon: 'M4 5h16v5H4zM4 14h16v5H4zM7.5 7.5h.01M7.5 16.5h.01' },
  { name: 'ring', page: ringPage, icon: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8.5a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7zM12 4v4.5M18.9 16l-3.9-2.2M5.1 16l3.9-2.2' },
  { name: 'users', page: usersPage, icon: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4.5 20c.6-3.6 3.6-5.5 7.500-5.500s6.900 1.900 7.500 5.500' },
  { name: 'update', page: hotUpdatePage, icon: 'M4 7h11M12 4l3 3-3 3M20 17H9M12 14l-3 3 3 3' },
  { name: 'queue', page: waitingRoomPage, icon: 'M5 7a2 2 0 1 0 0-.01M12 7a2 2 0 1 0 0-.01M19 7a2 2 0 1 0 0-.01M3 19v-4a2 2 0 0 1 4 0v4M10 19v-4a2 2 0 0 1 4 0v4M17 19v-4a2 2 0 0 1 4 0v4' },
  { name: 'orders', page: ordersPage, icon: 'M4 6h4v4H4zM10 6h4v4h-4zM16 6h4v4h-4zM4 14h4v4H4zM10 14h4v4h-4zM16 14h4v4h-4z' },
  { name: 'audit', page: auditPage, icon: 'M6 3h9l4 4v14H6zM9 12h7M9 16h7M9 8h3' },
];

/** The console of one session: a bar, the pages, and the page that the address names. */
export class Frame {
  #leavePage = () => {};
  #unlisten = [];
  #main = h('main', { id: 'main', tabindex: '-1' });
  #links = new Map();
  #bar = h('div', { class: 'lost', role: 'alert', hidden: true });
  #pulse = h('span', { class: 'pulse' });

  constructor(context) {
    this.context = { ...context, go: path => { location.hash = path; } };
    this.element = h('div', { class: 'frame' },
      h('a', { class: 'skip', href: '#main', onclick: event => { event.preventDefault(); this.#main.focus(); } }, t('nav.skip')),
      this.#header(), this.#nav(), this.#bar, this.#main, toasts);
  }

  start() {
    const onHash = () => this.#open();
    addEventListener('hashchange', onHash);
    const { live, recent } = this.context;
    const look = () => get('/overview/v1').then(found => recent.take(found), () => {});
    this.#unlisten = [() => removeEventListener('hashchange', onHash), live.onState(state => this.#tellState(state)), live.onGap(look)];
    look();
    this.#open();
  }

  leave() {
    this.#leavePage();
    this.#leavePage = () => {};
    this.#unlisten.forEach(end => end());
  }

  #open() {
    const [name, ...rest] = location.hash.replace(/^#\/?/, '').split('/').map(decodePart);
    const found = PAGES.find(page => page.name === name) ?? PAGES[0];
    this.#leavePage();
    for (const [of, link] of this.#links) set(link, 'aria-current', of === found.name ? 'page' : null);
    this.#links.get(found.name).scrollIntoView({ block: 'nearest', inline: 'center' });
    document.title = `${t(`${found.name}.title`)} · Roost`;
    const page = found.page(this.context, rest);
    show(this.#main, page.element);
    scrollTo(0, 0);
    this.#leavePage = page.leave ?? (() => {});
  }

  #nav() {
    const links = PAGES.map(({ name, icon: path }) => {
      const link = h('a', { href: `#/${name}` }, icon(path), h('span', {}, t(`${name}.title`)));
      this.#links.set(name, link);
      return h('li', {}, link);
    });
    return h('nav', { 'aria-label': t('nav.label') }, h('ul', {}, links),
      h('ul', { class: 'below' }, h('li', {}, h('a', { href: '/docs' }, icon('M5 4h10l4 4v12H5zM9 9h2M9 13h6M9 17h6'), h('span', {}, t('nav.docs'))))));
  }

  #header() {
    const { session, canAct, again, logOut } = this.context;
    const where = session.namespace ? `${session.profile} · ${session.namespace}` : session.profile;
    return h('header', {},
      h('a', { class: 'brand', href: '#/overview' }, h('img', { src: '/console/icon.svg', alt: '', width: 24, height: 24 }), h('b', {}, 'Roost')),
      h('span', { class: 'chip', title: t('nav.profile') }, where),
      canAct ? null : h('span', { class: 'chip warn', title: t('readOnly.why') }, t('readOnly.chip')),
      h('span', { class: 'spring' }),
      this.#pulse,
      select(t('nav.language'), languages(), language, one => new Intl.DisplayNames([one], { type: 'language' }).of(one), async one => { await choose(one); again(); }),
      select(t('nav.theme'), THEMES, theme(), one => t(`theme.${one}`), applyTheme),
      h('span', { class: 'who' }, h('span', { class: 'dim', title: t('nav.token') }, session.name), h('button', { type: 'button', class: 'quiet', onclick: logOut }, t('nav.logOut'))));
  }

  #tellState(state) {
    const { live } = this.context;
    set(this.#pulse, 'data-state', state);
    set(this.#pulse, 'title', t(`live.${state}`));
    show(this.#pulse, h('span', { class: 'dot' }), h('span', { class: 'word' }, t(`live.${state}`)));
    // Connecting is told only to whom it takes long: nobody needs a bar that flickers.
    clearTimeout(this.telling);
    if (state === 'connected') return set(this.#bar, 'hidden', true);
    this.telling = setTimeout(() => {
      show(this.#bar, h('span', { class: 'dot' }), h('span', {}, t('live.lost')), h('button', { type: 'button', onclick: () => live.retryNow() }, t('live.retry')));
      set(this.#bar, 'hidden', live.state === 'connected');
    }, state === 'waiting' ? 0 : 1500);
  }
}

function decodePart(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}

function select(label, options, chosen, name, choice) {
  return h('select', { 'aria-label': label, title: label, class: 'quiet', onchange: event => choice(event.target.value) },
    options.map(one => h('option', { value: one, selected: one === chosen }, name(one))));
}
