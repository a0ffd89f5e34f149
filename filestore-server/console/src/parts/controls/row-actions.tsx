import { Button } from './button';
import { Icon, type IconName } from '../icon';
import { MenuButton } from './menu';

export interface RowAction {
  label: string;
  icon?: IconName;
  danger?: boolean;
  act: () => unknown;
}

/**
 * What can be done with a row. With a mouse, the buttons appear on the row under it. The keyboard always reaches them.
 * Where nothing hovers, `⋯` opens them as a menu.
 */
export function RowActions({ of, actions }: { of: string; actions: readonly RowAction[] }) {
  return (
    <span class="row-actions">
      <span class="row-dots" aria-hidden="true">
        <Icon name="ellipsis" />
      </span>
      <span class="row-buttons">
        {actions.map((action) => (
          <Button
            key={action.label}
            size="small"
            kind={action.danger ? 'danger' : 'plain'}
            label={`${action.label} ${of}`}
            onClick={action.act}
          >
            {action.label}
          </Button>
        ))}
      </span>
      <MenuButton
        class="row-menu"
        name={`Actions for ${of}`}
        entries={() =>
          actions.map(({ label, icon, danger, act }) => ({ label, act, ...(icon && { icon }), ...(danger && { danger }) }))
        }
      />
    </span>
  );
}
