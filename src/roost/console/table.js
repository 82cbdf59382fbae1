// A table that shows thousands of rows and draws those that are seen.

import { h, keep, set, show, text } from './elements.js';
import { t } from './i18n.js';

const ROW_PX = 38;
const MARGIN_ROWS = 12;
const WINDOW_FROM = 120;

/**
 * `columns`: { name, label, value(row) to sort by, cell(row) → element or text, update(td, row), kind: 'number', drop: 1|2 }.
 * Columns with `drop` leave on narrow screens. `key(row)` finds a row again; `open(row)` makes rows pressable.
 */
export class Table {
  #rows = [];
  #sorted = [];
  #sort = null;
  #frame = 0;
  #isKnown = false;
  #body = h('tbody');
  #above = h('tr', { class: 'spacer', 'aria-hidden': 'true' }, h('td'));
  #below = h('tr', { class: 'spacer', 'aria-hidden': 'true' }, h('td'));

  constructor({ label, columns, key, open, empty, sort, rowKind }) {
    Object.assign(this, { columns, key, open, rowKind });
    this.#sort = sort ?? null;
    this.heads = columns.map(column => this.#head(column));
    this.table = h('table', { 'aria-label': label }, h('thead', {}, h('tr', {}, this.heads)), this.#body);
    this.empty = h('div', { class: 'empty', hidden: true });
    if (empty) show(this.empty, empty);
    this.element = h('div', { class: 'tabled', tabindex: '0', role: 'region', 'aria-label': label, onscroll: () => this.#soon() }, this.table, this.empty);
    this.observer = new ResizeObserver(() => this.#soon());
    this.observer.observe(this.element);
  }

  /** Show these rows. */
  draw(rows) {
    this.#isKnown = true;
    this.#rows = rows;
    this.#sortRows();
    this.#soon();
  }

  #head(column) {
    const head = h('th', { scope: 'col', class: classOf(column) });
    if (!column.value) return text(head, column.label), head;
    head.append(h('button', { type: 'button', onclick: () => this.#sortBy(column) }, column.label, h('span', { class: 'arrow', 'aria-hidden': 'true' })));
    return head;
  }

  #sortBy(column) {
    const isSame = this.#sort?.name === column.name;
    this.#sort = { name: column.name, isDown: isSame ? !this.#sort.isDown : column.kind === 'number' };
    this.#sortRows();
    this.#soon();
  }

  #sortRows() {
    const by = this.#sort && this.columns.find(({ name }) => name === this.#sort.name);
    this.heads.forEach((head, at) => set(head, 'aria-sort', by === this.columns[at] ? this.#sort.isDown ? 'descending' : 'ascending' : null));
    if (!by) { this.#sorted = this.#rows; return; }
    const sign = this.#sort.isDown ? -1 : 1;
    const valued = this.#rows.map((row, at) => [by.value(row), at, row]);
    valued.sort(([a, first], [b, second]) => (a < b ? -sign : a > b ? sign : first - second));
    this.#sorted = valued.map(([, , row]) => row);
  }

  #soon() {
    this.#frame ||= requestAnimationFrame(() => { this.#frame = 0; this.#show(); });
  }

  #show() {
    const count = this.#sorted.length;
    set(this.empty, 'hidden', count > 0 || !this.#isKnown);
    set(this.table, 'hidden', count === 0);
    set(this.table, 'aria-rowcount', String(count + 1));
    let [first, last] = [0, count];
    if (count > WINDOW_FROM) {
      first = Math.max(0, Math.floor(this.element.scrollTop / ROW_PX) - MARGIN_ROWS);
      last = Math.min(count, first + Math.ceil((this.element.clientHeight || 600) / ROW_PX) + 2 * MARGIN_ROWS);
    }
    this.#above.firstChild.style.height = `${first * ROW_PX}px`;
    this.#below.firstChild.style.height = `${(count - last) * ROW_PX}px`;
    const rows = this.#sorted.slice(first, last).map((row, at) => [row, first + at]);
    this.#keepRows(rows);
  }

  #keepRows(rows) {

    if (!this.#above.parentNode) this.table.append(h('tbody', {}, this.#above), this.#body, h('tbody', {}, this.#below));
    keep(this.#body, rows, ([row]) => this.key(row), ([row]) => this.#make(row), (element, [row, at]) => this.#update(element, row, at));
  }

  #make(row) {
    const line = h('tr', {}, this.columns.map(column => h('td', { class: classOf(column) })));
    line.cells_ = this.columns.map(({ cell, update }, at) => { if (!update) return null; const made = cell(row); line.cells[at].append(made); return made; });
    if (this.open) {
      line.classList.add('opens');
      line.addEventListener('click', event => { if (!event.target.closest('a, button, input')) this.open(line.row); });
    }
    return line;
  }

  #update(line, row, at) {
    line.row = row;
    set(line, 'aria-rowindex', String(at + 2));
    if (this.rowKind) set(line, 'data-kind', this.rowKind(row));
    this.columns.forEach(({ cell, update }, number) => {
      const td = line.cells[number];
      if (update) update(line.cells_[number], row);
      else {
        const content = cell(row);
        if (content instanceof Node) show(td, content); else text(td, content);
      }
    });
  }
}

const classOf = ({ kind, drop }) => [kind, drop && `drop-${drop}`].filter(Boolean).join(' ') || null;

/** What a newcomer sees instead of rows: what would be here, and the command that brings it. */
export function emptyState(title, how, command) {
  return h('div', { class: 'nothing' }, h('b', {}, title), how ? h('p', {}, how) : null,
    command ? h('code', { class: 'command', tabindex: '0' }, command) : null);
}

/** A field that narrows a list down. */
export function filterField(label, changed) {
  return h('input', { type: 'search', placeholder: label, 'aria-label': label, oninput: event => changed(event.target.value.trim().toLowerCase()), class: 'filter' });
}

/** How many of how many are shown. */
export const countNote = (shown, all) => shown === all ? t('count.all', { n: all }) : t('count.some', { n: shown, all });
