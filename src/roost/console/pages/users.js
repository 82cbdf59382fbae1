// Find a user: their home, how they came there, what became of their moves, and their place in a line.

import { get, part, remove } from '../api.js';
import { actionButton } from '../dialog.js';
import { h, set, show } from '../elements.js';
import { duration, milliseconds, number, since, whole } from '../format.js';
import { known_text, said, t } from '../i18n.js';
import { card, chooser, facts, pageHead, state } from '../parts.js';
import { every } from '../poll.js';
import { troubleOf } from '../refusal.js';
import { addressOf } from '../standing.js';
import { emptyState } from '../table.js';

const LISTED = 40;

export function usersPage(context, [chosen]) {
  const { live, go } = context;
  const field = h('input', { id: 'user', type: 'search', value: chosen ?? '', placeholder: t('users.placeholder'), maxlength: 128, required: true, autocomplete: 'off' });
  const type = chooser(t('users.type'), () => chosen && look());
  type.offer(['entity']);
  const found = h('div', { class: 'stack' });
  const element = h('div', { class: 'page' }, pageHead('users'),
    h('form', { class: 'card row wrap end', role: 'search', onsubmit: event => { event.preventDefault(); go(`#/users/${encodeURIComponent(field.value.trim())}`); } },
      h('div', { class: 'field grow' }, h('label', { for: 'user' }, t('users.find')), field), type.element, h('button', { class: 'main', type: 'submit' }, t('users.findDo'))), found);

  async function look() {
    const [{ homes: [home] }, changes, moves, places] = await Promise.all([
      get('/bind/v1/users', { type: type.value, userId: chosen }), get(`/bind/v1/users/${part(chosen)}/history`, { type: type.value }),
      get(`/bind/v1/users/${part(chosen)}/moves`, { type: type.value }), placesOf(chosen),
    ]);
    show(found, h('div', { class: 'grid two' }, homeCard(context, chosen, type.value, home, polling), placeCard(chosen, places)), timelineCard(changes.changes, moves.moves));
  }

  const polling = every(5000, async () => {
    const { instances } = await get('/sd/v1/instances');
    type.offer([...new Set(['entity', ...instances.map(row => row.type).filter(name => name.includes('entity'))])]);
    if (chosen) await look();
    else show(found, await serversOf(type.value));
  }, { live, failed: error => show(found, ...troubleOf(error)) });
  const unlisten = [live.listen('binding', events => { if (chosen && events.some(({ details }) => details?.user === chosen || details?.count)) polling.soon(200); })];
  return { element, leave: () => { polling.end(); unlisten.forEach(end => end()); } };
}

/** What somebody has in each world where they have anything. */
async function placesOf(user) {
  const { worlds } = await get('/queue/v1/worlds');
  const found = await Promise.all(worlds.map(({ world }) => get(`/queue/v1/worlds/${part(world)}/people/${part(user)}`)));
  return found.filter(place => place.state !== 'unknown');
}

function homeCard(context, user, type, home, polling) {
  if (!home) return card(t('users.home'), h('div', { class: 'nothing' }, h('b', {}, t('users.noHome', { user })), h('p', {}, t('users.noHomeHow'))));
  return card(t('users.home'), h('div', { class: 'row between' }, h('p', { class: 'large' }, home.serverId ? h('a', { href: addressOf(home.serverId, type) }, home.serverId) : t('users.nobody')), state(home.state)),
    facts([[t('users.why'), known_text(`why.${home.why}`) ?? said(home.why)], [t('users.since'), since(home.since)], [t('users.epoch'), h('span', { class: 'mono' }, String(home.epoch))], [t('server.life'), h('span', { class: 'mono' }, home.life)]]),
    home.state === 'released' ? null : h('div', { class: 'row' }, actionButton(context, {
      label: t('users.release'), act: () => remove(`/bind/v1/users/${part(user)}?type=${part(type)}`), said: t('users.releaseDone', { user }), then: polling.now,
      question: { title: t('users.releaseAsk', { user }), consequence: t('users.releaseConsequence', { server: home.serverId }), action: t('users.release'), isDanger: true },
    })));
}

function placeCard(user, places) {
  if (!places.length) return card(t('users.place'), h('div', { class: 'nothing' }, h('b', {}, t('users.noPlace', { user }))));
  return card(t('users.place'), places.map(place => h('div', { class: 'stack tight' },
    h('div', { class: 'row between' }, h('p', { class: 'large' }, place.rank ? t('users.rank', { n: number(place.rank) }) : place.serverId || t(`state.${place.state}`)), state(place.state)),
    facts([[t('queue.world'), h('a', { href: `#/queue/${encodeURIComponent(place.world)}` }, place.world)], [t('users.class'), place.className], [t('users.nickname'), place.nickname],
      [t('users.awayAhead'), place.rank ? number(place.awayAhead) : null], [t('overview.eta'), place.rank ? place.etaSeconds === null ? t('users.noTime') : `${duration(place.etaSeconds)} – ${duration(place.etaHighSeconds)}` : null],
      [t('users.ends'), place.leftMs ? t('time.in', { time: milliseconds(place.leftMs) }) : null], [t('users.lostBy'), place.cause ? known_text(`cause.${place.cause}`) ?? place.cause : null]]))));
}

function timelineCard(changes, moves) {
  const lines = [
    ...changes.map(change => ({ at: change.at, title: known_text(`why.${change.why}`) ?? change.why, from: change.source, to: change.serverId, more: t('users.underEpoch', { epoch: change.epoch }) })),
    ...moves.map(move => ({ at: move.at, title: known_text(`move.${move.outcome}`) ?? move.outcome, from: move.source, to: move.target, more: [said(move.why), move.phases?.total === undefined ? '' : t('users.heldUp', { time: milliseconds(move.phases.total) })].filter(Boolean).join(' · ') })),
  ].sort((a, b) => b.at.localeCompare(a.at));
  if (!lines.length) return null;
  return card(t('users.timeline'), h('ol', { class: 'timeline' }, lines.map(line => h('li', { title: whole(line.at) }, h('b', {}, line.title),
    h('span', {}, line.from && line.from !== line.to ? `${line.from} → ${line.to || '–'}` : line.to), h('span', { class: 'dim' }, line.more), since(line.at)))));
}

/** Whom one could look for: the servers that hold users, and some of their users. */
async function serversOf(type) {
  const { servers } = await get('/bind/v1/servers', { type });
  if (!servers.length) return card(null, emptyState(t('users.none'), t('users.noneHow'), 'roost up --with entity,gate'));
  const list = h('ul', { class: 'userlist' });
  const shown = h('div', { hidden: true }, h('h3', {}), list);
  async function open(server) {
    const { users, cursor } = await get(`/bind/v1/servers/${part(server)}/users`, { type, limit: LISTED });
    show(shown.firstChild, t('users.on', { server }));
    show(list, users.map(user => h('li', {}, h('a', { href: `#/users/${encodeURIComponent(user)}` }, user))), cursor ? h('li', { class: 'dim' }, t('users.andMore')) : null);
    set(shown, 'hidden', false);
  }
  return card(t('users.holders'), h('div', { class: 'row wrap' }, servers.map(server => h('button', { type: 'button', onclick: () => open(server.serverId) }, h('b', {}, server.serverId), ' ', h('span', { class: 'dim' }, t('users.held', { n: number(server.users) }))))), shown);
}
