// The public HTTP API: every call of the console goes through here.

/** What the API refused, with its code, in words, and what to do about it. */
export class Refused extends Error {
  constructor(status, error = {}) {
    super(error.message || `HTTP ${status}`);
    Object.assign(this, { status, code: error.code || '', hint: error.hint || '', requestId: error.requestId || '' });
  }
}

/** The gateway did not answer at all. */
export class NoAnswer extends Error {}

let csrf = '';
let underWay = new AbortController();
let whenLoggedOut = () => {};

/** Who is told when the session has ended. */
export const onLoggedOut = tell => { whenLoggedOut = tell; };

async function call(method, path, body) {
  const headers = { Accept: 'application/json' };
  if (method !== 'GET') headers['X-CSRF-Token'] = csrf;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  const answer = await fetch(path, {
    method, headers, signal: underWay.signal, credentials: 'same-origin', cache: 'no-store', body: body === undefined ? undefined : JSON.stringify(body),
  }).catch(() => { throw new NoAnswer(); });
  if (answer.status === 204) return null;
  const reply = await answer.json().catch(() => null);
  if (answer.ok && reply === null) throw new NoAnswer();  // it broke off
  if (answer.ok) return reply;
  if (answer.status === 401 && path !== SESSION) whenLoggedOut();
  throw new Refused(answer.status, reply?.error);
}

export const get = (path, query) => call('GET', query ? `${path}?${parameters(query)}` : path);
export const post = (path, body) => call('POST', path, body);
export const put = (path, body) => call('PUT', path, body);
export const patch = (path, body) => call('PATCH', path, body);
export const remove = path => call('DELETE', path);

/** A query without what is empty. */
export function parameters(query) {
  return new URLSearchParams(Object.entries(query).filter(([, value]) => value !== '' && value !== null && value !== undefined));
}

/** One part of an address. */
export const part = encodeURIComponent;

// -- who is logged in

const SESSION = '/auth/v1/session';

/** The session if there is one; null: somebody has to log in. */
export async function session() {
  try {
    return kept(await get(SESSION));
  } catch (error) {
    if (error instanceof Refused && error.status === 401) return null;
    throw error;
  }
}

export const logIn = async token => kept(await post(SESSION, { token }));

/** What is still under way is given up: its answer would be that nobody is logged in. */
export async function logOut() {
  underWay.abort();
  underWay = new AbortController();
  await remove(SESSION);
  csrf = '';
}

function kept(found) {
  csrf = found.csrf;
  return found;
}
