import type { ComponentChildren } from 'preact';
import { classes, IconButton } from '../controls/button';
import { Icon, type IconName } from '../icon';

export type NoticeKind = 'info' | 'accent' | 'ok' | 'warn' | 'bad';

const icons: Record<NoticeKind, IconName> = {
  info: 'info',
  accent: 'info',
  ok: 'circle-check',
  warn: 'triangle-alert',
  bad: 'triangle-alert',
};

/** A bar across the page: open server, no connection. */
export function Banner({
  kind,
  icon,
  children,
  action,
}: {
  kind: NoticeKind;
  icon?: IconName;
  children: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class={classes('banner', kind)}>
      <Icon name={icon ?? icons[kind]} />
      <p class="banner-text">{children}</p>
      {action}
    </div>
  );
}

/** A box with an explanation within a page. */
export function Notice({
  kind = 'info',
  icon,
  title,
  children,
  action,
  onClose,
}: {
  kind?: NoticeKind;
  icon?: IconName;
  title?: ComponentChildren;
  children?: ComponentChildren;
  action?: ComponentChildren;
  onClose?: () => void;
}) {
  return (
    <div class={classes('notice', kind)}>
      <Icon name={icon ?? icons[kind]} />
      <div class="notice-body">
        {title && <p class="notice-title">{title}</p>}
        {children}
      </div>
      {action && <div class="notice-action">{action}</div>}
      {onClose && <IconButton name="Dismiss" icon="x" onClick={onClose} />}
    </div>
  );
}
