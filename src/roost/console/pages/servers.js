// Who exists, who is alive, who takes users: as a table or as a grid, each server with all that can be done to it.

import { get } from '../api.js';
import { h, keep, set, text } from '../elements.js';
import { since } from '../format.js';
import { t } from '../i18n.js';
import { chooser, loadBar, pageHead, state, tabs } from '../parts.js';
import { every } from '../poll.js';
import { countNote, emptyState, filterField, Table } from '../table.js';
import { addressOf, isMeant, nameOf, standing } from '../standing.js';
import { serverPanel } from './server.js';

const FEW = 200;
const GRID_SHOWN = 400;
const PAUSE_MS = 1000;  // a thousand rows are sorted and filtered anew only so often
const STATES = ['accepting', 'full', 'suspect', 'unhealthy', 'draining', 'out-of-service', 'initializing'];
let view = 'table';

export function serversPage(context, [opened, ofType]) {
  const { live } = context;
  const known = new Map();
  const wanted = { text: '', type: '', group: '', state: '', label: '' };
  const type = chooser(t('servers.type'), value => { wanted.type = value; draw(); }, t('servers.anyType'));
  const group = chooser(t('servers.group'), value => { wanted.group = value; draw(); }, t('servers.anyGroup'));
  const status = chooser(t('servers.status'), value => { wanted.state = value; draw(); }, t('servers.anyStatus'));
  status.offer(STATES);
  for (const option of status.element.options) if (option.value) text(option, t(`state.${option.value}`));
  const count = h('span', { class: 'dim', role: 'status' });
  const nothing = emptyState(t('servers.none'), t('servers.noneHow'), 'roost agent --type game --group kr-1 -- ./server');
  const table = new Table({ label: t('servers.title'), columns: columns(), key: row => row.instanceId, open, empty: nothing, sort: { name: 'server', isDown: false }, rowKind: row => row.instanceId === opened_() ? 'open' : null });
  const grid = h('div', { class: 'tiles' });
  const panel = serverPanel(context, close);
  const element = h('div', { class: 'page' }, pageHead('servers', tabs(t('servers.view'), [['table', t('servers.table')], ['grid', t('servers.grid')]], view, name => { view = name; draw(); })),
    h('div', { class: 'filters' }, filterField(t('servers.filter'), value => { wanted.text = value; draw(); }), type.element, group.element, status.element, count),
    h('div', { class: 'sided' }, h('div', { class: 'card flush' }, table.element, grid), panel.element));
  let isOpen = opened ?? '';
  let drawing = 0;

  const polling = every(3000, async () => {
    const found = await get('/sd/v1/instances');
    take(found.instances);
    polling.pace(found.instances.length > FEW ? Math.min(20000, found.instances.length * 15) : 3000);
  }, { live });
  const unlisten = live.listen('discovery', events => refresh(events));

  /** A few servers are asked for themselves; of many the list is. */
  async function refresh(events) {
    const names = new Set(events.map(({ subject }) => subject.slice(subject.indexOf('/') + 1)));
    const ids = [...known.values()].filter(row => names.has(row.serverId) || names.has(row.instanceId)).map(row => row.instanceId);
    if (isOpen && (ids.includes(isOpen) || names.has(isOpen))) panel.refresh();
    if (known.size <= FEW || ids.length < names.size || ids.length > 8) return polling.soon(known.size > FEW ? 3000 : 300);
    await Promise.all(ids.map(async id => {
      const found = await get(`/sd/v1/instances/${encodeURIComponent(id)}`).catch(() => null);
      if (found?.instance) known.set(id, found.instance); else known.delete(id);
    }));
    drawing ||= setTimeout(() => { drawing = 0; draw(); }, PAUSE_MS);
  }

  function take(instances) {
    const present = new Set();
    for (const one of instances) {
      one.hasBeaten = known.has(one.instanceId) && known.get(one.instanceId).lastHeartbeat !== one.lastHeartbeat;
      known.set(one.instanceId, one);
      present.add(one.instanceId);
    }
    for (const id of known.keys()) if (!present.has(id)) known.delete(id);
    type.offer([...new Set(instances.map(one => one.type))].sort());
    group.offer([...new Set(instances.map(one => one.group))].sort());
    draw();
  }

  function draw() {
    const all = [...known.values()];
    const shown = all.filter(row => matches(row, wanted));
    text(count, countNote(shown.length, all.length));
    set(table.element, 'hidden', view !== 'table' && shown.length > 0);
    set(grid, 'hidden', view !== 'grid' || !shown.length);
    if (view === 'table' || !shown.length) table.draw(shown);
    else drawGrid(shown);
  }

  function drawGrid(shown) {
    const first = shown.sort((a, b) => nameOf(a).localeCompare(nameOf(b), undefined, { numeric: true })).slice(0, GRID_SHOWN);
    keep(grid, first, row => row.instanceId, row => makeTile(row, open), updateTile);
  }

  function opened_() { return [...known.values()].find(row => isMeant(row, isOpen, ofType))?.instanceId; }

  function open(row) {
    isOpen = row.instanceId;
    history.replaceState(null, '', addressOf(nameOf(row), row.type));
    panel.open(row.instanceId);
    draw();
  }

  function close() {
    isOpen = '';
    history.replaceState(null, '', '#/servers');
    panel.close();
    draw();
  }

  if (isOpen) panel.open(isOpen, ofType);
  return { element, leave: () => { polling.end(); unlisten(); clearTimeout(drawing); panel.leave(); } };
}

function matches(row, wanted) {
  if (wanted.type && row.type !== wanted.type || wanted.group && row.group !== wanted.group || wanted.state && standing(row) !== wanted.state) return false;
  if (!wanted.text) return true;
  const labels = Object.entries(row.labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return [row.serverId, row.instanceId, row.type, row.group, row.hostname, row.publicIp, row.version, row.zone, ...labels].join(' ').toLowerCase().includes(wanted.text);
}

function columns() {
  return [
    { name: 'server', label: t('servers.server'), value: row => nameOf(row).padStart(12), cell: serverCell, update: updateServer },
    { name: 'status', label: t('servers.status'), value: standing, cell: () => h('span', {}), update: (cell, row) => state(standing(row), cell) },
    { name: 'load', label: t('servers.load'), value: row => row.capacity ? row.load / row.capacity : row.load, kind: 'number', ...loadCell() },
    { name: 'service', label: t('servers.service'), value: row => `${row.type}:${row.group}`, cell: row => `${row.type}:${row.group}`, drop: 1 },
    { name: 'version', label: t('servers.version'), value: row => row.version, cell: row => row.version || '–', drop: 2 },
    { name: 'weight', label: t('servers.weight'), value: weightOf, kind: 'number', cell: row => String(weightOf(row)), drop: 2 },
    { name: 'address', label: t('servers.address'), value: row => row.publicIp, cell: row => h('span', { class: 'mono' }, [row.hostname || row.publicIp || row.privateIp, Object.values(row.ports ?? {})[0]].filter(Boolean).join(':')), drop: 2 },
    { name: 'beat', label: t('servers.beat'), value: row => row.lastHeartbeat, kind: 'number', cell: () => h('time'), update: (cell, row) => since(row.lastHeartbeat, cell), drop: 1 },
  ];
}

const weightOf = row => row.override?.weight ?? row.weight;

function loadCell() {
  const bars = new WeakMap();
  return {
    cell: () => { const bar = loadBar(); bars.set(bar.element, bar); return bar.element; },
    update: (element, row) => bars.get(element).tell(row.load, row.capacity),
  };
}

function serverCell() {
  return h('span', { class: 'server' }, h('span', { class: 'beat', 'aria-hidden': 'true' }), h('a', {}));
}

function updateServer(cell, row) {
  const [beat, link] = cell.children;
  text(link, nameOf(row));
  set(link, 'href', addressOf(nameOf(row), row.type));
  set(beat, 'data-kind', row.unhealthy || row.status === 'suspect' ? 'warn' : row.accepting ? 'good' : 'dim');
  if (row.hasBeaten) pulse(beat);
  row.hasBeaten = false;
}

/** One beat of the heart. */
function pulse(beat) {
  beat.classList.remove('now');
  requestAnimationFrame(() => beat.classList.add('now'));
}

function makeTile(row, open) {
  const bar = loadBar();
  const tile = h('button', { type: 'button', class: 'tile', onclick: () => open(tile.row) }, h('span', { class: 'server' }, h('span', { class: 'beat' }), h('b', {})), h('span', {}), bar.element, h('small', { class: 'dim' }));
  tile.bar = bar;
  return tile;
}

function updateTile(tile, row) {
  tile.row = row;
  const [server, status, , small] = tile.children;
  text(server.lastChild, nameOf(row));
  set(server.firstChild, 'data-kind', row.unhealthy || row.status === 'suspect' ? 'warn' : row.accepting ? 'good' : 'dim');
  if (row.hasBeaten) pulse(server.firstChild);
  row.hasBeaten = false;
  state(standing(row), status);
  tile.bar.tell(row.load, row.capacity);
  text(small, [`${row.type}:${row.group}`, row.version].filter(Boolean).join(' · '));
}
