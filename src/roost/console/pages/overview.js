// Everything at a glance: the way of a user through the system, what needs attention, what has just happened.

import { sparkline, timeChart } from '../chart.js';
import { h, icon, keep, set, show, text } from '../elements.js';
import { compact, duration, number, percent, rate } from '../format.js';
import { known_text, t } from '../i18n.js';
import { card, eventLine, pageHead, state } from '../parts.js';
import { sum } from '../recent.js';
import { addressOf } from '../standing.js';
import { emptyState } from '../table.js';
import { tourPanel } from './tour.js';

const EVENTS_SHOWN = 50;

export function overviewPage(context) {
  const { recent } = context;
  const path = pathPicture(recent);
  const attention = h('ul', { class: 'attention' });
  const jobs = h('ul', { class: 'jobs' });
  const jobsCard = card(t('overview.jobs'), jobs);
  const events = h('ul', { class: 'events' });
  const none = emptyState(t('overview.noEvents'), t('overview.noEventsHow'), 'roost agent --type game --group kr-1 -- ./server');
  const line = timeChart({ label: t('overview.chartLine'), series: [{ name: t('overview.waiting'), kind: 'accent' }, { name: t('overview.tickets'), kind: 'dim' }], unit: compact });
  const flow = timeChart({ label: t('overview.chartFlow'), series: [{ name: t('overview.issued'), kind: 'accent' }, { name: t('overview.entered'), kind: 'dim' }], unit: rate });
  const tour = tourPanel(context);

  const element = h('div', { class: 'page' }, pageHead('overview'), tour.element, path.element,
    h('div', { class: 'grid two' },
      h('div', { class: 'stack' }, card(t('overview.attention'), attention), card(t('overview.events'), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': t('overview.events') }, events, none))),
      h('div', { class: 'stack' }, jobsCard, card(null, line.element), card(null, flow.element))));

  function draw(overview) {
    path.draw(overview);
    drawAttention(attention, overview);
    set(jobsCard, 'hidden', !overview.jobs.length);
    keep(jobs, overview.jobs, job => job.id, makeJob, updateJob);
    const shown = overview.recent.slice(0, EVENTS_SHOWN);
    keep(events, shown, event => `${event.at} ${event.scope} ${event.event} ${event.subject}`, eventLine);
    set(none, 'hidden', shown.length > 0);
    line.draw([recent.series('waiting'), recent.series('tickets')]);
    flow.draw([recent.series('issuedPerSecond'), recent.series('enteredPerSecond')]);
  }

  const unlisten = recent.listen(draw);
  return { element, leave: () => { unlisten(); tour.leave(); } };
}

/** Waiting → tickets → servers → homes → lanes, each with its number, what flows on, and how it is. */
function pathPicture(recent) {
  const stages = [
    stage('queue', 'waiting'), stage('queue', 'tickets'), stage('servers', 'servers'), stage('users', 'homes'), stage('orders', 'lanes'),
  ];
  const [waiting, tickets, servers, homes, lanes] = stages;
  const flows = [flowArrow(), flowArrow(), flowArrow(), flowArrow()];
  const element = h('section', { class: 'path', 'aria-label': t('overview.path') }, stages.flatMap((one, at) => [one.element, flows[at]?.element]));

  function draw({ worlds, servers: fleet, homes: held, orders, jobs, attention }) {
    const isHeld = worlds.some(({ mode }) => mode === 'hold');
    waiting.draw(compact(sum(worlds, 'waiting')), [[t('overview.away'), compact(sum(worlds, 'away'))], [t('overview.eta'), duration(longest(worlds))]], isHeld ? 'warn' : '', isHeld ? t('overview.isHeld') : '');
    waiting.spark.draw(recent.series('waiting'));
    tickets.draw(compact(sum(worlds, 'tickets')), [[t('overview.inside'), compact(sum(worlds, 'inside'))], [t('overview.free'), compact(sum(worlds, 'free'))]]);
    tickets.spark.draw(recent.series('inside'));
    const trouble = (fleet.suspect ?? 0) + (fleet.unhealthy ?? 0);
    servers.draw(`${compact(fleet.accepting)} / ${compact(fleet.total)}`, [[t('overview.load'), percent(loadShare(fleet), 0)], [t('overview.notTaking'), compact(fleet.total === null ? null : fleet.total - fleet.accepting)]], trouble ? 'warn' : '', trouble ? t('overview.suspect', { n: trouble }) : '');
    servers.spark.draw(recent.series('accepting'));
    homes.draw(compact(held.users), [[t('overview.moving'), compact(held.moving)], [t('overview.moves'), rate(held.movesPerSecond)]], '', jobs.some(({ state: now }) => now === 'running') ? t('overview.updating') : '');
    homes.spark.draw(recent.series('users'));
    const isUnowned = attention.some(({ code }) => code === 'shards-unowned');  // those that nobody has started yet are none
    lanes.draw(compact(orders.depth), [[t('overview.shards'), orders.shards === null ? '–' : `${number(orders.owned)} / ${number(orders.shards)}`], [t('overview.rejected'), rate(orders.rejectedPerSecond)]], orders.violations || isUnowned ? 'bad' : '', orders.violations ? t('overview.violations', { n: orders.violations }) : '');
    lanes.spark.draw(recent.series('acceptedPerSecond'));
    flows[0].draw(sum(worlds, 'issuedPerSecond'));
    flows[1].draw(sum(worlds, 'enteredPerSecond'));
    flows[2].draw(held.placedPerSecond);
    flows[3].draw(orders.acceptedPerSecond);
  }
  return { element, draw };
}

function stage(page, name) {
  const value = h('b', {}, '–');
  const rows = h('dl', {});
  const note = h('p', { class: 'note', hidden: true });
  const spark = sparkline();
  const element = h('a', { class: 'stage', href: `#/${page}` }, h('span', { class: 'name' }, t(`overview.stage.${name}`)), value, spark.element, rows, note);
  function draw(shown, beside, kind = '', said = '') {
    text(value, shown);
    keep(rows, beside, ([label]) => label, ([label]) => h('div', {}, h('dt', {}, label), h('dd', {})), (row, [, told]) => text(row.lastChild, told));
    set(element, 'data-kind', kind || null);
    text(note, said);
    set(note, 'hidden', !said);
  }
  return { element, draw, spark };
}

/** Dots that run as fast as people do; they stand where nobody goes on. */
function flowArrow() {
  const words = h('span', {});
  const dots = h('i', { 'aria-hidden': 'true' });
  const element = h('div', { class: 'flow' }, words, dots);
  function draw(perSecond) {
    text(words, perSecond === null || perSecond === undefined ? '' : rate(perSecond));
    set(element, 'data-speed', !perSecond ? null : perSecond < 1 ? 'slow' : perSecond < 20 ? 'brisk' : 'fast');
  }
  return { element, draw };
}

const longest = worlds => worlds.reduce((most, { etaSeconds }) => etaSeconds === null || etaSeconds === undefined ? most : Math.max(most ?? 0, etaSeconds), null);

function loadShare(fleet) {
  const limited = (fleet.byType ?? []).filter(({ capacity }) => capacity);
  const capacity = sum(limited, 'capacity');
  return capacity ? sum(limited, 'load') / capacity : null;
}

const PAGE_OF = { game: 'servers', world: 'queue', job: 'update', shard: 'orders' };

function drawAttention(list, { attention, health }) {
  const rows = [...attention];
  if (health.store === 'away' && !rows.some(({ subject }) => subject === 'store')) rows.unshift({ level: 'error', what: t('overview.storeAway'), subject: 'store', todo: t('overview.storeAwayTodo') });
  keep(list, rows.length ? rows : [{ level: 'good', what: t('overview.allWell'), subject: '', todo: '' }], ({ level, what, subject }) => `${level} ${subject} ${what.replace(/\d+/g, '#')}`, makeAttention, (row, told) => {
    text(row.querySelector('b'), known_text(`attention.${told.code}`, told.params) ?? told.what);
    text(row.querySelector('.todo'), known_text(`attentionTodo.${told.code}`, told.params) ?? told.todo);
  });
}

function makeAttention({ level, subject }) {
  const [kind, id] = subject.split('/');
  const page = subject ? PAGE_OF[kind] ?? (id ? 'servers' : null) : null;
  const link = page ? h('a', { href: page === 'servers' ? addressOf(id ?? '', id && kind) : `#/${page}${page === 'update' || page === 'queue' ? `/${encodeURIComponent(id ?? '')}` : ''}` }, t('action.look')) : null;
  const sign = level === 'good' ? 'M5 12.5l4.500 4.500L19 7.500' : 'M12 4 2.500 20h19zM12 10v4.500M12 17.300v.2';
  return h('li', { class: level }, icon(sign), h('div', {}, h('b', {}), h('p', { class: 'todo' })), link);
}

function makeJob(job) {
  return h('li', {}, h('a', { href: `#/update/${encodeURIComponent(job.id)}`, class: 'row between' }, h('b', {}), h('span', {})), h('progress', { max: '1', 'aria-label': t('update.progress') }), h('p', { class: 'dim' }));
}

function updateJob(row, job) {
  text(row.querySelector('b'), t('overview.job', { servers: job.servers.join(', ') || job.id }));
  state(job.state, row.querySelector('a > span'));
  row.querySelector('progress').value = job.state === 'done' ? 1 : job.users ? job.moved / job.users : 0;
  const eta = job.etaSeconds === null ? '' : ` · ${t('update.left', { time: duration(job.etaSeconds) })}`;
  text(row.querySelector('p'), `${number(job.moved)} / ${number(job.users)} · ${rate(job.rateNow)}${job.state === 'running' ? eta : ''}`);
  show(row, ...row.children);
}
