import type { ComponentChildren } from 'preact';
import { classes } from './button';
import { Icon, type IconName } from '../icon';

/** A filter that is set: a label, its value, and a button that takes it away. */
export function Chip({
  label,
  children,
  onRemove,
  onEdit,
}: {
  label: string;
  children: ComponentChildren;
  onRemove: () => void;
  onEdit?: () => void;
}) {
  const text = (
    <>
      <span class="chip-label">{label}</span> <span class="chip-value">{children}</span>
    </>
  );
  return (
    <span class="chip">
      {onEdit ? (
        <button type="button" class="chip-text" onClick={onEdit}>
          {text}
        </button>
      ) : (
        <span class="chip-text">{text}</span>
      )}
      <button type="button" class="chip-remove" aria-label={`Remove the filter ${label}`} onClick={onRemove}>
        <Icon name="x" size={14} />
      </button>
    </span>
  );
}

/** A chip with a dashed edge that adds something. */
export function AddChip({
  icon,
  children,
  onClick,
  expanded,
}: {
  icon: IconName;
  children: ComponentChildren;
  onClick: (event: MouseEvent) => void;
  expanded?: boolean;
}) {
  return (
    <button type="button" class={classes('chip', 'add')} onClick={onClick} aria-expanded={expanded}>
      <Icon name={icon} size={14} />
      <span>{children}</span>
    </button>
  );
}
