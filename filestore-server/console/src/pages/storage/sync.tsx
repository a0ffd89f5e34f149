/** Sync of one organization: what waits, what is under way, and what failed with its reason. */

import { useState } from 'preact/hooks';
import { call, type FileRecord } from '../../api/call';
import { useLoad } from '../../data/load';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Shown } from '../../parts/loaded';
import { Name } from '../../parts/name';
import { Panel } from '../../parts/panel';
import { State } from '../../parts/state';
import { Table } from '../../parts/table';
import { say, sayError } from '../../parts/toast';
import { href } from '../../router';
import { administers } from '../../session';
import { count, counted } from '../../text/sizes';
import { numberOf, type Stored } from './storage';

const STATES = ['PENDING', 'SYNCING', 'FAILED'] as const;
const LIMIT = 200;

interface Some {
  files: FileRecord[];
  /** False if more follow, so that the number is only a lower bound. */
  complete: boolean;
}

/** Files in one state. The server counts states only for the whole store, so the page counts the records it gets. */
async function some(organization: string, sync_status: (typeof STATES)[number], signal: AbortSignal): Promise<Some> {
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

function amount({ files, complete }: Some): string {
  return complete ? count(files.length) : `more than ${count(files.length)}`;
}

export function SyncPanel({ organization, stored }: { organization: string; stored: Stored }) {
  const [open, setOpen] = useState(false);
  const number = numberOf(organization);
  const active = stored.bindings?.find((binding) => binding.isActive);
  const sync = useLoad(
    `sync ${organization}`,
    async (signal) => {
      const [pending, syncing, failed] = await Promise.all(STATES.map((state) => some(organization, state, signal)));
      return { pending, syncing, failed } as Record<'pending' | 'syncing' | 'failed', Some>;
    },
    10_000,
  );
  const failed = sync.data?.failed.files.length ?? 0;
  const behind = active?.syncEnabled && active.storageProvider !== 'LOCAL' && administers.value && number !== null;

  return (
    <Panel
      title="Sync"
      action={
        behind && (
          <Button size="small" label="Queue all files that are not at the provider" onClick={() => enqueue(number, sync.reload)}>
            Queue all files
          </Button>
        )
      }
    >
      <Shown of={sync} rows={1} what="Sync">
        {(data) => (
          <div class="spread wrap">
            <span class="states">
              <State kind="wait">{amount(data.pending)} {data.pending.files.length === 1 ? 'waits' : 'wait'}</State>
              <State kind={data.syncing.files.length > 0 ? 'busy' : 'off'}>{amount(data.syncing)} under way</State>
              <State kind={failed > 0 ? 'bad' : 'ok'}>{amount(data.failed)} failed</State>
            </span>
            {failed > 0 && (
              <span class="row">
                <Button size="small" onClick={() => setOpen(true)}>
                  Show {failed > 1 || !data.failed.complete ? `the ${amount(data.failed)}` : 'it'}
                </Button>
                {administers.value && number !== null && (
                  <Button size="small" onClick={() => retry(number, sync.reload)}>
                    Try again
                  </Button>
                )}
              </span>
            )}
          </div>
        )}
      </Shown>
      {open && sync.data && <FailedDialog some={sync.data.failed} onClose={() => setOpen(false)} />}
    </Panel>
  );
}

function FailedDialog({ some: { files, complete }, onClose }: { some: Some; onClose: () => void }) {
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
      <div class="bleed">
        <Table
          label="Files that could not be copied"
          rows={files}
          rowKey={(file) => file.file_id}
          columns={[
            {
              title: 'File',
              phone: 'title',
              cell: (file) => (
                <a class="cell-main" href={href(`org/${file.organization_id}/files/${file.file_id}`)}>
                  <Name name={file.original_name} />
                </a>
              ),
            },
            { title: 'Reason', cell: (file) => <bdi>{file.sync_error ?? 'not known'}</bdi> },
          ]}
        />
      </div>
      {!complete && <p class="dialog-text">These are the newest {count(files.length)}.</p>}
    </Dialog>
  );
}

async function retry(number: number, reload: () => Promise<void>): Promise<void> {
  try {
    const { data } = await call('POST', '/admin/sync/retry', { body: { organizationId: number } });
    say(`${counted(data.queued, 'file')} queued again`);
    await reload();
  } catch (reason) {
    sayError('The files could not be queued', reason);
  }
}

async function enqueue(number: number, reload: () => Promise<void>): Promise<void> {
  try {
    const { data } = await call('POST', '/admin/sync/enqueue', { body: { organizationId: number } });
    say(data.queued === 0 ? 'All files are at the provider, or wait already' : `${counted(data.queued, 'file')} queued for their copy`);
    await reload();
  } catch (reason) {
    sayError('The files could not be queued', reason);
  }
}
