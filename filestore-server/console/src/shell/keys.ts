// Keys of the whole page: single letters do nothing while somebody types, and can be switched off.
import { signal } from '@preact/signals';
import { organization } from '../data/place';
import { undoLast } from '../parts/notes/toast';
import { chooseFiles } from '../pages/uploads/choose';
import { go } from '../router';
import { administers, may } from '../session';

/** The field that `/` leads to, on pages that have one. */
export const findField = signal<HTMLInputElement | null>(null);
/** Whether the list of keys is shown. */
export const keysShown = signal(false);

const SLOT = 'filestore-letters';
function keptLetters(): boolean {
  try {
    return localStorage.getItem(SLOT) !== 'off';
  } catch {
    return true;
  }
}
/** Whether single letters act (WCAG 2.1.4). */
export const letters = signal(keptLetters());
export function useLetters(on: boolean): void {
  letters.value = on;
  try {
    localStorage.setItem(SLOT, on ? 'on' : 'off');
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
}

export const KEYS: [string, string][] = [
  ['/', 'Find a file'],
  ['u', 'Upload'],
  ['z', 'Undo, while its line is shown'],
  ['g f, g t, g s, g a', 'Go to files, trash, storage, activity'],
  ['g o, g k', 'Go to the overview, to the keys'],
  ['Arrows, Home, End, Page Up, Page Down', 'Walk through the files'],
  ['Space', 'Select'],
  ['Shift + arrows, Shift + click', 'Select a range'],
  ['Ctrl + A', 'Select all that are loaded'],
  ['Enter', 'Open'],
  ['Delete', 'Move to the trash'],
  ['Shift + F10', 'Menu of the file'],
  ['Esc', 'Clear the selection, close'],
  ['[ and ]', 'Previous and next file'],
  ['?', 'This list'],
];

let going = -Infinity;

function typing(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function listenToKeys(): () => void {
  const onKey = (event: KeyboardEvent) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !letters.value) return;
    if (typing(event.target) || document.querySelector('dialog[open], [role="menu"]')) return;
    const org = organization.peek();
    if (performance.now() - going < 1500) {
      going = -Infinity;
      const to: Record<string, string | false> = {
        f: org !== null && `org/${org}/files`, t: org !== null && `org/${org}/trash`, s: org !== null && `org/${org}/storage`,
        a: org !== null && `org/${org}/activity`, o: administers.peek() && 'store/overview', k: administers.peek() && 'store/keys',
      };
      const path = to[event.key];
      if (path) {
        event.preventDefault();
        go(path);
      }
      return;
    }
    switch (event.key) {
      case '/':
        if (!findField.value) return;
        findField.value.focus();
        findField.value.select();
        break;
      case 'u':
        if (org === null || !may('write')) return;
        chooseFiles();
        break;
      case 'z':
        if (!undoLast()) return;
        break;
      case 'g':
        going = performance.now();
        break;
      case '?':
        keysShown.value = true;
        break;
      default:
        return;
    }
    event.preventDefault();
  };
  document.addEventListener('keydown', onKey);
  return () => document.removeEventListener('keydown', onKey);
}
