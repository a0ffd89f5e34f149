// Light, dark, or as the system has it. Kept in this browser; it says nothing about anybody.
import { signal } from '@preact/signals';

export type Theme = 'system' | 'light' | 'dark';
const SLOT = 'filestore-theme';

function kept(): Theme {
  try {
    const text = localStorage.getItem(SLOT);
    return text === 'light' || text === 'dark' ? text : 'system';
  } catch {
    return 'system';
  }
}

export const theme = signal<Theme>(kept());

const system = matchMedia('(prefers-color-scheme: dark)');
system.addEventListener('change', applyTheme);

export const looksDark = (): boolean => theme.value === 'dark' || (theme.value === 'system' && system.matches);

export function applyTheme(): void {
  document.documentElement.dataset['theme'] = looksDark() ? 'dark' : 'light';
}

export function setTheme(next: Theme): void {
  theme.value = next;
  applyTheme();
  try {
    if (next === 'system') localStorage.removeItem(SLOT);
    else localStorage.setItem(SLOT, next);
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}
