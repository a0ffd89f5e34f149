/** Sync of one organization: what waits, what is under way, and what failed with its reason. */

import { useState } from 'preact/hooks';
import { call, type FileRecord } from '../../api/call';
import { useLoad } from '../../data/load';
import { Button } from '../../parts/controls/button';
import { Dialog } from '../../parts/dialog';
import { Shown } from '../../parts/notes/loaded';
import { Panel } from '../../parts/panel';
import { State } from '../../parts/notes/state';
import { administers } from '../../session';
import { count } from '../../text/sizes';
import { CopyStates, FailedCopies, queueCopies } from '../store/copies';
import { numberOf, type Stored } from './storage';

const LIMIT = 200;

interface Amount {
  count: number;
  /** False if it is only a lower bound. */
  exact: boolean;
}

interface Some {
  files: FileRecord[];
  /** False if more follow. */
  complete: boolean;
}

async function some(organization: string, sync_status: 'PENDING' | 'SYNCING' | 'FAILED', signal: AbortSignal): Promise<Some> {
  const files: FileRecord[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < 5; pages += 1) {
    const query = { organization_id: organization, sync_status, limit: LIMIT, cursor };
    const { data } = await call('GET', '/files', { query, signal });
    files.push(...data.items);
    if (data.next_cursor === null) return { files, complete: true };
    if (files.length >= LIMIT) break;
    cursor = data.next_cursor;
  }
  return { files, complete: false };
}

interface Counts {
  pending: Amount;
  syncing: Amount;
  failed: Amount;
}

/** Counts from the server. A key that does not administer the store counts the records that it may list. */
async function counts(organization: string, number: number | null, signal: AbortSignal): Promise<Counts> {
  if (administers.peek() && number !== null) {
    const { data } = await call('GET', '/admin/sync/status', { query: { organizationId: number }, signal });
    const exact = (count: number): Amount => ({ count, exact: true });
    return { pending: exact(data.pending), syncing: exact(data.syncing), failed: exact(data.failed) };
  }
  const of = async (state: 'PENDING' | 'SYNCING' | 'FAILED'): Promise<Amount> => {
    const { files, complete } = await some(organization, state, signal);
    return { count: files.length, exact: complete };
  };
  const [pending, syncing, failed] = await Promise.all([of('PENDING'), of('SYNCING'), of('FAILED')]);
  return { pending, syncing, failed };
}

function words({ count: value, exact }: Amount): string {
  return exact ? count(value) : `more than ${count(value)}`;
}

export function SyncPanel({ organization, stored }: { organization: string; stored: Stored }) {
  const [open, setOpen] = useState(false);
  const number = numberOf(organization);
  const active = stored.bindings?.find((binding) => binding.isActive);
  const sync = useLoad(`sync ${organization}`, (signal) => counts(organization, number, signal), 10_000);
  const acts = administers.value && number !== null;
  const behind = acts && active?.syncEnabled && active.storageProvider !== 'LOCAL';

  const { data } = sync;
  const there = stored.holdings
    ?.filter((one) => behind && one.provider_code === active.storageProvider)
    .reduce((sum, { files }) => sum + files, 0);
  if (!behind && (!data || data.pending.count + data.syncing.count + data.failed.count === 0)) return null;

  return (
    <Panel
      title="Sync"
      action={
        behind && (
          <Button size="small" label="Queue all files that are not at the provider" onClick={() => queueCopies('enqueue', number, sync.reload)}>
            Queue all files
          </Button>
        )
      }
    >
      <Shown of={sync} rows={1} what="Sync">
        {({ pending, syncing, failed }) => (
          <div class="spread wrap">
            <CopyStates of={{ pending, syncing, failed }} words={words} amount={(one) => one.count}>
              {there !== undefined && <State kind="ok">{count(there)} at {active?.storageProvider}</State>}
            </CopyStates>
            {failed.count > 0 && (
              <span class="row">
                <Button size="small" onClick={() => setOpen(true)}>
                  Show {failed.count > 1 ? `the ${words(failed)}` : 'it'}
                </Button>
                {acts && (
                  <Button size="small" onClick={() => queueCopies('retry', number, sync.reload)}>
                    Try again
                  </Button>
                )}
              </span>
            )}
          </div>
        )}
      </Shown>
      {open && <FailedDialog organization={organization} onClose={() => setOpen(false)} />}
    </Panel>
  );
}

function FailedDialog({ organization, onClose }: { organization: string; onClose: () => void }) {
  const failed = useLoad(`failed ${organization}`, (signal) => some(organization, 'FAILED', signal));
  return (
    <Dialog
      title="Files that could not be copied"
      wide
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <p class="dialog-text">They are safe, and served from where they are.</p>
      <Shown of={failed} rows={3} what="Files">
        {({ files, complete }) => (
          <>
            <div class="bleed">
              <FailedCopies files={files} />
            </div>
            {!complete && <p class="dialog-text">These are the newest {count(files.length)}.</p>}
          </>
        )}
      </Shown>
    </Dialog>
  );
}
