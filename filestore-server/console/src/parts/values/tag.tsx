import type { ComponentChildren } from 'preact';
import { classes } from '../controls/button';

/** A short word in a box: a scope, an organization, a type. */
export function Tag({
  kind = 'plain',
  children,
  title,
}: {
  kind?: 'plain' | 'accent' | 'warn' | 'ok' | 'bad';
  children: ComponentChildren;
  title?: string;
}) {
  return (
    <span class={classes('tag', kind)} title={title}>
      {children}
    </span>
  );
}

/** Tags in a row that wraps. */
export function Tags({ children }: { children: ComponentChildren }) {
  return <span class="tags">{children}</span>;
}
