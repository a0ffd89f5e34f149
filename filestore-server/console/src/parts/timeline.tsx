import type { ComponentChildren } from 'preact';
import { classes } from './controls/button';

export interface Moment {
  id: string;
  tone?: 'plain' | 'accent' | 'ok' | 'bad' | 'warn';
  title: ComponentChildren;
  note?: ComponentChildren;
  at: ComponentChildren;
}

/** Moments below each other, newest first. */
export function Timeline({ moments, label }: { moments: readonly Moment[]; label: string }) {
  return (
    <ol class="timeline" aria-label={label}>
      {moments.map((moment) => (
        <li key={moment.id} class={classes('moment', moment.tone ?? 'plain')}>
          <span class="moment-text">
            <span class="moment-title">{moment.title}</span>
            {moment.note && <span class="moment-note">{moment.note}</span>}
          </span>
          <span class="moment-at">{moment.at}</span>
        </li>
      ))}
    </ol>
  );
}
