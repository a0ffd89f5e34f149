/** Copies to providers: what Overview, Work and the storage of an organization show of them, and their retry. */

import type { ComponentChildren } from 'preact';
import { call, type FileRecord, type StatusReply } from '../../api/call';
import { StackedBar } from '../../parts/bar';
import { Name } from '../../parts/values/name';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { say, sayError } from '../../parts/notes/toast';
import { href } from '../../router';
import { counted } from '../../text/sizes';

type Sync = StatusReply['sync'];

/** Copied, under way, waiting and failed, as one bar. Nothing if no organization copies. */
export function CopyBar({ sync: { pending, syncing, synced, failed } }: { sync: Sync }) {
  const total = pending + syncing + synced + failed;
  return total === 0 ? null : (
    <StackedBar
      total={total}
      parts={[
        { value: synced, tone: 'ok' },
        { value: syncing, tone: 'accent' },
        { value: pending, tone: 'rest' },
        { value: failed, tone: 'bad' },
      ]}
    />
  );
}

/** The four numbers in words. `words` writes a number, for example if it is a lower bound. */
export function CopyStates<T>({ of, words, amount, children }: {
  of: { pending: T; syncing: T; failed: T };
  words: (value: T) => string;
  amount: (value: T) => number;
  /** What is done. */
  children: ComponentChildren;
}) {
  return (
    <span class="states">
      <State kind="wait">
        {words(of.pending)} {amount(of.pending) === 1 ? 'waits' : 'wait'}
      </State>
      <State kind={amount(of.syncing) > 0 ? 'busy' : 'off'}>{words(of.syncing)} under way</State>
      {children}
      <State kind={amount(of.failed) > 0 ? 'bad' : 'ok'}>{words(of.failed)} failed</State>
    </span>
  );
}

/** Files that could not be copied, each with its reason. */
export function FailedCopies({ files, withOrganization }: { files: FileRecord[]; withOrganization?: boolean }) {
  return (
    <Table
      label="Failed copies"
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
        ...(withOrganization ? [{ title: 'Organization', cell: (file: FileRecord) => file.organization_id }] : []),
        { title: 'Reason', cell: (file) => <Name name={file.sync_error ?? 'not known'} whole /> },
      ]}
    />
  );
}

/** Queues copies: the failed ones again, or all that are missing. Of all organizations, or of one. */
export async function queueCopies(verb: 'retry' | 'enqueue', organization: number | null, reload: () => Promise<void>): Promise<void> {
  try {
    const body = organization === null ? {} : { organizationId: organization };
    const { data } = await call('POST', `/admin/sync/${verb}`, { body: body as never });
    say(
      verb === 'retry' ? `${counted(data.queued, 'file')} queued again`
      : data.queued === 0 ? 'All files are at the provider, or wait already'
      : `${counted(data.queued, 'file')} queued for their copy`,
    );
    await reload();
  } catch (reason) {
    sayError('The files could not be queued', reason);
  }
}
