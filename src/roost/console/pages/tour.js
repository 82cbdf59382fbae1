// A short way through the demo, where one runs: three things to do, each with a button that does it.

import { get, post } from '../api.js';
import { actionButton } from '../dialog.js';
import { h, set, show } from '../elements.js';
import { known_text, said, t } from '../i18n.js';
import { every } from '../poll.js';

const HIDDEN = 'roost:tour';
const PAGES = { 'hot-update': 'update', flood: 'queue', kill: 'servers' };

export function tourPanel(context) {
  const steps = h('ol', {});
  const element = h('section', { class: 'card tour', hidden: true, 'aria-label': t('tour.title') });
  let polling = null;
  let shown = '';

  function draw(demo) {
    const wanted = JSON.stringify(demo);
    if (wanted === shown) return;
    shown = wanted;
    show(steps, demo.steps.map((step, at) => h('li', { class: step.done ? 'done' : null },
      h('span', { class: 'number', 'aria-hidden': 'true' }, step.done ? '✓' : String(at + 1)),
      h('div', {}, h('b', {}, known_text(`tour.${step.id}`) ?? step.title), h('p', { class: 'dim' }, known_text(`tour.${step.id}.what`) ?? '')),
      h('div', { class: 'row' }, actionButton(context, {
        label: t('tour.do'), kind: step.done ? '' : 'main', act: () => post(`/demo/v1/${encodeURIComponent(step.id)}`), said: ({ message }) => said(message), then: polling.now,
      }), PAGES[step.id] ? h('a', { href: `#/${PAGES[step.id]}` }, t('action.look')) : null))));
    set(element, 'hidden', false);
  }

  show(element, h('div', { class: 'row between' }, h('div', {}, h('h2', {}, t('tour.title')), h('p', { class: 'dim' }, t('tour.lead'))), h('div', { class: 'row' },
    actionButton(context, {
      label: t('tour.stop'), question: { title: t('tour.stop'), consequence: t('tour.stopConsequence'), action: t('tour.stop') },
      act: () => post('/demo/v1/stop'), said: ({ message }) => said(message), then: end,
    }),
    h('button', { type: 'button', class: 'quiet', onclick: () => { remember(); end(); } }, t('tour.hide')))), steps);

  function end() {
    set(element, 'hidden', true);
    polling?.end();
  }

  if (context.session.demo && !isHidden()) {
    polling = every(5000, async () => {
      const demo = await get('/demo/v1');
      if (demo.running) draw(demo); else end();
    }, { failed: end });
  }
  return { element, leave: () => polling?.end() };
}

function isHidden() {
  try { return sessionStorage.getItem(HIDDEN) === 'hidden'; } catch { return false; }
}

function remember() {
  try { sessionStorage.setItem(HIDDEN, 'hidden'); } catch { /* then it comes back */ }
}
