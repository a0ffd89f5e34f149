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

export function applyTheme(): void {
  if (theme.value === 'system') document.documentElement.removeAttribute('data-theme');
  else document.documentElement.setAttribute('data-theme', theme.value);
}

export const looksDark = (): boolean =>
  theme.value === 'dark' || (theme.value === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);

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
