import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from '../icon';

/** Nothing is there: one sentence on why, and one action. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: IconName;
  title: ComponentChildren;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} size={24} />
      <p class="empty-title">{title}</p>
      {children && <p class="empty-text">{children}</p>}
      {action && <div class="empty-action">{action}</div>}
    </div>
  );
}
