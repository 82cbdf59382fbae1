// How keys spread over servers: the ring, the share of each, what a change would move, and why a key goes where it goes.

import { get, post } from '../api.js';
import { ring } from '../chart.js';
import { h, set, show, text } from '../elements.js';
import { percent } from '../format.js';
import { said, t } from '../i18n.js';
import { card, chooser, pageHead, state } from '../parts.js';
import { every } from '../poll.js';
import { addressOf } from '../standing.js';
import { emptyState, Table } from '../table.js';
import { refused } from '../refusal.js';

const POINTS = 720;
const MOVES_SHOWN = 12;
const TINTS = 12;

export function ringPage(context, [chosen]) {
  const { live } = context;
  const service = chooser(t('ring.service'), () => polling.now());
  const picture = ring({ label: t('ring.title'), over: name => lift(name) });
  const table = new Table({ label: t('ring.shares'), columns: columns(() => Math.max(1e-9, ...nodes.map(({ share }) => share)), () => service.value.split(':')[0]), key: node => node.serverId, sort: { name: 'share', isDown: true }, open: node => lift(node.serverId) });
  const spread = h('p', { class: 'dim' });
  const preview = previewCard(() => service.value);
  const explain = explainCard(() => service.value, place => picture.mark(place));
  const none = card(null, emptyState(t('ring.none'), t('ring.noneHow'), 'roost agent --type game --group kr-1 -- ./server'));
  const body = h('div', { class: 'stack' }, h('div', { class: 'grid two' }, card(t('ring.drawn'), picture.element, spread), h('div', { class: 'card flush' }, table.element)), h('div', { class: 'grid two' }, preview.element, explain.element));
  const element = h('div', { class: 'page' }, pageHead('ring', service.element), none, body);
  let nodes = [];

  const polling = every(10000, async () => {
    const { instances } = await get('/sd/v1/instances');
    service.offer([...new Set(instances.map(row => `${row.type}:${row.group}`))].sort());
    if (chosen) { service.value = chosen; chosen = ''; }
    set(none, 'hidden', instances.length > 0);
    set(body, 'hidden', !instances.length);
    if (!service.value) return;
    const [type, group] = service.value.split(':');
    draw(await get('/lb/v1/ring', { type, group, points: POINTS }));
  }, { live });
  const unlisten = live.listen('discovery', () => polling.soon(2000));

  function draw(found) {
    nodes = found.nodes.map((node, at) => ({ ...node, tint: at % TINTS }));
    picture.draw(partsOf(found.points, nodes));
    table.draw(nodes);
    preview.offer(nodes);
    const shares = nodes.filter(node => node.share > 0);
    text(spread, t('ring.spread', { n: nodes.length, spread: percent(deviation(shares)) }));
    middle(null);
  }

  function lift(name) {
    picture.lift(name);
    middle(nodes.find(node => node.serverId === name) ?? null);
  }

  function middle(node) {
    show(picture.middle, node ? [h('b', {}, node.serverId), h('span', {}, percent(node.share, 2)), state(node.accepting ? 'accepting' : 'full')] : [h('b', {}, String(nodes.length)), h('span', { class: 'dim' }, t('ring.servers'))]);
    if (node && !node.accepting) text(picture.middle.lastChild, said(node.whyNot));
  }

  return { element, leave: () => { polling.end(); unlisten(); } };
}

/** Neighbouring points of one owner as one part of the ring. */
function partsOf(points, nodes) {
  const parts = [];
  let from = 0;
  for (let at = 1; at <= points.length; at += 1) {
    if (at < points.length && points[at] === points[from]) continue;
    const node = nodes[points[from]];
    if (node) parts.push({ name: node.serverId, from: from / points.length, to: at / points.length, kind: kindOf(node), title: `${node.serverId} · ${percent(node.share, 2)}` });
    from = at;
  }
  return parts;
}

function deviation(nodes) {
  if (nodes.length < 2) return 0;
  const mean = nodes.reduce((all, { share }) => all + share, 0) / nodes.length;
  return Math.sqrt(nodes.reduce((all, { share }) => all + (share - mean) ** 2, 0) / nodes.length) / mean;
}

function columns(most, ofType) {
  const bars = new WeakMap();
  return [
    { name: 'server', label: t('servers.server'), value: node => node.serverId.padStart(12), cell: () => h('span', { class: 'server' }, h('span', { 'aria-hidden': 'true' }), h('a', {})), update: (made, node) => updateServer(made, node, ofType()) },
    { name: 'share', label: t('ring.share'), value: node => node.share, kind: 'number',
      cell: () => { const bar = h('span', {}); const words = h('span', { class: 'words' }); const made = h('span', { class: 'load' }, h('span', { class: 'track' }, bar), words); bars.set(made, { bar, words }); return made; },
      update: (made, node) => { const { bar, words } = bars.get(made); bar.style.width = `${Math.min(100, node.share / most() * 100)}%`; text(words, percent(node.share, 2)); } },
    { name: 'weight', label: t('servers.weight'), value: node => node.weight, kind: 'number', cell: node => String(node.weight), drop: 1 },
    { name: 'state', label: t('servers.status'), value: node => String(node.accepting), cell: node => node.accepting ? state('accepting') : h('span', { class: 'state warn' }, said(node.whyNot)), drop: 1 },
  ];
}

/** A server in the colour that its part of the ring has. */
function updateServer({ children: [swatch, link] }, node, type) {
  set(swatch, 'class', `swatch ${kindOf(node)}`);
  set(link, 'href', addressOf(node.serverId, type));
  text(link, node.serverId);
}

const kindOf = node => `tint-${node.tint}${node.accepting ? '' : ' off'}`;

/** What if I add or remove a server? Nothing is changed by asking. */
function previewCard(service) {
  const add = h('input', { id: 'ring-add', placeholder: '504', maxlength: 128, class: 'short' });
  const weight = h('input', { id: 'ring-weight', type: 'number', min: 0, max: 10000, value: '100', class: 'short' });
  const gone = chooser(t('ring.remove'), () => {}, t('ring.nobody'));
  gone.element.id = 'ring-remove';
  const told = h('div', { role: 'status' });
  const element = card(t('ring.whatIf'), h('p', { class: 'dim' }, t('ring.whatIfLead')),
    h('form', { class: 'row wrap end', onsubmit: submit },
      h('div', { class: 'field' }, h('label', { for: 'ring-add' }, t('ring.add')), add), h('div', { class: 'field' }, h('label', { for: 'ring-weight' }, t('servers.weight')), weight),
      h('div', { class: 'field' }, h('label', { for: 'ring-remove' }, t('ring.remove')), gone.element), h('button', { type: 'submit', class: 'main' }, t('ring.preview'))), told);

  async function submit(event) {
    event.preventDefault();
    const [type, group] = service().split(':');
    const name = add.value.trim();
    try {
      draw(await post('/lb/v1/preview', { type, group, add: name ? [{ serverId: name, weight: Number(weight.value) }] : [], remove: gone.value ? [gone.value] : [] }));
    } catch (error) {
      show(told, h('p', { class: 'trouble' }, refused(error)));
    }
  }

  function draw({ moved, moves }) {
    show(told, h('p', {}, h('b', {}, t('ring.moved', { share: percent(moved, 2) }))), h('ul', { class: 'moves' }, moves.slice(0, MOVES_SHOWN).map(({ source, target, share }) =>
      h('li', {}, h('span', {}, source ?? '–'), h('span', { class: 'dim' }, '→'), h('span', {}, target ?? '–'), h('b', {}, percent(share, 2))))),
      moves.length > MOVES_SHOWN ? h('p', { class: 'dim' }, t('ring.more', { n: moves.length - MOVES_SHOWN })) : null);
  }
  return { element, offer: nodes => gone.offer(nodes.map(node => node.serverId)) };
}

/** Why does this key go there? */
function explainCard(service, mark) {
  const key = h('input', { id: 'ring-key', placeholder: 'player-42', maxlength: 128, required: true });
  const told = h('div', { role: 'status' });
  const element = card(t('ring.explain'), h('p', { class: 'dim' }, t('ring.explainLead')),
    h('form', { class: 'row wrap end', onsubmit: submit }, h('div', { class: 'field grow' }, h('label', { for: 'ring-key' }, t('ring.key')), key), h('button', { type: 'submit', class: 'main' }, t('ring.explainDo'))), told);

  async function submit(event) {
    event.preventDefault();
    const [type, group] = service().split(':');
    try {
      const found = await get('/lb/v1/explain', { type, group, key: key.value });
      mark(found.position);
      show(told, h('p', {}, h('b', {}, found.chosen ? t('ring.goesTo', { key: found.key, server: found.chosen }) : said(found.refusal))),
        h('ul', { class: 'moves' }, found.considered.filter(({ whyNot }) => whyNot).slice(0, MOVES_SHOWN).map(({ serverId, whyNot }) => h('li', {}, h('span', {}, serverId), h('span', { class: 'state warn' }, said(whyNot))))),
        h('p', { class: 'dim' }, t('ring.place', { place: percent(found.position) })));
    } catch (error) {
      show(told, h('p', { class: 'trouble' }, refused(error)));
    }
  }
  return { element };
}
