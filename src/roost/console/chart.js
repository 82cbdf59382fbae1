// Charts in SVG: axes with units, values on hover, and words for those who do not see them.

import { h, set, show, svg, text } from './elements.js';
import { clock, number } from './format.js';
import { t } from './i18n.js';
import { arcPath, linePath, nearest, ticks, timeTicks } from './scale.js';

const LEFT = 44;
const BOTTOM = 20;
const TOP = 8;
const RIGHT = 10;
const LEAST_MS = 60000;

/**
 * Numbers over time. `series` are { name, kind } (kind: accent, soft, dim, good, bad), `unit` writes a value.
 * `draw(data)` takes for each of them its points [time, value], oldest first.
 */
export function timeChart({ label, series, unit = number, height = 150, minutes = 10 }) {
  const back = svg('g', { class: 'axes' });
  const lines = series.map(({ kind }, at) => [svg('path', { class: `area ${kind}`, hidden: at > 0 || null }), svg('path', { class: `line ${kind}` })]);
  const cross = svg('line', { class: 'cross', y1: TOP, visibility: 'hidden' });
  const picture = svg('svg', { class: 'plot', role: 'img', 'aria-label': label, height }, back, lines.flat(), cross);
  const legend = h('div', { class: 'legend' });
  const tip = h('div', { class: 'tip', hidden: true });
  const empty = h('p', { class: 'none' }, t('chart.none'));
  const element = h('figure', { class: 'chart' }, h('figcaption', {}, h('h3', {}, label), legend), h('div', { class: 'plotted' }, picture, empty, tip));
  const figures = series.map(({ name, kind }) => { const value = h('b', {}); legend.append(h('span', { class: `key ${kind}` }, name, ' ', value)); return value; });
  let data = series.map(() => []);
  let scale = null;

  function draw(points = data) {
    data = points;
    const width = picture.clientWidth;
    const to = Math.max(...data.map(one => one.at(-1)?.[0] ?? 0));
    figures.forEach((figure, at) => text(figure, unit(data[at].at(-1)?.[1])));
    set(picture, 'aria-label', `${label}: ${series.map(({ name }, at) => `${name} ${unit(data[at].at(-1)?.[1])}`).join(', ')}`);
    set(empty, 'hidden', to > 0);
    if (!width || !to) return;
    const first = Math.min(...data.map(one => one[0]?.[0] ?? to));
    const from = Math.min(to - LEAST_MS, Math.max(first, to - minutes * 60000));
    const seen = data.map(one => one.filter(([at]) => at >= from));
    const steps = ticks(Math.max(0, ...seen.flat().map(([, value]) => value ?? 0)), 3);
    const most = steps.at(-1);
    const x = at => LEFT + (at - from) / (to - from) * (width - LEFT - RIGHT);
    const y = value => height - BOTTOM - value / most * (height - BOTTOM - TOP);
    scale = { x, y, from, to, width, seen };
    show(back, axes({ steps, x, y, from, to, width, height, unit }));
    seen.forEach((one, at) => {
      const placed = one.map(([when, value]) => [x(when), value === null || value === undefined ? null : y(value)]);
      const path = linePath(placed);
      set(lines[at][1], 'd', path);
      if (at === 0 && placed.length && !placed.some(([, place]) => place === null)) {
        set(lines[0][0], 'd', `${path}L${placed.at(-1)[0].toFixed(1)} ${y(0)}L${placed[0][0].toFixed(1)} ${y(0)}Z`);
      }
    });
  }

  function point(event) {
    if (!scale) return;
    const box = picture.getBoundingClientRect();
    const when = scale.from + (event.clientX - box.left - LEFT) / (scale.width - LEFT - RIGHT) * (scale.to - scale.from);
    const at = scale.seen.map(one => one[nearest(one, when)]);
    const shown = at.find(Boolean);
    if (!shown) return leave();
    const place = scale.x(shown[0]);
    set(cross, 'x1', place); set(cross, 'x2', place); set(cross, 'y2', height - BOTTOM); set(cross, 'visibility', 'visible');
    show(tip, h('b', {}, clock(shown[0])), series.map(({ name, kind }, number_) => h('span', { class: `key ${kind}` }, name, ' ', h('b', {}, unit(at[number_]?.[1])))));
    set(tip, 'hidden', false);
    tip.style.left = `${Math.max(0, Math.min(place + 10, scale.width - tip.offsetWidth - 4))}px`;
  }

  function leave() {
    set(tip, 'hidden', true);
    set(cross, 'visibility', 'hidden');
  }

  picture.addEventListener('pointermove', point);
  picture.addEventListener('pointerleave', leave);
  new ResizeObserver(() => draw()).observe(element);
  return { element, draw };
}

function axes({ steps, x, y, from, to, width, height, unit }) {
  const levels = steps.flatMap(step => [
    svg('line', { x1: LEFT, x2: width - RIGHT, y1: y(step), y2: y(step), class: step ? 'grid' : 'base' }),
    svg('text', { x: LEFT - 6, y: y(step) + 4, 'text-anchor': 'end' }, unit(step)),
  ]);
  const moments = timeTicks(from, to, Math.max(2, Math.floor(width / 110))).map(at =>
    svg('text', { x: x(at), y: height - 5, 'text-anchor': 'middle' }, clock(at, to - from < 120000)));
  return [...levels, ...moments.filter(one => Number(one.getAttribute('x')) > LEFT + 14 && Number(one.getAttribute('x')) < width - 20)];
}

/** The same without axes, to stand beside a number. */
export function sparkline({ width = 96, height = 26, kind = 'accent' } = {}) {
  const path = svg('path', { class: `line ${kind}` });
  const element = svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none', 'aria-hidden': 'true' }, path);
  function draw(points) {
    const seen = points.slice(-120);
    const most = Math.max(1e-9, ...seen.map(([, value]) => value ?? 0));
    set(path, 'd', linePath(seen.map(([, value], at) => [at / Math.max(1, seen.length - 1) * width, value === null || value === undefined ? null : height - 2 - value / most * (height - 4)])));
  }
  return { element, draw };
}

/** How many there are of each: `draw(rows)` takes { name, value, title, kind }. */
export function barChart({ label, unit = number, height = 150, below = '' }) {
  const picture = svg('svg', { class: 'plot', role: 'img', 'aria-label': label, height });
  const element = h('figure', { class: 'chart' }, h('figcaption', {}, h('h3', {}, label), below ? h('span', { class: 'legend' }, below) : null), h('div', { class: 'plotted' }, picture));
  let rows = [];

  function draw(given = rows) {
    rows = given;
    const width = picture.clientWidth;
    if (!width) return;
    const steps = ticks(Math.max(0, ...rows.map(({ value }) => value)), 3);
    const y = value => height - BOTTOM - value / steps.at(-1) * (height - BOTTOM - TOP);
    const wide = (width - LEFT - RIGHT) / Math.max(1, rows.length);
    const every = Math.ceil(34 / wide);
    show(picture, ...steps.flatMap(step => [
      svg('line', { x1: LEFT, x2: width - RIGHT, y1: y(step), y2: y(step), class: step ? 'grid' : 'base' }),
      svg('text', { x: LEFT - 6, y: y(step) + 4, 'text-anchor': 'end' }, unit(step)),
    ]), ...rows.flatMap(({ name, value, title, kind = 'accent' }, at) => [
      svg('rect', { class: `bar ${kind}`, x: LEFT + at * wide + 1, y: y(value), width: Math.max(1, wide - 2), height: Math.max(0, y(0) - y(value)), rx: 2 }),
      svg('rect', { class: 'hit', x: LEFT + at * wide, y: TOP, width: wide, height: height - TOP - BOTTOM }, svg('title', {}, title ?? `${name}: ${unit(value)}`)),
      at % every ? null : svg('text', { x: LEFT + (at + 0.5) * wide, y: height - 5, 'text-anchor': 'middle' }, name),
    ].filter(Boolean)));
    set(picture, 'aria-label', `${label}: ${rows.filter(({ value }) => value).map(({ name, value, title }) => title ?? `${name} ${unit(value)}`).join(', ')}`);
  }

  new ResizeObserver(() => draw()).observe(element);
  return { element, draw };
}

/**
 * A grid of cells, the stronger the colour the more: `draw(values)` takes rows of numbers, `over(row, column)` writes what a cell says.
 * Cells are made once; afterwards only those that changed are touched.
 */
export function heatMap({ label, rows, columns, rowName, columnName, over }) {
  const cells = [];
  const wide = 12;
  const left = 26;
  const picture = svg('svg', { class: 'heat', role: 'img', 'aria-label': label, viewBox: `0 0 ${left + columns * wide} ${rows * wide + 14}` });
  for (let row = 0; row < rows; row += 1) {
    picture.append(svg('text', { x: left - 5, y: row * wide + 9, 'text-anchor': 'end' }, rowName(row)));
    for (let column = 0; column < columns; column += 1) {
      const cell = svg('rect', { x: left + column * wide, y: row * wide, width: wide - 1.5, height: wide - 1.5, rx: 2, 'data-at': `${row}.${column}`, class: 'cell' });
      cells.push(cell);
      picture.append(cell);
    }
  }
  for (let column = 0; column < columns; column += 8) picture.append(svg('text', { x: left + column * wide, y: rows * wide + 10 }, columnName(column)));
  const tip = h('div', { class: 'tip', hidden: true });
  const element = h('div', { class: 'plotted' }, h('div', { class: 'wide' }, picture), tip);
  picture.addEventListener('pointermove', event => {
    const at = event.target.dataset?.at;
    set(tip, 'hidden', !at);
    if (!at) return;
    const box = element.getBoundingClientRect();
    text(tip, over(...at.split('.').map(Number)));
    tip.style.left = `${Math.max(0, Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${event.clientY - box.top + 14}px`;
  });
  picture.addEventListener('pointerleave', () => set(tip, 'hidden', true));

  function draw(values, kinds = []) {
    const most = Math.max(1e-9, ...values.flat());
    values.forEach((row, at) => row.forEach((value, column) => {
      const cell = cells[at * columns + column];
      set(cell, 'fill-opacity', value ? (0.15 + 0.85 * Math.sqrt(value / most)).toFixed(2) : null);
      set(cell, 'class', value ? 'cell on' : `cell ${kinds[at] ?? ''}`);
    }));
  }
  return { element, draw };
}

/** A ring of parts { name, from, to, kind, title }, shares of the whole turn; `middle` is shown in it. */
export function ring({ label, over }) {
  const parts = svg('g', {});
  const marks = svg('g', {});
  const middle = h('div', { class: 'middle' });
  const picture = svg('svg', { class: 'ring', viewBox: '-110 -110 220 220', role: 'img', 'aria-label': label }, parts, marks);
  const element = h('div', { class: 'ringed' }, picture, middle);
  picture.addEventListener('pointermove', event => over?.(event.target.dataset?.name ?? null));
  picture.addEventListener('pointerleave', () => over?.(null));

  function draw(given) {
    show(parts, given.map(({ name, from, to, kind, title }) =>
      svg('path', { d: arcPath(from, to, 74, 100), class: `part ${kind}`, 'data-name': name }, svg('title', {}, title))));
  }

  /** A place on the ring, where a key lies; null: none. */
  function mark(share) {
    if (share === null) return show(marks);
    const angle = (share - 0.25) * 2 * Math.PI;
    const [x, y] = [Math.cos(angle), Math.sin(angle)];
    show(marks, svg('line', { class: 'needle', x1: 62 * x, y1: 62 * y, x2: 104 * x, y2: 104 * y }), svg('circle', { class: 'needle', cx: 104 * x, cy: 104 * y, r: 4 }));
  }

  /** Let the parts of one name stand out; null: none. */
  function lift(name) {
    set(picture, 'class', name === null ? 'ring' : 'ring lifting');
    for (const one of parts.children) one.classList.toggle('lifted', one.dataset.name === name);
  }
  return { element, middle, draw, mark, lift };
}
