// Where the console begins: language, session, then the frame with one page in it.

import * as api from './api.js';
import { Frame } from './frame.js';
import { h, show } from './elements.js';
import { speak, t } from './i18n.js';
import { Live } from './live.js';
import { loginView } from './login.js';
import { Recent } from './recent.js';
import { applyTheme } from './theme.js';

const root = document.getElementById('console');
const live = new Live();
const recent = new Recent(live);
let frame = null;

async function begin() {
  applyTheme();
  await untilAnswered(speak);
  const session = await untilAnswered(api.session);
  if (session) enter(session);
  else askWho();
}

/** Try until the gateway answers: whoever opens the console while it restarts need not reload. */
async function untilAnswered(action) {
  for (let pauseMs = 500; ; pauseMs = Math.min(5000, pauseMs * 2)) {
    try {
      return await action();
    } catch {
      if (!frame) show(root, h('p', { class: 'starting', role: 'status' }, 'The gateway does not answer. Trying again …'));
      await new Promise(resume => setTimeout(resume, pauseMs));
    }
  }
}

function enter(session) {
  frame?.leave();
  recent.forget();
  frame = new Frame({ session, live, recent, canAct: session.scopes.includes('admin'), again, logOut });
  show(root, frame.element);
  frame.start();
  live.start();
}

/** The same in another language. */
const again = () => enter(frame.context.session);

async function logOut() {
  frame?.leave();  // whoever asks on without a session is refused
  live.stop();
  await api.logOut().catch(() => {});
  askWho();
}

function askWho() {
  frame?.leave();
  frame = null;
  live.stop();
  document.title = `${t('login.title')} · Roost`;
  show(root, loginView(enter, begin));
}

let asking = false;
api.onLoggedOut(async () => {
  if (asking || !frame) return;
  asking = true;
  const session = await untilAnswered(api.session);  // profile dev logs in anew by itself
  asking = false;
  if (session) enter(session);
  else askWho();
});

begin();
