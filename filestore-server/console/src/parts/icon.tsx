import { iconPaths, type IconName } from './icon-paths';

export type { IconName };

/** Draws an icon of Lucide. Decorative: the control around it has the name. */
export function Icon({ name, size = 16, class: extra }: { name: IconName; size?: number; class?: string }) {
  return (
    <svg
      class={extra ? `icon ${extra}` : 'icon'}
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.7"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={iconPaths[name]} />
    </svg>
  );
}
