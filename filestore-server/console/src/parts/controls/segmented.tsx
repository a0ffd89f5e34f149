import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { classes } from './button';

export interface Segment<T extends string> {
  value: T;
  label: ComponentChildren;
  /** A count beside the label. */
  count?: ComponentChildren;
  /** The accessible name, for a label that is only an icon. */
  name?: string;
}

/** Chooses one of a few. Native radio buttons, so that arrow keys work as everywhere. */
export function Segmented<T extends string>({
  label,
  value,
  segments,
  onChange,
  size,
}: {
  label: string;
  value: T;
  segments: readonly Segment<T>[];
  onChange: (value: T) => void;
  size?: 'small';
}) {
  const group = useId();
  return (
    <div class={classes('segmented', size)} role="radiogroup" aria-label={label}>
      {segments.map((segment) => (
        <label key={segment.value} class={classes('segment', segment.value === value && 'chosen')} title={segment.name}>
          <input
            type="radio"
            name={group}
            value={segment.value}
            checked={segment.value === value}
            aria-label={segment.name}
            onChange={() => onChange(segment.value)}
          />
          <span>{segment.label}</span>
          {segment.count !== undefined && <span class="segment-count">{segment.count}</span>}
        </label>
      ))}
    </div>
  );
}
