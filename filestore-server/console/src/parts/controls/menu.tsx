/**
 * The one menu: for `⋯`, for a click with the other button, and for Shift+F10.
 *
 * `MenuHost` stands once in the page. `openMenu` shows entries at a point or below an element. The focus moves into the
 * menu, arrows walk, letters find, and Escape gives the focus back.
 */

import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { classes, IconButton } from './button';
import { Icon, type IconName } from '../icon';

export type MenuEntry =
  | {
      label: string;
      icon?: IconName;
      danger?: boolean;
      disabled?: boolean;
      checked?: boolean;
      hint?: string;
      act: () => unknown;
    }
  | 'line';

interface Opened {
  entries: MenuEntry[];
  label: string;
  at: { x: number; y: number; right?: number; above?: number };
  opener: HTMLElement | null;
}

const opened = signal<Opened | null>(null);

/** True while a menu is open, for a button that tells so. */
export function menuIsOpenFor(element: HTMLElement | null): boolean {
  return opened.value !== null && opened.value.opener === element;
}

/** Opens a menu below an element, or at the point of a click. A second call replaces the first. */
export function openMenu(at: HTMLElement | MouseEvent, label: string, entries: MenuEntry[]): void {
  if (at instanceof HTMLElement) {
    const box = at.getBoundingClientRect();
    opened.value = {
      entries,
      label,
      at: { x: box.left, y: box.bottom + 4, right: box.right, above: box.top - 4 },
      opener: at,
    };
    return;
  }
  at.preventDefault();
  const opener = document.activeElement instanceof HTMLElement ? document.activeElement : null;
  opened.value = { entries, label, at: { x: at.clientX, y: at.clientY }, opener };
}

/** Closes the menu. */
export function closeMenu(giveBack = true): void {
  const opener = opened.peek()?.opener;
  opened.value = null;
  if (giveBack) opener?.focus();
}

/** The handlers that open a context menu on an element: click with the other button, Shift+F10, and the menu key. */
export function contextMenu(label: string, entries: () => MenuEntry[]) {
  return {
    onContextMenu: (event: MouseEvent) => {
      if (event.shiftKey) return; // the browser's own menu stays within reach
      const target = event.currentTarget as HTMLElement;
      if (event.button === 0 || (event.clientX === 0 && event.clientY === 0)) {
        event.preventDefault();
        openMenu(target, label, entries());
      } else {
        openMenu(event, label, entries());
      }
    },
    onKeyDown: (event: KeyboardEvent) => {
      if (!(event.shiftKey && event.key === 'F10') && event.key !== 'ContextMenu') return;
      event.preventDefault();
      event.stopPropagation();
      openMenu(event.currentTarget as HTMLElement, label, entries());
    },
  };
}

/** The button `⋯`. */
export function MenuButton({
  name,
  entries,
  icon = 'ellipsis',
  class: extra,
}: {
  name: string;
  entries: () => MenuEntry[];
  icon?: IconName;
  class?: string;
}) {
  const button = useRef<HTMLButtonElement>(null);
  return (
    <IconButton
      buttonRef={button}
      name={name}
      icon={icon}
      popup="menu"
      expanded={menuIsOpenFor(button.current)}
      {...(extra && { class: extra })}
      onClick={() => {
        if (button.current) openMenu(button.current, name, entries());
      }}
    />
  );
}

/** Stands once in the page and shows the open menu. */
export function MenuHost() {
  const menu = opened.value;
  return menu ? <OpenMenu key={menu.label + menu.at.x + menu.at.y} menu={menu} /> : null;
}

function OpenMenu({ menu }: { menu: Opened }) {
  const list = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState<{ left: string; top: string; visibility: 'hidden' | 'visible' }>({
    left: '0px',
    top: '0px',
    visibility: 'hidden',
  });
  const typed = useRef({ text: '', at: 0 });

  useLayoutEffect(() => {
    const box = list.current?.getBoundingClientRect();
    if (!box) return;
    const { x, y, right, above } = menu.at;
    const left = x + box.width > innerWidth - 8 ? (right ?? x) - box.width : x;
    const top = y + box.height > innerHeight - 8 ? (above ?? y) - box.height : y;
    setPlace({ left: `${Math.max(8, left)}px`, top: `${Math.max(8, top)}px`, visibility: 'visible' });
  }, [menu]);

  useEffect(() => {
    if (place.visibility === 'visible') items(list.current)[0]?.focus();
  }, [place.visibility]);

  useEffect(() => {
    const away = (event: Event) => {
      if (!list.current?.contains(event.target as Node)) closeMenu(false);
    };
    const moved = () => closeMenu(false);
    document.addEventListener('pointerdown', away, true);
    addEventListener('resize', moved);
    addEventListener('blur', moved);
    return () => {
      document.removeEventListener('pointerdown', away, true);
      removeEventListener('resize', moved);
      removeEventListener('blur', moved);
    };
  }, []);

  const walk = (event: KeyboardEvent) => {
    const all = items(list.current);
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = (index: number) => all[(index + all.length) % all.length]?.focus();
    event.stopPropagation();
    if (event.key === 'ArrowDown') to(at + 1);
    else if (event.key === 'ArrowUp') to(at - 1);
    else if (event.key === 'Home') to(0);
    else if (event.key === 'End') to(-1);
    else if (event.key === 'Escape') closeMenu();
    else if (event.key === 'Tab') closeMenu();
    else if (event.key.length === 1 && event.key !== ' ') find(event.key, all, at);
    else return;
    event.preventDefault();
  };

  const find = (letter: string, all: HTMLElement[], at: number) => {
    const now = performance.now();
    typed.current = { text: now - typed.current.at < 700 ? typed.current.text + letter : letter, at: now };
    const wanted = typed.current.text.toLowerCase();
    const start = wanted.length > 1 ? at : at + 1;
    const order = [...all.slice(start), ...all.slice(0, start)];
    order.find((item) => item.textContent.trim().toLowerCase().startsWith(wanted))?.focus();
  };

  return (
    <div ref={list} class="menu" role="menu" aria-label={menu.label} style={place} onKeyDown={walk}>
      {menu.entries.map((entry, index) =>
        entry === 'line' ? (
          <div key={index} class="menu-line" role="separator" />
        ) : (
          <button
            key={index}
            type="button"
            role={entry.checked === undefined ? 'menuitem' : 'menuitemradio'}
            aria-checked={entry.checked}
            aria-disabled={entry.disabled || undefined}
            class={classes('menu-item', entry.danger && 'danger')}
            tabIndex={-1}
            onPointerEnter={(event) => event.currentTarget.focus()}
            onClick={() => {
              if (entry.disabled) return;
              closeMenu();
              entry.act();
            }}
          >
            {entry.icon ? <Icon name={entry.icon} /> : entry.checked !== undefined && <Icon name="check" class={entry.checked ? '' : 'blank'} />}
            <span class="menu-label">{entry.label}</span>
            {entry.hint && <span class="menu-hint">{entry.hint}</span>}
          </button>
        ),
      )}
    </div>
  );
}

function items(list: HTMLElement | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>('.menu-item') ?? [])];
}
