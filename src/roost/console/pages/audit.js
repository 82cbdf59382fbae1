// Who did what, when, from where: every act of an operator, searchable, and all of it as a file.

import { get, parameters } from '../api.js';
import { h, set, show, text } from '../elements.js';
import { since } from '../format.js';
import { t } from '../i18n.js';
import { pageHead, state } from '../parts.js';
import { every } from '../poll.js';
import { emptyState, Table } from '../table.js';
import { refused } from '../refusal.js';

const PAGE = 200;

export function auditPage(context) {
  const { live } = context;
  const wanted = { name: '', action: '', target: '' };
  let entries = [];
  let next = '';
  let timer = 0;
  const table = new Table({ label: t('audit.title'), columns: columns(entry => open(entry)), key: entry => entry.id, empty: emptyState(t('audit.none'), t('audit.noneHow'), 'roost queue hold'), open: entry => open(entry), rowKind: entry => entry.outcome === 'refused' ? 'bad' : null });
  const more = h('button', { type: 'button', hidden: true, onclick: older }, t('audit.older'));
  const trouble = h('p', { class: 'trouble', hidden: true });
  const detail = h('aside', { class: 'card panel', hidden: true, 'aria-label': t('audit.entry') });
  const fields = Object.keys(wanted).map(name => h('input', { type: 'search', class: 'filter', placeholder: t(`audit.${name}`), 'aria-label': t(`audit.filter.${name}`), oninput: event => { wanted[name] = event.target.value.trim(); clearTimeout(timer); timer = setTimeout(() => { entries = []; polling.now(); }, 250); } }));
  const element = h('div', { class: 'page' }, pageHead('audit', h('a', { class: 'button', href: '/audit/v1/export', download: 'roost-audit.jsonl' }, t('audit.export'))),
    h('div', { class: 'filters' }, fields), trouble, h('div', { class: 'sided' }, h('div', { class: 'card flush' }, table.element, h('div', { class: 'inset' }, more)), detail));

  const polling = every(15000, async () => {
    const found = await ask('');
    const known = new Set(found.entries.map(({ id }) => id));
    const rest = entries.filter(({ id }) => !known.has(id));
    if (!rest.length) next = found.next ?? '';
    entries = [...found.entries, ...rest];
    draw();
  }, { live, failed: error => { text(trouble, refused(error)); set(trouble, 'hidden', false); } });
  const unlisten = live.listen('audit', () => polling.soon(300));

  const ask = before => get(`/audit/v1/entries?${parameters({ ...wanted, limit: PAGE, before })}`);

  function draw() {
    set(trouble, 'hidden', true);
    set(more, 'hidden', !next);
    table.draw(entries);
  }

  async function older() {
    const found = await ask(next);
    entries = [...entries, ...found.entries];
    next = found.next ?? '';
    draw();
  }

  function open(entry) {
    show(detail, h('div', { class: 'row between' }, h('h2', {}, entry.action), h('button', { type: 'button', class: 'quiet', 'aria-label': t('action.close'), onclick: () => set(detail, 'hidden', true) }, '×')), details(entry));
    set(detail, 'hidden', false);
  }

  return { element, leave: () => { polling.end(); unlisten(); clearTimeout(timer); } };
}

function columns(open) {
  return [
    { name: 'at', label: t('audit.at'), value: entry => entry.at, cell: () => h('time'), update: (made, entry) => since(entry.at, made) },
    { name: 'name', label: t('audit.who'), value: entry => entry.name, cell: entry => entry.name },
    { name: 'action', label: t('audit.what'), value: entry => entry.action, cell: entry => h('button', { type: 'button', class: 'link', onclick: () => open(entry) }, entry.action), update: () => {} },
    { name: 'target', label: t('audit.target'), value: entry => entry.target, cell: entry => h('span', { class: 'mono' }, entry.target), update: () => {}, drop: 1 },
    { name: 'outcome', label: t('audit.outcome'), value: entry => entry.outcome, cell: entry => state(entry.outcome), drop: 1 },
    { name: 'from', label: t('audit.from'), value: entry => entry.from, cell: entry => h('span', { class: 'mono' }, entry.from), update: () => {}, drop: 2 },
    { name: 'via', label: t('audit.via'), value: entry => entry.via, cell: entry => entry.via, drop: 2 },
  ];
}

function details(entry) {
  const rows = [['at', h('time', { datetime: entry.at }, entry.at)], ['who', `${entry.name} (${(entry.scopes ?? []).join(', ')})`], ['token', entry.tokenId], ['target', entry.target], ['from', entry.from], ['via', entry.via], ['outcome', [entry.outcome, entry.code].filter(Boolean).join(' · ')], ['request', entry.requestId]];
  return h('div', { class: 'stack' }, h('dl', { class: 'facts' }, rows.filter(([, value]) => value).flatMap(([name, value]) => [h('dt', {}, t(`audit.${name}`)), h('dd', {}, value)])),
    ...['before', 'after'].filter(name => entry[name] !== null && entry[name] !== undefined).map(name => h('div', {}, h('h3', {}, t(`audit.${name}`)), h('pre', { class: 'json', tabindex: '0' }, typeof entry[name] === 'string' ? entry[name] : JSON.stringify(entry[name], null, 2)))));
}
