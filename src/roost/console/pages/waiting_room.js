// One world: its line over time, the ledger of places, who comes through; what an operator may turn, and what it would do.

import { get, part, patch, remove } from '../api.js';
import { timeChart } from '../chart.js';
import { actionButton } from '../dialog.js';
import { h, set, show, text } from '../elements.js';
import { clock, compact, duration, number, rate, whole } from '../format.js';
import { t } from '../i18n.js';
import { card, chooser, figure, loadBar, pageHead, state } from '../parts.js';
import { every } from '../poll.js';
import { addressOf } from '../standing.js';
import { emptyState, Table } from '../table.js';
import { forecastCard } from './forecast.js';

const MODES = ['auto', 'hold', 'closing', 'queue-all', 'off'];

export function waitingRoomPage(context, [chosen]) {
  const { live, recent } = context;
  const world = chooser(t('queue.world'), name => { history.replaceState(null, '', `#/queue/${encodeURIComponent(name)}`); polling.now(); });
  const mode = h('span', {});
  const said = h('p', { class: 'announced', hidden: true });
  const verbs = h('div', { class: 'row wrap' });
  const figures = Object.fromEntries(['waiting', 'away', 'tickets', 'inside', 'held', 'free', 'eta', 'etaError'].map(name => [name, figure(t(`queue.${name}`), t(`queue.${name}What`))]));
  const line = timeChart({ label: t('queue.chartLine'), series: [{ name: t('queue.waiting'), kind: 'accent' }, { name: t('queue.away'), kind: 'dim' }], unit: compact });
  const through = timeChart({ label: t('queue.chartThrough'), series: [{ name: t('overview.issued'), kind: 'accent' }, { name: t('overview.entered'), kind: 'dim' }], unit: rate });
  const ledger = ledgerCard();
  const counted = h('ul', { class: 'counts' });
  const servers = new Table({ label: t('queue.servers'), key: row => row.serverId, columns: serverColumns(context, () => polled, () => polling.now()), sort: { name: 'server', isDown: false },
    empty: emptyState(t('queue.noServers'), t('queue.noServersHow'), 'roost gameserver --capacity 200') });
  const classes = h('ul', { class: 'moves' });
  const pending = h('p', { class: 'trouble', hidden: true });
  const forecast = forecastCard(() => world.value);
  const element = h('div', { class: 'page' }, pageHead('queue', world.element),
    card(h('div', { class: 'row between wrap' }, h('div', { class: 'row' }, h('h2', {}, t('queue.now')), mode), verbs), said, h('div', { class: 'figures' }, Object.values(figures).map(one => one.element))),
    h('div', { class: 'grid two' }, card(null, line.element), card(null, through.element, counted)),
    h('div', { class: 'grid two' }, card(t('queue.ledger'), ledger.element, h('h3', {}, t('queue.classes')), classes), forecast.element),
    h('div', { class: 'card flush' }, h('h2', { class: 'inset' }, t('queue.servers')), pending, servers.element));
  let drawnVerbs = '';
  let polled = null;

  const polling = every(2000, async () => {
    const { worlds } = await get('/queue/v1/worlds');
    world.offer(worlds.map(one => one.world));
    if (chosen) { world.value = chosen; chosen = ''; }
    const found = worlds.find(one => one.world === world.value) ?? worlds[0];
    if (found) draw(found);
  }, { live });
  const unlisten = [live.listen('queue', () => polling.soon(300)), recent.listen(() => { drawFigures(); drawCharts(); })];

  function draw(now) {
    state(now.mode, mode);
    set(mode, 'class', `state ${now.mode === 'auto' ? 'good' : 'warn'}`);
    text(mode, t(`mode.${now.mode}`));
    const opens = now.opensAt && new Date(now.opensAt) > Date.now();
    show(said, [opens ? t('queue.opensAt', { time: clock(now.opensAt) }) : null, now.message ? `“${now.message}”` : null, now.limit === null ? null : t('queue.capped', { n: number(now.limit) }), now.rate === null ? null : t('queue.rated', { n: rate(now.rate) })].filter(Boolean).join(' · '));
    set(said, 'hidden', !said.textContent);
    set(said, 'title', opens ? whole(now.opensAt) : null);
    polled = now;
    drawFigures();
    figures.etaError.tell(now.counters.eta_count ? duration(now.counters.eta_error_ms / now.counters.eta_count / 1000) : '–');
    ledger.draw(now);
    show(counted, ['entries', 'issued', 'consumed', 'expired', 'gone', 'left', 'overadmit'].map(name => h('li', { 'data-kind': name === 'overadmit' && now.counters[name] ? 'bad' : null }, h('b', {}, compact(now.counters[name])), ' ', h('span', { class: 'dim' }, t(`queue.counted.${name}`)))));
    show(classes, now.classes.map(one => h('li', {}, h('b', {}, one.name), h('span', { class: 'dim' }, t('queue.share', { n: number(one.share * 100) })), h('span', {}, t('queue.inLine', { n: compact(one.waiting) })), h('span', {}, rate(one.perSecond)))));
    set(pending, 'hidden', !now.pending.length);
    text(pending, now.pending.length ? t('queue.pending', { servers: now.pending.join(', '), type: now.serverType }) : '');
    servers.draw(now.servers);
    forecast.know(now);
    drawCharts();
    drawVerbs(now);
  }

  /** From the overview, as the charts are; from the world itself what that does not know. */
  function drawFigures() {
    if (!polled) return;
    const told = recent.overview?.worlds.find(one => one.world === polled.world);
    const of = name => told?.[name] ?? polled[name];
    for (const name of ['waiting', 'away', 'tickets', 'held']) figures[name].tell(compact(of(name)));
    figures.inside.tell(compact(of('inside')), t('queue.of', { n: compact(of('capacity')) }));
    figures.free.tell(compact(of('free')), '', of('free') < 0 ? 'warn' : '');
    figures.eta.tell(duration(told?.etaSeconds ?? null));
  }

  function drawCharts() {
    const of = name => recent.series(`world.${world.value}.${name}`);
    line.draw([of('waiting'), of('away')]);
    through.draw([of('issuedPerSecond'), of('enteredPerSecond')]);
  }

  /** Made anew only when what they would change has changed: buttons must not vanish under a finger. */
  function drawVerbs(now) {
    const wanted = JSON.stringify([now.world, now.mode, now.limit, now.rate, now.message, now.opensAt]);
    if (wanted === drawnVerbs) return;
    drawnVerbs = wanted;
    show(verbs, verbButtons(context, now, () => polling.now()));
  }

  return { element, leave: () => { polling.end(); unlisten.forEach(end => end()); forecast.leave(); } };
}

function verbButtons(context, now, then) {
  const govern = change => patch(`/queue/v1/worlds/${part(now.world)}`, change);
  const isHeld = now.mode === 'hold';
  const verb = (name, act, question, kind) => actionButton(context, { label: t(`queue.${name}`), act, question, then, kind, said: t(`queue.${name}Done`, { world: now.world }) });
  const one = (name, field) => ({ title: t(`queue.${name}Ask`, { world: now.world }), consequence: t(`queue.${name}Consequence`), action: t('action.set'), fields: [field] });
  return [
    isHeld ? verb('resume', () => govern({ mode: 'auto' }), null, 'main')
      : verb('hold', () => govern({ mode: 'hold' }), { title: t('queue.holdAsk', { world: now.world }), consequence: t('queue.holdConsequence', { n: number(now.waiting) }), action: t('queue.hold'), isDanger: true }),
    verb('mode', ({ mode }) => govern({ mode }), one('mode', { name: 'mode', label: t('queue.mode'), value: now.mode, options: MODES.map(mode => [mode, `${t(`mode.${mode}`)}: ${t(`mode.${mode}What`)}`]) })),
    verb('cap', ({ limit }) => govern({ limit: limit === '' ? null : Number(limit) }), one('cap', { name: 'limit', label: t('queue.capLabel'), type: 'number', min: 0, value: now.limit ?? '', hint: t('queue.emptyTakesAway') })),
    verb('rate', ({ perSecond }) => govern({ rate: perSecond === '' ? null : Number(perSecond) }), one('rate', { name: 'perSecond', label: t('queue.rateLabel'), type: 'number', min: 0.1, step: 'any', value: now.rate ?? '', hint: t('queue.emptyTakesAway') })),
    verb('message', ({ message }) => govern({ message: message.trim() || null }), one('message', { name: 'message', label: t('queue.messageLabel'), type: 'area', maxlength: 500, value: now.message, hint: t('queue.emptyTakesAway') })),
    verb('openAt', ({ opensAt }) => govern({ opensAt: opensAt ? new Date(opensAt).toISOString() : null }), one('openAt', { name: 'opensAt', label: t('queue.openAtLabel'), type: 'datetime-local', value: localMoment(now.opensAt), hint: t('queue.openNow') })),
  ];
}

/** As a field for date and time takes it: in the time zone of whoever looks. */
function localMoment(iso) {
  if (!iso) return '';
  const at = new Date(iso);
  return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
}

/** All places inside as one bar: taken, offered by tickets, held, free. */
function ledgerCard() {
  const kinds = ['inside', 'tickets', 'held', 'free'];
  const bars = Object.fromEntries(kinds.map(kind => [kind, h('span', { class: kind })]));
  const words = Object.fromEntries(kinds.map(kind => [kind, h('b', {})]));
  const element = h('div', {}, h('div', { class: 'ledger', 'aria-hidden': 'true' }, Object.values(bars)), h('div', { class: 'legend' }, kinds.map(kind => h('span', { class: `key ledger-${kind}` }, t(`queue.${kind}`), ' ', words[kind]))));
  function draw(now) {
    const all = Math.max(1, now.inside + now.tickets + now.held + Math.max(0, now.free));
    for (const kind of kinds) {
      bars[kind].style.width = `${Math.max(0, now[kind]) / all * 100}%`;
      text(words[kind], number(now[kind]));
    }
  }
  return { element, draw };
}

function serverColumns(context, shown, then) {
  const bars = new WeakMap();
  return [
    { name: 'server', label: t('servers.server'), value: row => row.serverId.padStart(12), cell: row => h('a', {}, row.serverId), update: (link, row) => set(link, 'href', addressOf(row.serverId, shown().serverType)) },
    { name: 'state', label: t('servers.status'), value: row => String(row.open), cell: () => h('span', {}), update: (made, row) => { state(row.open ? 'accepting' : 'draining', made); if (row.inDoubt) text(made, t('queue.inDoubt')); } },
    { name: 'users', label: t('queue.people'), kind: 'number', value: row => row.users, cell: () => { const bar = loadBar(); bars.set(bar.element, bar); return bar.element; }, update: (made, row) => bars.get(made).tell(row.users, row.capacity) },
    { name: 'url', label: t('servers.address'), cell: row => h('span', { class: 'mono' }, row.url), drop: 2 },
    { name: 'drop', label: '', cell: row => actionButton(context, {
      label: t('queue.drop'), kind: 'quiet', act: () => remove(`/queue/v1/worlds/${part(shown().world)}/servers/${part(row.serverId)}`), said: t('queue.dropDone', { server: row.serverId }), then,
      question: { title: t('queue.dropAsk', { server: row.serverId }), consequence: t('queue.dropConsequence', { n: number(row.users) }), action: t('queue.drop'), isDanger: true },
    }), update: () => {}, drop: 1 },
  ];
}
