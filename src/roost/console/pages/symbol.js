// One symbol: where it is served, and what an operator may do: halt, resume, move, put back.

import { get, part, post, put, remove } from '../api.js';
import { actionButton } from '../dialog.js';
import { h, show } from '../elements.js';
import { number } from '../format.js';
import { t } from '../i18n.js';
import { card, facts, state } from '../parts.js';
import { troubleOf } from '../refusal.js';

const LEVELS_SHOWN = 5;

export function symbolCard(context, chosen) {
  const field = h('input', { id: 'symbol', maxlength: 128, required: true, placeholder: 'ACME', value: chosen ?? '', autocomplete: 'off' });
  const found = h('div', { class: 'stack tight', role: 'status' });
  const element = card(t('symbol.title'), h('form', { class: 'row end', onsubmit: event => { event.preventDefault(); look(); } },
    h('div', { class: 'field grow' }, h('label', { for: 'symbol' }, t('symbol.find')), field), h('button', { class: 'main', type: 'submit' }, t('symbol.look'))), found);
  let hasEnded = false;

  async function look() {
    const name = field.value.trim();
    try {
      const place = await get(`/orders/v1/placement/${part(name)}`);
      const book = await get(`/orders/v1/symbols/${part(place.symbol)}/replay`).catch(() => null);
      if (!hasEnded) show(found, symbolView(context, place, book, look));
    } catch (error) {
      show(found, ...troubleOf(error));
    }
  }

  if (chosen) look();
  return { element, leave: () => { hasEnded = true; } };
}

function symbolView(context, place, book, again) {
  const { symbol } = place;
  const at = `/orders/v1/symbols/${part(symbol)}`;
  const isHalted = book !== null && book.halted !== null;
  return [
    h('div', { class: 'row between' }, h('p', { class: 'large' }, symbol), state(isHalted ? 'halted' : place.how === 'moving' ? 'moving' : 'trading')),
    facts([[t('symbol.place'), `${place.shard}:${place.lane}`], [t('symbol.how'), t(`symbol.how.${place.how}`)], [t('symbol.to'), place.to ? `${place.to.shard}:${place.to.lane}` : null], [t('orders.owner'), place.owner || t('orders.nobody')], [t('symbol.why'), isHalted ? book.halted : null], [t('symbol.open'), book ? number(book.orders) : null]]),
    book && (book.bids.length || book.asks.length) ? bookView(book) : null,
    h('div', { class: 'row wrap' },
      isHalted ? actionButton(context, { label: t('symbol.resume'), kind: 'main', act: () => post(`${at}/resume`), said: t('symbol.resumeDone', { symbol }), then: again })
        : actionButton(context, { label: t('symbol.halt'), act: ({ why }) => post(`${at}/halt`, { why }), said: t('symbol.haltDone', { symbol }), then: again,
          question: { title: t('symbol.haltAsk', { symbol }), consequence: t('symbol.haltConsequence'), action: t('symbol.halt'), isDanger: true, fields: [{ name: 'why', label: t('symbol.why'), maxlength: 255 }] } }),
      actionButton(context, { label: t('orders.move'), act: ({ shard, lane }) => put(`/orders/v1/placement/${part(symbol)}`, { shard: Number(shard), lane: lane === '' ? null : Number(lane), expected: place.version }), said: t('orders.moveDone', { symbol }), then: again,
        question: { title: t('symbol.moveAsk', { symbol }), consequence: t('orders.moveConsequence'), action: t('orders.move'), fields: [{ name: 'shard', label: t('orders.shard'), type: 'number', min: 0, max: 15, value: place.shard, required: true }, { name: 'lane', label: t('symbol.lane'), type: 'number', min: 0, max: 63, value: '', hint: t('symbol.laneHint') }] } }),
      place.how === 'pinned' ? actionButton(context, { label: t('symbol.unpin'), act: () => remove(`/orders/v1/placement/${part(symbol)}?expected=${place.version}`), said: t('symbol.unpinDone', { symbol }), then: again, question: { title: t('symbol.unpinAsk', { symbol }), consequence: t('orders.moveConsequence'), action: t('symbol.unpin') } }) : null),
  ];
}

function bookView({ bids, asks }) {
  const side = (name, levels) => h('div', {}, h('h3', {}, t(`symbol.${name}`)), h('ul', { class: 'moves' }, levels.slice(0, LEVELS_SHOWN).map(level => h('li', {}, h('b', {}, number(level.price)), h('span', {}, number(level.quantity)), h('span', { class: 'dim' }, t('symbol.orders', { n: level.orders.length }))))));
  return h('div', { class: 'grid two tight' }, side('bids', bids), side('asks', asks));
}
