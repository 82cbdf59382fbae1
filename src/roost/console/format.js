// Numbers and times as people read them.

import { h, text } from './elements.js';
import { language, t } from './i18n.js';

const NONE = '–';
const cached = new Map();

function formatter(kind, options) {
  const name = `${language} ${kind.name} ${JSON.stringify(options)}`;
  if (!cached.has(name)) cached.set(name, new kind(language, options));
  return cached.get(name);
}

const isNone = value => value === null || value === undefined || Number.isNaN(value);

/** 12,345; a dash for what nobody knows. */
export function number(value, digits = 0, least = 0) {
  return isNone(value) ? NONE : formatter(Intl.NumberFormat, { maximumFractionDigits: digits, minimumFractionDigits: least }).format(value);
}

/** 12.3k where five digits would not fit. */
export function compact(value) {
  if (isNone(value)) return NONE;
  if (Math.abs(value) < 10000) return number(value, Math.abs(value) < 10 ? 1 : 0);
  return formatter(Intl.NumberFormat, { notation: 'compact', maximumFractionDigits: 1 }).format(value);
}

/** 3.4/s */
export const rate = value => isNone(value) ? NONE : t('unit.perSecond', { n: number(value, value < 10 ? 1 : 0) });

/** A share of 1 as 12.3 %; with two digits always both, for columns. */
export const percent = (value, digits = 1) => isNone(value) ? NONE : `${number(value * 100, digits, digits > 1 ? digits : 0)} %`;

/** 42 s, 3 min, 1.5 h */
export function duration(seconds) {
  if (isNone(seconds)) return NONE;
  if (seconds < 10) return t('unit.seconds', { n: number(seconds, 1) });
  if (seconds < 90) return t('unit.seconds', { n: number(Math.round(seconds)) });
  if (seconds < 5400) return t('unit.minutes', { n: number(seconds / 60) });
  if (seconds < 172800) return t('unit.hours', { n: number(seconds / 3600, 1) });
  return t('unit.days', { n: number(seconds / 86400) });
}

/** 4.2 ms, or seconds where that is shorter */
export const milliseconds = ms => isNone(ms) ? NONE : ms < 1000 ? t('unit.ms', { n: number(ms, ms < 10 ? 1 : 0) }) : duration(ms / 1000);

/** The time of day, or the day where it was another one. */
export function clock(moment, seconds = true) {
  const at = new Date(moment);
  if (Number.isNaN(+at)) return NONE;
  const options = { hour: '2-digit', minute: '2-digit', ...(seconds && { second: '2-digit' }), hour12: false };
  if (Math.abs(Date.now() - at) > 72000000) Object.assign(options, { month: 'short', day: 'numeric' });
  return formatter(Intl.DateTimeFormat, options).format(at);
}

/** All of it, for the hover. */
export const whole = moment => formatter(Intl.DateTimeFormat, { dateStyle: 'full', timeStyle: 'long' }).format(new Date(moment));

function ago(moment) {
  const seconds = (Date.now() - new Date(moment)) / 1000;
  if (seconds < 0 && seconds > -5) return t('time.now');
  if (seconds < 0) return t('time.in', { time: duration(-seconds) });
  return seconds < 2 ? t('time.now') : t('time.ago', { time: duration(Math.floor(seconds)) });
}

/** A time that says how long ago it was, and goes on saying it; hovering shows all of it. */
export function since(moment, element = h('time')) {
  if (!moment) return text(element, NONE);
  if (element.dateTime !== moment) {
    element.dateTime = moment;
    element.title = whole(moment);
    element.className = 'since';
  }
  return text(element, ago(moment));
}

setInterval(() => document.querySelectorAll('time.since').forEach(one => text(one, ago(one.dateTime))), 1000);
