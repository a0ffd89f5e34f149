import type { ComponentChildren } from 'preact';
import { classes } from '../controls/button';

/** done ●, under way ◐, waiting ○, attention ● in amber, needs somebody ◆, off ○ dashed. */
export type StateKind = 'ok' | 'busy' | 'wait' | 'warn' | 'bad' | 'off';

/** A state: a shape, always with its word. */
export function State({ kind, children, note }: { kind: StateKind; children: ComponentChildren; note?: ComponentChildren }) {
  return (
    <span class={classes('state', kind)}>
      <StateMark kind={kind} />
      <span class="state-word">{children}</span>
      {note && <span class="state-note">{note}</span>}
    </span>
  );
}

/** Only the shape, for a place that has the word already. */
export function StateMark({ kind }: { kind: StateKind }) {
  return (
    <svg class={classes('mark', kind)} viewBox="0 0 10 10" width="9" height="9" aria-hidden="true" focusable="false">
      {kind === 'bad' && <path class="mark-fill" d="M5 .3 9.7 5 5 9.7.3 5z" />}
      {(kind === 'ok' || kind === 'warn') && <circle class="mark-fill" cx="5" cy="5" r="4" />}
      {kind === 'busy' && (
        <>
          <circle class="mark-line" cx="5" cy="5" r="3.6" />
          <path class="mark-fill" d="M5 1.4a3.6 3.6 0 0 0 0 7.2z" />
        </>
      )}
      {kind === 'wait' && <circle class="mark-line" cx="5" cy="5" r="3.4" />}
      {kind === 'off' && <path class="mark-line" d="M1.5 5h7" />}
    </svg>
  );
}
