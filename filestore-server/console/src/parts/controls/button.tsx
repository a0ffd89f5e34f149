import type { ComponentChildren, Ref } from 'preact';
import { useContext, useRef, useState } from 'preact/hooks';
import { Icon, type IconName } from '../icon';
import { Stale } from './stale';

export type ButtonKind = 'primary' | 'plain' | 'quiet' | 'danger';

interface Common {
  kind?: ButtonKind;
  size?: 'small' | 'normal';
  icon?: IconName;
  disabled?: boolean;
  /** Shows the button as busy, for work that the caller tracks. */
  busy?: boolean;
  /** May return a promise. The button is busy until it settles, so that a double click acts once. */
  onClick?: (event: MouseEvent) => unknown;
  class?: string;
  title?: string;
}

/** A button with a word. The word is the verb of what happens. */
export function Button({
  children,
  type = 'button',
  buttonRef,
  label,
  ...props
}: Common & {
  children: ComponentChildren;
  type?: 'button' | 'submit';
  buttonRef?: Ref<HTMLButtonElement>;
  /** The accessible name, if the word alone does not say which thing, for example `Check s3-eu`. */
  label?: string;
}) {
  const [busy, press] = useBusy(props.onClick);
  const isBusy = busy || props.busy === true;
  const stale = useContext(Stale);
  return (
    <button
      ref={buttonRef ?? null}
      type={type}
      class={classes('button', props.kind ?? 'plain', props.size, isBusy && 'busy', props.class)}
      disabled={props.disabled || stale}
      aria-busy={isBusy || undefined}
      aria-disabled={isBusy || undefined}
      aria-label={label}
      title={props.title}
      onClick={(event) => {
        if (isBusy) event.preventDefault();
        else press(event);
      }}
    >
      {props.icon && <Icon name={props.icon} />}
      <span class="button-word">{children}</span>
    </button>
  );
}

/** A button that shows only an icon. `name` is its accessible name and its tooltip. */
export function IconButton({
  name,
  icon,
  pressed,
  expanded,
  popup,
  buttonRef,
  ...props
}: Common & {
  name: string;
  icon: IconName;
  pressed?: boolean;
  expanded?: boolean;
  popup?: 'menu' | 'dialog';
  buttonRef?: Ref<HTMLButtonElement>;
}) {
  const [busy, press] = useBusy(props.onClick);
  return (
    <button
      ref={buttonRef ?? null}
      type="button"
      class={classes('icon-button', props.kind ?? 'quiet', props.size, busy && 'busy', props.class)}
      disabled={props.disabled}
      aria-label={name}
      aria-pressed={pressed}
      aria-expanded={expanded}
      aria-haspopup={popup}
      aria-busy={busy || undefined}
      title={props.title ?? name}
      onClick={press}
    >
      <Icon name={icon} />
    </button>
  );
}

/** A link that looks like a button. `href` is of this page's own making, never of data. */
export function LinkButton({
  href,
  children,
  kind = 'plain',
  size,
  icon,
  label,
}: Pick<Common, 'kind' | 'size' | 'icon'> & { href: string; children: ComponentChildren; label?: string }) {
  return (
    <a class={classes('button', kind, size)} href={href} aria-label={label}>
      {icon && <Icon name={icon} />}
      <span class="button-word">{children}</span>
    </a>
  );
}

/** Runs a handler once at a time, and tells while it runs. */
function useBusy(act?: (event: MouseEvent) => unknown): [boolean, (event: MouseEvent) => void] {
  const [busy, setBusy] = useState(false);
  const running = useRef(false);
  return [
    busy,
    (event) => {
      if (running.current) return;
      const result = act?.(event);
      if (!(result instanceof Promise)) return;
      running.current = true;
      setBusy(true);
      const settle = () => {
        running.current = false;
        setBusy(false);
      };
      result.then(settle, (reason: unknown) => {
        settle();
        throw reason;
      });
    },
  ];
}

/** Joins class names, and leaves out what is not set. */
export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(' ');
}
