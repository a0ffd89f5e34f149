import { classes } from './controls/button';

/**
 * Progress in two tones: what the server has acknowledged, and what was only sent.
 * `text` is what a screen reader says, for example `256 of 412 MiB safe`.
 */
export function TwoToneBar({
  label,
  text,
  done,
  sent = done,
  total,
  tone = 'accent',
}: {
  label: string;
  text: string;
  done: number;
  sent?: number;
  /** Null while the total is unknown. */
  total: number | null;
  tone?: 'accent' | 'ok' | 'ink';
}) {
  const share = (part: number) => (total ? Math.min(1, part / total) : 0);
  return (
    <div
      class={classes('bar', tone, total === null && 'unknown')}
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={total === null ? undefined : Math.floor(share(done) * 100)}
      aria-valuetext={text}
    >
      <span class="bar-sent" style={{ transform: `scaleX(${share(sent)})` }} />
      <span class="bar-done" style={{ transform: `scaleX(${share(done)})` }} />
    </div>
  );
}

export interface Part {
  value: number;
  tone: 'accent' | 'accent-mid' | 'ok' | 'bad' | 'warn' | 'ink' | 'rest';
}

/** Shares of a whole, beside each other. The words beside the bar say the same: the bar is hidden from the ear. */
export function StackedBar({ parts, total }: { parts: readonly Part[]; total: number }) {
  return (
    <div class="stacked" aria-hidden="true">
      {parts
        .filter((part) => part.value > 0)
        .map((part, at) => (
          <span
            key={at}
            class={classes('stacked-part', part.tone)}
            style={{ width: `${total > 0 ? (part.value / total) * 100 : 0}%` }}
          />
        ))}
    </div>
  );
}

/** A share of a limit, for example a disk. The words beside it say the same. */
export function Meter({ value, total, tone = 'ink' }: { value: number; total: number; tone?: 'ink' | 'accent' | 'warn' | 'bad' }) {
  return (
    <div class={classes('meter', tone)} aria-hidden="true">
      <span style={{ transform: `scaleX(${total > 0 ? Math.min(1, value / total) : 0})` }} />
    </div>
  );
}
