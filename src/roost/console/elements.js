// Elements, made and changed. Text always goes in as text: nothing from the store is ever read as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/** An element: attributes by name, `class`, `on…` listeners, properties such as `value`; then its children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
  return element;
}

const PROPERTIES = new Set(['value', 'checked', 'disabled', 'hidden', 'selected', 'indeterminate', 'htmlFor', 'open']);

/** Give an attribute its value, if it has another one; null and false take it away. */
export function set(element, name, value) {
  if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
  else if (PROPERTIES.has(name) && !(name === 'value' && element.tagName === 'OPTION')) { if (element[name] !== value) element[name] = value; }
  else if (value === null || value === undefined || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value === true ? '' : value);
}

/** Show this text, if another one is shown. */
export function text(element, value) {
  const wanted = String(value ?? '');
  if (element.textContent !== wanted) element.textContent = wanted;
  return element;
}

/** Show these children and no others; those that are there already stay where they are. */
export function show(parent, ...children) {
  const wanted = children.flat().filter(child => child !== null && child !== undefined && child !== false);
  const same = wanted.length === parent.childNodes.length && wanted.every((one, at) => parent.childNodes[at] === one);
  if (!same) parent.replaceChildren(...wanted);
  return parent;
}

/**
 * Keep one child for each item, found again by its key: what is new is made, what has gone is removed, and only
 * what stands elsewhere is moved. `make(item)` returns an element, `update(element, item)` brings it up to date.
 */
export function keep(parent, items, key, make, update) {
  const kept = parent.kept ??= new Map();
  const wanted = new Set();
  let before = null;
  for (const item of items) {
    const name = key(item);
    wanted.add(name);
    let element = kept.get(name);
    if (!element) kept.set(name, element = make(item));
    if (update) update(element, item);
    const next = before ? before.nextSibling : parent.firstChild;
    if (next !== element) parent.insertBefore(element, next);
    before = element;
  }
  for (const [name, element] of kept) {
    if (wanted.has(name)) continue;
    element.remove();
    kept.delete(name);
  }
}

/** An icon: the lines of a 24 × 24 drawing. */
export function icon(path, size = 18) {
  return svg('svg', { viewBox: '0 0 24 24', width: size, height: size, class: 'icon', 'aria-hidden': 'true' }, svg('path', { d: path }));
}
