// What a hot update would do, before it is started.

import { h } from '../elements.js';
import { duration, number } from '../format.js';
import { said, t } from '../i18n.js';
import { card, facts } from '../parts.js';

export function planView(plan) {
  const pinned = Object.entries(plan.pinned);
  return card(t('update.planned'),
    h('div', { class: 'figures' }, one(t('update.users'), number(plan.users)), one(t('update.takes'), duration(plan.seconds)), one(t('update.seats'), plan.seats === null ? t('update.unlimited') : number(plan.seats)), one(t('update.pinned'), number(pinned.length)), one(t('update.later'), number(plan.later))),
    h('div', { class: 'grid two' }, side(t('update.sources'), plan.sources), side(t('update.targets'), plan.targets)),
    pinned.length ? h('div', {}, h('h3', {}, t('update.pinnedWhy')), facts(pinned.map(([user, reason]) => [user, said(reason)]))) : null,
    plan.schemaPoint || plan.rollbackUntil ? facts([[t('update.schemaPoint'), said(plan.schemaPoint)], [t('update.rollbackUntil'), said(plan.rollbackUntil)]]) : null,
    plan.notes.length ? h('ul', { class: 'notes' }, plan.notes.map(note => h('li', {}, said(note)))) : null);
}

const one = (label, value) => h('div', { class: 'figure' }, h('span', {}, label), h('b', {}, value));

function side(title, servers) {
  return h('div', {}, h('h3', {}, title), h('ul', { class: 'moves' }, servers.map(server =>
    h('li', {}, h('b', {}, server.serverId), h('span', { class: 'dim' }, server.version), h('span', {}, `${number(server.users)}${server.capacity ? ` / ${number(server.capacity)}` : ''}`), h('b', {}, server.moves ? t('update.moves', { n: number(server.moves) }) : '')))));
}
