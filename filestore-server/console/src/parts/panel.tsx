import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { classes } from './controls/button';

/** A bordered box with a heading. */
export function Panel({
  title,
  note,
  action,
  children,
  flush,
}: {
  title: ComponentChildren;
  note?: ComponentChildren;
  action?: ComponentChildren;
  children: ComponentChildren;
  /** Without padding, for tables and rows. */
  flush?: boolean;
}) {
  const id = useId();
  return (
    <section class={classes('panel', flush && 'flush')} aria-labelledby={id}>
      <header class="panel-head">
        <h2 id={id}>{title}</h2>
        {note && <span class="panel-note">{note}</span>}
        {action && <div class="panel-action">{action}</div>}
      </header>
      <div class="panel-body">{children}</div>
    </section>
  );
}

/** A part of the column at the side. */
export function Aside({ title, action, children }: { title: ComponentChildren; action?: ComponentChildren; children: ComponentChildren }) {
  const id = useId();
  return (
    <section class="aside-part" aria-labelledby={id}>
      <header class="aside-head">
        <h2 id={id}>{title}</h2>
        {action}
      </header>
      {children}
    </section>
  );
}
