// One hot update while it runs and after: progress, pace and why, pauses, what can be done, the certificate.

import { get, part, post } from '../api.js';
import { barChart, timeChart } from '../chart.js';
import { actionButton } from '../dialog.js';
import { h, keep, set, show, text } from '../elements.js';
import { duration, milliseconds, number, rate, since } from '../format.js';
import { said, t } from '../i18n.js';
import { card, facts, figure, jobWhy, state } from '../parts.js';
import { every } from '../poll.js';
import { refused } from '../refusal.js';

const VERBS = {
  running: ['pause', 'cancel'], paused: ['resume', 'cancel', 'rollback'], 'rolling-back': [], reconciling: [], done: ['rollback'], cancelled: ['rollback'], failed: ['rollback'],
};
const COUNTS = ['moved', 'returned', 'later', 'pinned', 'released', 'gone', 'forced', 'back'];

export function jobView(context, id) {
  const { live, recent } = context;
  const name = `job.${id}.rate`;
  const title = h('h1', {});
  const status = h('span', {});
  const verbs = h('div', { class: 'row wrap' });
  const why = h('p', { class: 'dim', role: 'status' });
  const progress = h('progress', { max: '1', 'aria-label': t('update.progress') });
  const figures = Object.fromEntries(['moved', 'rateNow', 'eta', 'p50', 'p99', 'max'].map(one => [one, figure(t(`update.${one}`))]));
  const pace = timeChart({ label: t('update.pace'), series: [{ name: t('update.rateNow'), kind: 'accent' }], unit: rate, minutes: 5 });
  const pauses = barChart({ label: t('update.pauses'), below: t('update.pausesUnit') });
  const counts = h('ul', { class: 'counts' });
  const rateWhy = h('p', { class: 'dim' });
  const pinned = h('div', {});
  const order = h('div', {});
  const certificate = h('div', {});
  const trouble = h('p', { class: 'trouble', hidden: true });
  const element = h('div', { class: 'stack' }, h('div', { class: 'head' }, h('div', {}, h('div', { class: 'row' }, title, status), why), verbs), trouble,
    card(null, progress, h('div', { class: 'figures' }, Object.values(figures).map(one => one.element)), counts), certificate,
    h('div', { class: 'grid two' }, card(null, pace.element, rateWhy), card(null, pauses.element)), pinned, order);
  let drawnState = '';

  const polling = every(1000, async () => {
    const job = await get(`/drain/v1/jobs/${part(id)}`);
    draw(job);
    polling.pace(job.endedAt ? 10000 : 1000);
  }, { live, failed: error => { text(trouble, refused(error)); set(trouble, 'hidden', false); } });
  const unlisten = live.listen('drain', events => { if (events.some(({ subject }) => subject.endsWith(id))) polling.soon(100); });

  function draw(job) {
    set(trouble, 'hidden', true);
    text(title, job.servers.length ? t('update.of', { servers: job.servers.join(', ') }) : t(`update.kind.${job.kind}`));
    state(job.state, status);
    text(why, (job.why && jobWhy(job.state, job.why)) || t(`update.is.${job.state}`));
    progress.value = job.state === 'done' ? 1 : job.counts.users ? (job.counts.moved + job.counts.released + job.counts.gone) / job.counts.users : 0;
    figures.moved.tell(`${number(job.counts.moved)} / ${number(job.counts.users)}`);
    figures.rateNow.tell(rate(job.rateNow), t('update.atMost', { rate: rate(job.rate * Math.max(1, job.servers.length)) }));
    figures.eta.tell(job.endedAt ? t('update.over') : duration(job.etaSeconds));
    figures.p50.tell(milliseconds(job.pauses.p50Ms));
    figures.p99.tell(milliseconds(job.pauses.p99Ms));
    figures.max.tell(milliseconds(job.pauses.maxMs));
    if (!job.endedAt) recent.note(name, job.rateNow);
    pace.draw([recent.series(name)]);
    text(rateWhy, job.rateWhy ? t('update.rateWhy', { why: said(job.rateWhy) }) : '');
    pauses.draw(bucketsOf(job.pauses));
    keep(counts, COUNTS.filter(one => job.counts[one] || one === 'moved'), one => one, one => h('li', {}, h('b', {}), ' ', h('span', { class: 'dim' }, t(`count.${one}`))), (row, one) => text(row.firstChild, number(job.counts[one])));
    show(pinned, pinnedCard(job.pinned));
    show(order, orderCard(job));
    drawOnce(job);
  }

  /** What depends on the state alone is made when the state turns: buttons must not vanish under a finger. */
  function drawOnce(job) {
    const now = `${job.state} ${job.certificate ? 'certified' : ''}`;
    if (now === drawnState) return;
    drawnState = now;
    show(verbs, (VERBS[job.state] ?? []).map(verb => verbButton(context, job, verb, polling)));
    show(certificate, job.certificate ? certificateCard(job.certificate) : null);
  }

  return { element, leave: () => { polling.end(); unlisten(); } };
}

function verbButton(context, job, verb, polling) {
  const asks = verb === 'cancel' || verb === 'rollback';
  return actionButton(context, {
    label: t(`update.${verb}`), kind: verb === 'resume' ? 'main' : '', act: () => post(`/drain/v1/jobs/${part(job.id)}/${verb}`), said: t(`update.${verb}Done`), then: polling.now,
    question: asks ? { title: t(`update.${verb}Ask`), consequence: t(`update.${verb}Consequence`, { n: number(job.counts.moved) }), action: t(`update.${verb}`), isDanger: true } : null,
  });
}

/** The histogram without the empty buckets at its end. */
function bucketsOf({ boundsMs = [], counts = [] }) {
  const last = Math.max(9, counts.findLastIndex(count => count > 0) + 1);
  return counts.slice(0, last + 1).map((value, at) => {
    const bound = boundsMs[at];
    const shown = bound === undefined ? `> ${boundsMs.at(-1)}` : `≤ ${bound}`;
    return { name: bound === undefined ? '…' : String(bound), value, title: t('update.bucket', { bound: `${shown} ms`, n: number(value) }) };
  });
}

function pinnedCard(pinned) {
  const rows = Object.entries(pinned ?? {});
  return rows.length ? card(t('update.pinnedWhy'), facts(rows.map(([user, reason]) => [user, said(reason)]))) : null;
}

function orderCard(job) {
  return card(t('update.order'), facts([[t('update.id'), h('span', { class: 'mono' }, job.id)], [t('servers.type'), job.type], [t('update.to'), job.to.join(', ') || t('update.anyServer')], [t('servers.version'), job.version || t('update.anyVersion')],
    [t('update.canary'), job.canary ? `${job.canary} %` : t('update.noCanary')], [t('update.by'), job.by], [t('update.made'), since(job.madeAt)], [t('update.ended'), job.endedAt ? since(job.endedAt) : null]]));
}

/** Never a zero where nobody counted. */
function certificateCard(certificate) {
  const verdicts = ['lost', 'doubled', 'reordered', 'disconnected'].map(name => {
    const value = certificate[name];
    return h('div', { class: 'figure', 'data-kind': value === 0 ? 'good' : value === null ? 'warn' : 'bad' }, h('span', {}, t(`certificate.${name}`)), h('b', {}, value === null ? '?' : number(value)), h('small', {}, value === null ? t('certificate.unknown') : ''));
  });
  return h('section', { class: `card certificate ${certificate.holds ? 'holds' : 'broken'}` }, h('div', { class: 'row between' }, h('h2', {}, t('update.certificate')), h('b', { class: 'verdict' }, t(certificate.holds ? 'certificate.holds' : certificate.isComplete ? 'certificate.broken' : 'certificate.incomplete'))),
    h('div', { class: 'figures' }, verdicts),
    facts([[t('certificate.requests'), number(certificate.requests)], [t('certificate.answered'), number(certificate.answered)], [t('certificate.refused'), number(certificate.refused)], [t('certificate.longest'), milliseconds(certificate.longestPauseMs)], [t('certificate.gates'), number(certificate.gates)], [t('certificate.missing'), certificate.missing.join(', ')]]),
    certificate.notes.length ? h('ul', { class: 'notes' }, certificate.notes.map(note => h('li', {}, said(note)))) : null);
}
