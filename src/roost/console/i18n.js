// In which language the console speaks. A language is a file in `lang/`; one more file is one more language.

const COOKIE = 'roost_lang';
const known = document.documentElement.dataset.languages.split(' ').filter(one => /^[a-z]{2}$/.test(one));
let texts = {};
let fallback = {};
let sayings = [];
export let language = 'en';

/** The text of this name, with `{values}` put in. A text that a language lacks comes in English. */
export function t(name, values = {}) {
  const found = texts[name] ?? fallback[name] ?? name;
  const filled = found.replace(/\{(\w+)\}/g, (whole, key) => values[key] ?? whole);
  return language === 'ko' ? withParticles(filled) : filled;
}

/** 이(가), 을(를), 은(는), (으)로 as the sound before them asks; they stay where it is not known. */
function withParticles(text) {
  return text.replace(/([가-힣\d])(?:([이을은])\(([가를는])\)|\(으\)로)/g, (_, last, closed, open) => {
    const sound = /\d/.test(last) ? [21, 8, 0, 16, 0, 0, 1, 8, 8, 0][last] : (last.charCodeAt(0) - 0xac00) % 28;
    if (!closed) return `${last}${sound && sound !== 8 ? '으로' : '로'}`;  // 8: ㄹ
    return `${last}${sound ? closed : open}`;
  });
}

/** The text of this name if there is one, else null. */
export const known_text = (name, values) => name in texts || name in fallback ? t(name, values) : null;

export const languages = () => known;

function chosen() {
  const kept = document.cookie.match(/(?:^|; )roost_lang=([a-z]{2})/)?.[1];
  const wanted = [kept, ...navigator.languages.map(one => one.slice(0, 2).toLowerCase())];
  return wanted.find(one => known.includes(one)) ?? 'en';
}

const load = async name => (await fetch(`/console/lang/${name}.json`)).json();

/** Speak the language that was chosen here, else what the browser asks for. */
export async function speak(other = chosen()) {
  [fallback, texts] = await Promise.all([load('en'), load(other)]);
  language = document.documentElement.lang = other;
  sayings = Object.keys(texts).filter(name => name.startsWith(SAYING)).map(asPattern);
}

// -- what the gateway says in English

const SAYING = 'said.';

/** `said.halved: {fault}` as what finds it, and the names of its blanks; `{n}` is a number. */
function asPattern(name) {
  const blanks = [];
  const parts = name.slice(SAYING.length).split(/(\{\w+\})/).map(part => {
    const blank = part.match(/^\{(\w+)\}$/)?.[1];
    if (blank) blanks.push(blank);
    return blank ? blank === 'n' ? '([\\d.%]+)' : '(.+?)' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return { name, blanks, finds: new RegExp(`^${parts.join('')}$`, 's') };
}

/** A sentence of the gateway, or a list of them, in this language; as it is where the language has none for it. */
export function said(sentence) {
  const found = sayings.map(one => [one, sentence?.match(one.finds)]).find(([, match]) => match);
  if (found) {
    const [{ name, blanks }, match] = found;
    return t(name, Object.fromEntries(blanks.map((blank, at) => [blank, said(match[at + 1])])));
  }
  return sayings.length && sentence?.includes(', ') ? sentence.split(', ').map(said).join(', ') : sentence;
}

/** Remember the choice, and speak it. */
export async function choose(other) {
  document.cookie = `${COOKIE}=${other}; Path=/; Max-Age=31536000; SameSite=Lax`;
  await speak(other);
}
