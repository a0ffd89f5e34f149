import type { ComponentChildren } from 'preact';
import type { Loaded } from '../../data/load';
import { offlineSince } from '../../api/call';
import { classes } from '../controls/button';
import { ErrorBox } from './error';
import { Blocks } from './loading';
import { Notice } from './notice';
import { Stale } from '../controls/stale';
import { Time } from '../values/time';

/**
 * Shows loaded data in each of its states: quiet blocks at first, what was there while it is asked again, the error in
 * the place of what failed, and the time of what is old while nothing answers.
 */
export function Shown<T>({
  of,
  rows,
  what,
  children,
}: {
  of: Loaded<T>;
  rows?: number;
  /** What was loaded, for the error: `Keys`. */
  what?: string;
  children: (data: T) => ComponentChildren;
}) {
  if (of.data === undefined) {
    return of.error === null ? (
      <Blocks {...(rows && { rows })} />
    ) : (
      <ErrorBox error={of.error} onRetry={of.reload} {...(what && { what })} />
    );
  }
  const stale = offlineSince.value !== null;
  return (
    <>
      {of.error !== null && !stale && (
        <Notice kind="warn" title="The newest state could not be loaded">
          <p>
            Shown: the state of {of.at !== null && <Time at={of.at} />}. <RetryLink reload={of.reload} />
          </p>
        </Notice>
      )}
      {stale && of.at !== null && (
        <p class="stale">
          State of <Time at={of.at} />
        </p>
      )}
      <Stale.Provider value={stale}>
        <div class={classes('shown', stale && 'dim')}>{children(of.data)}</div>
      </Stale.Provider>
    </>
  );
}

function RetryLink({ reload }: { reload: () => Promise<void> }) {
  return (
    <button type="button" class="link" onClick={() => void reload()}>
      Try again
    </button>
  );
}
