// Ordered work: sixteen shards of 64 lanes as a heat map, who owns them, what is hot, and where symbols should go.

import { get, part, put } from '../api.js';
import { heatMap, timeChart } from '../chart.js';
import { actionButton } from '../dialog.js';
import { h, set, show, text } from '../elements.js';
import { compact, milliseconds, number, rate } from '../format.js';
import { known_text, t } from '../i18n.js';
import { card, figure, pageHead, state } from '../parts.js';
import { every } from '../poll.js';
import { sum } from '../recent.js';
import { emptyState, Table } from '../table.js';
import { symbolCard } from './symbol.js';

const SHARDS = 16;
const LANES = 64;
const HOT_SHOWN = 10;
/** What a cell may show. What waits and what was refused is known by worker: each has every n-th lane. */
const worker = (status, lane) => status.workers?.[lane % (status.workers.length || 1)];
const MEASURES = {
  rate: { of: (status, lane) => status.lanes?.[lane] ?? 0, say: rate },
  depth: { of: (status, lane) => worker(status, lane)?.depth ?? 0, say: number },
  wait: { of: (status, lane) => worker(status, lane)?.waitMs ?? 0, say: milliseconds },
  rejects: { of: (status, lane) => worker(status, lane)?.rejected ?? 0, say: number },
};

export function ordersPage(context, [chosen]) {
  const { live, recent } = context;
  let shards = [];
  const figures = Object.fromEntries(['owned', 'depth', 'wait', 'accepted', 'rejected', 'violations'].map(name => [name, figure(t(`orders.${name}`), t(`orders.${name}What`))]));
  const heat = heatMap({ label: t('orders.heat'), rows: SHARDS, columns: LANES, rowName: String, columnName: String, over: (shard, lane) => overCell(shards[shard], shard, lane, measure.value) });
  const measure = h('select', { 'aria-label': t('orders.measure') }, Object.keys(MEASURES).map(name => h('option', { value: name }, t(`orders.measure.${name}`))));
  measure.addEventListener('change', () => drawHeat());
  const pace = timeChart({ label: t('orders.pace'), series: [{ name: t('orders.accepted'), kind: 'accent' }, { name: t('orders.rejected'), kind: 'bad' }], unit: rate });
  const table = new Table({ label: t('orders.shards'), key: row => row.shard, columns: shardColumns() });
  const hot = h('ul', { class: 'moves' });
  const rejects = h('ul', { class: 'moves' });
  const advice = h('div', { class: 'stack tight' });
  const symbol = symbolCard(context, chosen);
  const none = card(null, emptyState(t('orders.none'), t('orders.noneHow'), 'roost orders serve'));
  const body = h('div', { class: 'stack' }, h('div', { class: 'card' }, h('div', { class: 'figures' }, Object.values(figures).map(one => one.element))),
    card(t('orders.heat'), h('p', { class: 'dim' }, t('orders.heatLead')), h('div', { class: 'row' }, measure), heat.element),
    h('div', { class: 'grid two' }, card(null, pace.element), card(t('orders.advice'), advice)),
    h('div', { class: 'grid two' }, card(t('orders.hot'), hot, h('h3', {}, t('orders.rejects')), rejects), symbol.element),
    h('div', { class: 'card flush' }, h('h2', { class: 'inset' }, t('orders.shards')), table.element));
  const element = h('div', { class: 'page' }, pageHead('orders'), none, body);

  const polling = every(2000, async () => {
    const found = await get('/orders/v1/shards');
    shards = found.shards;
    const isServed = shards.some(({ owner, status }) => owner || status.seq);
    set(none, 'hidden', isServed);
    set(body, 'hidden', !isServed);
    if (isServed) draw();
  }, { live });
  const advising = every(5000, async () => drawAdvice(context, advice, await get('/orders/v1/advice'), () => { advising.now(); polling.now(); }), { live });
  const unlisten = [live.listen('orders', () => polling.soon(500)), recent.listen(() => drawPace())];

  function draw() {
    const owned = shards.filter(({ owner }) => owner);
    const statuses = owned.map(({ status }) => status);
    const violations = sum(statuses, 'violations');
    figures.owned.tell(`${owned.length} / ${shards.length}`, '', owned.length < shards.length ? 'bad' : '');
    figures.depth.tell(compact(sum(statuses, 'depth')));
    figures.wait.tell(milliseconds(Math.max(0, ...statuses.map(({ waitMs }) => waitMs ?? 0))));
    figures.accepted.tell(rate(sum(statuses, 'rate')));
    figures.rejected.tell(compact(rejectsOf(shards).reduce((all, [, count]) => all + count, 0)));
    figures.violations.tell(number(violations), '', violations ? 'bad' : 'good');
    drawHeat();
    table.draw(shards);
    const busiest = shards.flatMap(({ shard, status }) => Object.entries(status.hot).map(([name, perSecond]) => ({ shard, name, perSecond }))).sort((a, b) => b.perSecond - a.perSecond).slice(0, HOT_SHOWN);
    show(hot, busiest.length ? busiest.map(one => h('li', {}, h('a', { href: `#/orders/${encodeURIComponent(one.name)}` }, one.name), h('span', { class: 'dim' }, t('orders.onShard', { n: one.shard })), h('b', {}, rate(one.perSecond)))) : h('li', { class: 'dim' }, t('orders.quiet')));
    const reasons = rejectsOf(shards);
    show(rejects, reasons.length ? reasons.map(([reason, count]) => h('li', {}, h('span', {}, known_text(`reject.${reason}`) ?? reason), h('b', {}, number(count)))) : h('li', { class: 'dim' }, t('orders.noRejects')));
    drawPace();
  }

  function drawHeat() {
    const { of } = MEASURES[measure.value];
    heat.draw(shards.map(({ status }) => Array.from({ length: LANES }, (_, lane) => of(status, lane))), shards.map(({ owner }) => owner ? '' : 'unowned'));
  }

  function drawPace() {
    pace.draw([recent.series('acceptedPerSecond'), recent.series('rejectedPerSecond')]);
  }

  return { element, leave: () => { polling.end(); advising.end(); unlisten.forEach(end => end()); symbol.leave(); } };
}

/** Rejects are counted by server, and each of its shards tells them. */
function rejectsOf(shards) {
  const byServer = new Map(shards.filter(({ owner }) => owner).map(({ owner, status }) => [owner, status.rejected ?? {}]));
  const all = {};
  for (const counts of byServer.values()) for (const [reason, count] of Object.entries(counts)) all[reason] = (all[reason] ?? 0) + count;
  return Object.entries(all).filter(([, count]) => count).sort((a, b) => b[1] - a[1]);
}

function overCell(found, shard, lane, measure) {
  if (!found?.owner) return t('orders.cellUnowned', { shard, lane });
  const { of, say } = MEASURES[measure];
  return t('orders.cell', { shard, lane, value: `${t(`orders.measure.${measure}`)} ${say(of(found.status, lane))}`, owner: found.owner });
}

function shardColumns() {
  return [
    { name: 'shard', label: t('orders.shard'), kind: 'number', value: row => row.shard, cell: row => String(row.shard) },
    { name: 'owner', label: t('orders.owner'), value: row => row.owner, cell: () => h('span', {}), update: (made, row) => { if (row.owner) { text(made, row.owner); set(made, 'class', null); } else { state('no-response', made); text(made, t('orders.nobody')); } } },
    { name: 'rate', label: t('orders.accepted'), kind: 'number', value: row => row.status.rate, cell: row => rate(row.status.rate) },
    { name: 'depth', label: t('orders.depth'), kind: 'number', value: row => row.status.depth, cell: row => number(row.status.depth) },
    { name: 'wait', label: t('orders.wait'), kind: 'number', value: row => row.status.waitMs, cell: row => milliseconds(row.status.waitMs), drop: 1 },
    { name: 'seq', label: t('orders.seq'), kind: 'number', value: row => row.status.seq, cell: row => number(row.status.seq), drop: 1 },
    { name: 'halted', label: t('orders.halted'), kind: 'number', value: row => row.status.halted, cell: row => number(row.status.halted), drop: 2 },
    { name: 'durability', label: t('orders.durability'), cell: row => row.status.durability || '–', drop: 2 },
    { name: 'lease', label: t('orders.lease'), kind: 'number', cell: row => row.owner ? milliseconds(row.leaseLeftMs) : '–', drop: 2 },
  ];
}

function drawAdvice(context, place, advice, then) {
  const move = ({ symbol, target }) => put(`/orders/v1/placement/${part(symbol)}`, { shard: target.shard, lane: target.lane });
  const wanted = JSON.stringify(advice.moves);
  if (place.known !== wanted) {
    place.known = wanted;
    place.list = h('ul', { class: 'moves' }, advice.moves.map(one => h('li', {}, h('b', {}, one.symbol), h('span', { class: 'dim' }, rate(one.rate)), h('span', {}, `${one.source.shard}:${one.source.lane} → ${one.target.shard}:${one.target.lane}`),
      actionButton(context, { label: t('orders.move'), act: () => move(one), then, said: t('orders.moveDone', { symbol: one.symbol }), question: { title: t('orders.moveAsk', { symbol: one.symbol, shard: one.target.shard }), consequence: t('orders.moveConsequence'), action: t('orders.move') } }))));
  }
  show(place, h('p', {}, advice.moves.length ? t('orders.uneven', { before: number(advice.before, 2), after: number(advice.after, 2) }) : t('orders.even')), place.list,
    advice.hottest ? h('p', { class: 'dim' }, t('orders.ceiling', { symbol: advice.hottest, n: number(advice.ceiling, 2) })) : null);
}
