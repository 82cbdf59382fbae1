// Replace servers under their players: choose, see the plan, start, watch, and read what the gates counted.

import { get, post } from '../api.js';
import { actionButton } from '../dialog.js';
import { h, set, show, text } from '../elements.js';
import { duration, number, rate, since } from '../format.js';
import { t } from '../i18n.js';
import { card, chooser, loadBar, pageHead, state } from '../parts.js';
import { every } from '../poll.js';
import { troubleOf } from '../refusal.js';
import { addressOf } from '../standing.js';
import { emptyState, Table } from '../table.js';
import { jobView } from './job.js';
import { planView } from './plan.js';

export function hotUpdatePage(context, [opened]) {
  return opened ? oneJob(context, opened) : allJobs(context);
}

function oneJob(context, id) {
  const view = jobView(context, id);
  return { element: h('div', { class: 'page' }, h('a', { href: '#/update', class: 'back' }, `← ${t('update.all')}`), view.element), leave: view.leave };
}

function allJobs(context) {
  const { live, go } = context;
  const chosen = new Set();
  const type = chooser(t('users.type'), () => { chosen.clear(); polling.now(); });
  type.offer(['entity']);
  const holders = new Table({ label: t('update.servers'), key: server => server.serverId, columns: holderColumns(chosen, () => drawChoice(), () => type.value), sort: { name: 'server', isDown: false },
    empty: emptyState(t('update.none'), t('update.noneHow'), 'roost up --with entity,gate') });
  const choice = h('p', { class: 'dim', role: 'status' });
  const fields = {
    rate: numberField('rate', { min: 1, max: 10000, placeholder: '100' }), canary: numberField('canary', { min: 0, max: 100, placeholder: '0' }),
    version: h('input', { id: 'update-version', placeholder: t('update.anyVersion'), maxlength: 255 }),
  };
  const planned = h('div', { role: 'status' });
  const planButton = h('button', { type: 'button', onclick: plan }, t('update.plan'));
  const startButton = actionButton(context, {
    label: t('update.start'), kind: 'main', act: () => post('/drain/v1/jobs', wanted(false)), said: ({ job }) => t('update.started', { id: job.id.slice(-6) }), then: ({ job }) => go(`#/update/${encodeURIComponent(job.id)}`),
    question: () => ({ title: t('update.startAsk', { servers: [...chosen].join(', ') }), consequence: [t('update.startConsequence', { n: usersOn() }), t('update.startThen')], action: t('update.start') }),
  });
  const jobs = new Table({ label: t('update.jobs'), key: job => job.id, columns: jobColumns(), open: job => go(`#/update/${encodeURIComponent(job.id)}`), empty: emptyState(t('update.noJobs'), t('update.noJobsHow'), 'roost drill hotfix') });
  const element = h('div', { class: 'page' }, pageHead('update', type.element),
    h('div', { class: 'grid wide-left' }, h('div', { class: 'card flush' }, holders.element),
      card(t('update.new'), choice, field('rate', fields.rate, t('update.rateHint')), field('canary', fields.canary, t('update.canaryHint')), field('version', fields.version, t('update.versionHint')), h('div', { class: 'row' }, planButton, startButton))),
    planned, h('div', { class: 'card flush' }, h('h2', { class: 'inset' }, t('update.jobs')), jobs.element));
  let known = [];

  const polling = every(3000, async () => {
    const [{ servers }, list, { instances }] = await Promise.all([get('/bind/v1/servers', { type: type.value }), get('/drain/v1/jobs'), get('/sd/v1/instances')]);
    type.offer([...new Set(['entity', ...instances.map(row => row.type).filter(name => name.includes('entity'))])]);
    known = servers;
    for (const id of chosen) if (!servers.some(server => server.serverId === id)) chosen.delete(id);
    holders.draw(servers);
    jobs.draw(list.jobs);
    drawChoice();
  }, { live });
  const unlisten = live.listen('drain', () => polling.soon(300));

  const usersOn = () => number(known.filter(({ serverId }) => chosen.has(serverId)).reduce((all, { users }) => all + users, 0));

  function drawChoice() {
    text(choice, chosen.size ? t('update.chosen', { servers: [...chosen].join(', '), n: usersOn() }) : t('update.choose'));
    set(planButton, 'disabled', !chosen.size || !context.canAct);
    set(planButton, 'title', context.canAct ? null : t('readOnly.why'));
    set(startButton, 'disabled', !chosen.size || !context.canAct);
  }

  function wanted(isPlan) {
    return { servers: [...chosen], type: type.value, rate: Number(fields.rate.value) || 0, canary: Number(fields.canary.value) || 0, version: fields.version.value.trim(), by: context.session.name, plan: isPlan };
  }

  async function plan() {
    try {
      const reply = await post('/drain/v1/jobs', wanted(true));
      show(planned, planView(reply.plan));
    } catch (error) {
      show(planned, card(t('update.planned'), ...troubleOf(error)));
    }
  }

  drawChoice();
  return { element, leave: () => { polling.end(); unlisten(); } };
}

const numberField = (name, more) => h('input', { id: `update-${name}`, type: 'number', ...more });
const field = (name, input, hint) => h('div', { class: 'field' }, h('label', { for: input.id }, t(`update.${name}`)), input, h('p', { class: 'hint' }, hint));

function holderColumns(chosen, changed, ofType) {
  const bars = new WeakMap();
  return [
    { name: 'choose', label: '', cell: server => h('input', { type: 'checkbox', 'aria-label': t('update.chooseOne', { server: server.serverId }), onchange: event => { if (event.target.checked) chosen.add(server.serverId); else chosen.delete(server.serverId); changed(); } }), update: (box, server) => { set(box, 'checked', chosen.has(server.serverId)); } },
    { name: 'server', label: t('servers.server'), value: server => server.serverId.padStart(12), cell: server => h('a', {}, server.serverId), update: (link, server) => set(link, 'href', addressOf(server.serverId, ofType())) },
    { name: 'version', label: t('servers.version'), value: server => server.version, cell: server => server.version || '–' },
    { name: 'users', label: t('update.users'), kind: 'number', value: server => server.users, cell: () => { const bar = loadBar(); bars.set(bar.element, bar); return bar.element; }, update: (made, server) => bars.get(made).tell(server.users, server.capacity) },
    { name: 'state', label: t('servers.status'), value: server => String(server.accepting), cell: () => h('span', {}), update: (made, server) => state(server.accepting ? 'accepting' : server.alive ? server.open ? 'full' : 'draining' : 'no-response', made), drop: 1 },
  ];
}

function jobColumns() {
  return [
    { name: 'job', label: t('update.job'), cell: job => h('a', { href: `#/update/${encodeURIComponent(job.id)}` }, job.servers.join(', ') || t(`update.kind.${job.kind}`)), update: () => {} },
    { name: 'state', label: t('servers.status'), value: job => job.state, cell: () => h('span', {}), update: (made, job) => state(job.state, made) },
    { name: 'moved', label: t('update.moved'), kind: 'number', value: job => job.counts.moved, cell: job => `${number(job.counts.moved)} / ${number(job.counts.users)}` },
    { name: 'rate', label: t('update.rateNow'), kind: 'number', value: job => job.rateNow, cell: job => rate(job.rateNow), drop: 1 },
    { name: 'left', label: t('update.eta'), kind: 'number', cell: job => duration(job.endedAt ? null : job.etaSeconds), drop: 1 },
    { name: 'certificate', label: t('update.certificate'), cell: job => job.certificate ? state(job.certificate.holds ? 'done' : 'failed') : '–', drop: 2 },
    { name: 'by', label: t('update.by'), value: job => job.by, cell: job => job.by || '–', drop: 2 },
    { name: 'made', label: t('update.made'), value: job => job.madeAt, kind: 'number', cell: () => h('time'), update: (made, job) => since(job.madeAt, made), drop: 1 },
  ];
}
