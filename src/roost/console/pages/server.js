// One server: what it says of itself, what others find, how it came here, and what an operator may do with it.

import { get, part, put } from '../api.js';
import { actionButton } from '../dialog.js';
import { h, set, show, text } from '../elements.js';
import { milliseconds, number, since, whole } from '../format.js';
import { known_text, t } from '../i18n.js';
import { facts, loadBar, state } from '../parts.js';
import { troubleOf } from '../refusal.js';
import { isMeant, nameOf, standing } from '../standing.js';
import { done, failed } from '../toast.js';

const HISTORY_SHOWN = 30;
const REFRESH_MS = 10000;

export function serverPanel(context, closed) {
  const title = h('h2', { tabindex: '-1' });
  const status = h('span', {});
  const body = h('div', { class: 'stack' });
  const element = h('aside', { class: 'card panel', hidden: true, 'aria-label': t('server.label') },
    h('div', { class: 'row between' }, h('div', { class: 'row' }, title, status), h('button', { type: 'button', class: 'quiet', 'aria-label': t('action.close'), onclick: closed }, '×')), body);
  let id = '';
  let ofType = '';
  let timer = 0;

  async function refresh() {
    clearTimeout(timer);
    const asked = id;
    try {
      const [detail, health] = await Promise.all([find(asked, ofType), get('/sd/v1/health').catch(() => null)]);
      if (asked === id) draw(detail, health);
    } catch (error) {
      if (asked === id) show(body, ...troubleOf(error));
    }
    clearTimeout(timer);
    again();
  }

  /** A hidden page does not ask, and goes on when it is shown again. */
  function again() {
    timer = setTimeout(() => { if (id && document.hidden) again(); else if (id) refresh(); }, REFRESH_MS);
  }

  function draw({ instance, status: ended, history }, health) {
    text(title, instance ? nameOf(instance) : id);
    state(instance ? standing(instance) : ended, status);
    const judged = health?.servers.find(server => server.instanceId === instance?.instanceId);
    show(body, instance ? actions(context, instance, refresh) : h('p', { class: 'dim' }, t('server.gone')),
      instance ? says(instance) : null, instance ? found(instance, judged, health?.checkers) : null, lives(history));
  }

  return {
    element,
    refresh,
    open(wanted, type = '') { [id, ofType] = [wanted, type]; set(element, 'hidden', false); text(title, wanted); show(body, h('p', { class: 'dim' }, t('loading'))); refresh(); },
    close() { id = ''; clearTimeout(timer); set(element, 'hidden', true); },
    leave() { id = ''; clearTimeout(timer); },
  };
}

/** By the instance id, or by the server id and type that addresses carry. */
async function find(id, type) {
  const { instances } = isUlid(id) ? { instances: [] } : await get('/sd/v1/instances');
  const named = instances.find(row => isMeant(row, id, type));
  return get(`/sd/v1/instances/${part(named?.instanceId ?? id)}`);
}

const isUlid = id => /^[0-9A-HJKMNP-TV-Z]{26}$/.test(id);

function actions(context, instance, refresh) {
  const name = nameOf(instance);
  const kept = instance.override ?? {};
  const at = `/sd/v1/instances/${part(instance.instanceId)}`;
  // An override is set as a whole: what others have ordered since this was drawn must stay.
  const override = async change => {
    const now = (await get(at)).instance?.override ?? {};
    return put(`${at}/override`, { drain: !!now.drain, outOfService: !!now.outOfService, weight: now.weight ?? null, ...change });
  };
  const verb = (on, word, change) => actionButton(context, {
    label: t(`server.${word}`), act: () => override(change), then: refresh, said: t(`server.${word}Done`, { name }),
    question: on ? null : { title: t(`server.${word}Ask`, { name }), consequence: [t(`server.${word}Consequence`), instance.load ? t('server.hasUsers', { n: number(instance.load) }) : null], action: t(`server.${word}`), isDanger: word === 'takeOut' },
  });
  return h('div', { class: 'row wrap' },
    h('button', { type: 'button', onclick: event => verify(instance, event.currentTarget) }, t('server.verify')),
    kept.drain ? verb(true, 'undrain', { drain: false }) : verb(false, 'drain', { drain: true }),
    kept.outOfService ? verb(true, 'putBack', { outOfService: false }) : verb(false, 'takeOut', { outOfService: true }),
    actionButton(context, {
      label: t('server.weight'), said: t('server.weightDone', { name }), then: refresh,
      act: ({ weight }) => override({ weight: weight === '' ? null : Number(weight) }),
      question: () => ({ title: t('server.weightAsk', { name }), consequence: t('server.weightConsequence'), action: t('action.set'),
        fields: [{ name: 'weight', label: t('servers.weight'), type: 'number', min: 0, max: 10000, value: kept.weight ?? instance.weight, hint: t('server.weightHint') }] }),
    }));
}

/** Looking is allowed to everybody who may read. */
async function verify(instance, button) {
  set(button, 'disabled', true);
  try {
    const { instance: seen } = await get(`/sd/v1/instances/${part(instance.instanceId)}`, { verify: 'true' });
    const probe = seen?.probe;
    if (!probe) failed(new Error(t('server.noProbe')));
    else if (probe.ok) done(t('server.answers', { name: nameOf(instance), time: milliseconds(probe.latencyMs) }));
    else failed(Object.assign(new Error(t('server.noAnswer', { name: nameOf(instance) })), { hint: probe.error }));
  } catch (error) {
    failed(error);
  } finally {
    set(button, 'disabled', false);
  }
}

function says(instance) {
  const bar = loadBar();
  bar.tell(instance.load, instance.capacity);
  const labels = Object.entries(instance.labels ?? {});
  const measured = Object.entries(instance.performance ?? {}).filter(([, value]) => typeof value !== 'object');
  return facts([
    [t('servers.load'), bar.element], [t('servers.service'), `${instance.type}:${instance.group}`], [t('servers.version'), instance.version],
    [t('servers.zone'), instance.zone], [t('servers.address'), h('span', { class: 'mono' }, instance.hostname || instance.publicIp)],
    [t('server.ports'), Object.entries(instance.ports ?? {}).map(([name, port]) => `${name} ${port}`).join(', ')],
    [t('servers.weight'), instance.override?.weight === null || instance.override?.weight === undefined ? String(instance.weight) : `${instance.override.weight} (${t('server.instead')})`],
    [t('server.labels'), labels.length ? h('span', { class: 'row wrap' }, labels.map(([name, value]) => h('span', { class: 'chip' }, `${name}=${value}`))) : null],
    [t('server.measured'), measured.slice(0, 6).map(([name, value]) => `${name} ${typeof value === 'number' ? number(value, 1) : value}`).join(', ')],
    [t('server.life'), h('span', { class: 'mono' }, instance.life)], [t('server.id'), h('span', { class: 'mono' }, instance.instanceId)],
  ]);
}

function found(instance, judged, checkers) {
  const votes = judged?.votes ?? 0;
  const asked = Math.min(3, checkers ?? 0);
  const probe = judged?.probe;
  return h('div', {}, h('h3', {}, t('server.found')), facts([
    [t('servers.beat'), since(instance.lastHeartbeat)],
    [t('server.votes'), judged ? h('span', {}, h('span', { class: 'votes', 'aria-hidden': 'true' }, Array.from({ length: Math.max(asked, votes) }, (_, at) => h('i', { class: at < votes ? 'bad' : 'good' }))), t('server.votesSay', { votes, asked: Math.max(asked, votes) })) : t('server.notChecked')],
    [t('server.probe'), !probe ? t('server.noProbe') : probe.ok ? t('server.probeOk', { time: milliseconds(probe.latencyMs) }) : probe.error],
  ]));
}

function lives(history) {
  if (!history?.length) return null;
  const newest = [...history].reverse().slice(0, HISTORY_SHOWN);
  return h('div', {}, h('h3', {}, t('server.history')), h('ol', { class: 'timeline' }, newest.map(line =>
    h('li', { title: whole(line.at) }, h('b', {}, known_text(`life.${line.event}`) ?? line.event), line.status ? state(line.status) : null, since(line.at)))));
}
