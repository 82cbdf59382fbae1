// Questions before something is done: the consequence in words, once.

import { h, set } from './elements.js';
import { t } from './i18n.js';
import { done, failed } from './toast.js';

let count = 0;

/**
 * Ask, and answer with the values of the fields, or null. `fields` are { name, label, type, value, min, max, options, hint }.
 * `isDanger` marks what cannot be taken back.
 */
export function ask({ title, consequence, action, fields = [], isDanger = false }) {
  return new Promise(answer => {
    const inputs = fields.map(field => ({ field, input: inputOf(field) }));
    const id = `question-${count += 1}`;
    const dialog = h('dialog', { 'aria-labelledby': id, onclose: () => { dialog.remove(); answer(dialog.returnValue === 'yes' ? valuesOf(inputs) : null); } },
      h('form', { method: 'dialog' },
        h('h2', { id }, title),
        [consequence].flat().filter(Boolean).map(line => h('p', {}, line)),
        inputs.map(({ field, input }) => h('div', { class: 'field' },
          h('label', { for: input.id }, field.label), input, field.hint ? h('p', { class: 'hint' }, field.hint) : null)),
        h('div', { class: 'buttons' },
          h('button', { type: 'button', onclick: () => dialog.close('no') }, t('action.cancel')),
          h('button', { type: 'submit', value: 'yes', class: isDanger ? 'main bad' : 'main' }, action))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

function inputOf({ name, type = 'text', value = '', options, ...rest }) {
  const id = `field-${name}-${count += 1}`;
  if (options) return h('select', { id }, options.map(([of, label]) => h('option', { value: of, selected: of === value }, label)));
  const { label, hint, ...more } = rest;
  return h(type === 'area' ? 'textarea' : 'input', { id, ...(type !== 'area' && { type }), ...more, value: String(value ?? '') });
}

const valuesOf = inputs => Object.fromEntries(inputs.map(({ field, input }) => [field.name, input.value]));

/**
 * A button that acts: it asks first where there is a `question`, is busy until the answer, and tells what came of it.
 * Whoever may only look sees it disabled, with the reason.
 */
export function actionButton(context, { label, question, act, said, then, kind = '' }) {
  const reason = context.canAct ? null : t('readOnly.why');
  const button = h('button', { type: 'button', class: kind, disabled: !context.canAct, title: reason, onclick: press }, label);

  async function press() {
    const values = question ? await ask(typeof question === 'function' ? question() : question) : {};
    if (values === null) return;
    set(button, 'disabled', true);
    try {
      const result = await act(values);
      done(typeof said === 'function' ? said(result, values) : said ?? label);
      then?.(result);
    } catch (error) {
      failed(error);
    } finally {
      set(button, 'disabled', !context.canAct);
    }
  }
  return button;
}
