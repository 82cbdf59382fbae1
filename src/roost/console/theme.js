// Light or dark: as the system wishes, unless somebody chose here.

const KEY = 'roost:theme';
export const THEMES = ['system', 'light', 'dark'];

function kept() {
  try { return localStorage.getItem(KEY) || 'system'; } catch { return 'system'; }
}

export const theme = kept;

export function applyTheme(chosen = kept()) {
  try { localStorage.setItem(KEY, chosen); } catch { /* then only until the reload */ }
  if (chosen === 'system') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}
