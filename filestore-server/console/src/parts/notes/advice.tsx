import type { ComponentChildren } from 'preact';
import { classes } from '../controls/button';
import { Icon, type IconName } from '../icon';
import { Name } from '../values/name';

/** What is wrong, what it means, and the one thing to do about it. */
export function AdviceCard({
  kind,
  icon = 'triangle-alert',
  title,
  children,
  error,
  action,
}: {
  kind: 'bad' | 'warn' | 'ok';
  icon?: IconName;
  title: ComponentChildren;
  children?: ComponentChildren;
  /** The last line of the error, verbatim. */
  error?: string | null | undefined;
  action?: ComponentChildren;
}) {
  return (
    <section class={classes('advice', kind)}>
      <Icon name={icon} size={18} />
      <div class="advice-body">
        <h2 class="advice-title">{title}</h2>
        {children && <div class="advice-text">{children}</div>}
        {error && (
          <p class="advice-error">
            <Name name={error} whole />
          </p>
        )}
      </div>
      {action && <div class="advice-action">{action}</div>}
    </section>
  );
}
