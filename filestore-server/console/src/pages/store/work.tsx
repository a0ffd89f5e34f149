/** Background work: sync, migrations, purge, resumable uploads and variants, with what failed. */

import { useState } from 'preact/hooks';
import { call, type FileRecord, type StatusReply, type SyncReport, type VariantCacheReport } from '../../api/call';
import { useLoad } from '../../data/load';
import { useRate } from '../../data/rate';
import { forgetRun, runOf, startRun } from '../../data/runs';
import { useStatus } from '../../data/status';
import { Button, LinkButton } from '../../parts/controls/button';
import { ask } from '../../parts/dialog';
import { ErrorBox } from '../../parts/notes/error';
import { Shown } from '../../parts/notes/loaded';
import { Name } from '../../parts/values/name';
import { Notice } from '../../parts/notes/notice';
import { Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { Count, Size } from '../../parts/values/size';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Time } from '../../parts/values/time';
import { say } from '../../parts/notes/toast';
import { href } from '../../router';
import { Page } from '../../shell/page';
import { spoken } from '../../text/names';
import { count, counted, size } from '../../text/sizes';
import { CopyBar, CopyStates, FailedCopies, queueCopies } from './copies';
import { stopMigration } from './overview';
import { PurgeDialog } from './purge';

export function Work() {
  const status = useStatus();
  const [purging, setPurging] = useState<'due' | 'now' | null>(null);
  return (
    <Page title="Work" under="in the background" body={null}>
      <div class="page-scroll">
        <div class="page-block narrow">
          <Shown of={status} rows={8} what="Work">
            {(data) => (
              <div class="stack">
                <Sync status={data} reload={status.reload} />
                <Migrations status={data} reload={status.reload} />
                <Purge status={data} open={setPurging} />
                <Uploads status={data} />
                <Deliveries />
                <Variants />
              </div>
            )}
          </Shown>
        </div>
      </div>
      {purging && <PurgeDialog now={purging === 'now'} onClose={() => setPurging(null)} onDone={() => void status.reload()} />}
    </Page>
  );
}

function Sync({ status, reload }: { status: StatusReply; reload: () => Promise<void> }) {
  const { pending, synced, failed, bytes_copied, files_moved } = status.sync;
  const rate = useRate(bytes_copied);
  const run = runOf<SyncReport>('sync');
  return (
    <Panel
      title="Sync"
      note={rate !== null && rate > 0 ? `${size(Math.round(rate))}/s` : undefined}
      action={
        <Button
          size="small"
          icon="play"
          busy={run?.state === 'running'}
          disabled={pending === 0 && run?.state !== 'running'}
          onClick={() =>
            startRun('sync', async () => {
              const { data } = await call('POST', '/admin/sync/run', { body: {} });
              await reload();
              return data;
            })
          }
        >
          Run now
        </Button>
      }
    >
      <div class="stack tight">
        <CopyBar sync={status.sync} />
        <CopyStates of={status.sync} words={count} amount={(value) => value}>
          <State kind="ok">{count(synced)} at their provider</State>
        </CopyStates>
        <p class="quiet-text">
          Since the start of the server: {counted(files_moved, 'file')} copied or moved, {size(bytes_copied)} read.
        </p>
        {run?.state === 'done' && run.result && (
          <Notice
            kind={run.result.failed > 0 ? 'warn' : 'ok'}
            title={`${counted(run.result.synced, 'file')} of ${size(run.result.synced_bytes)} copied`}
            onClose={() => forgetRun('sync')}
          >
            {run.result.waiting > 0 && <p>{counted(run.result.waiting, 'file')} still wait.</p>}
            {Object.entries(run.result.postponed).map(([code, files]) => (
              <p key={code}>
                {counted(Number(files), 'file')} wait for {code}, which does not answer or is not configured.
              </p>
            ))}
            {run.result.failures.slice(0, 3).map((failure) => (
              <p key={failure.file_id}>
                <code>{failure.file_id}</code>: <bdi>{failure.error}</bdi>
              </p>
            ))}
          </Notice>
        )}
        {run?.state === 'failed' && <ErrorBox error={run.error} what="The sync" />}
        {failed > 0 && <Failed count={failed} reload={reload} />}
      </div>
    </Panel>
  );
}

function Failed({ count: failed, reload }: { count: number; reload: () => Promise<void> }) {
  const [more, setMore] = useState(1);
  const files = useLoad(`failed ${failed} ${more}`, async (signal) => {
    const all: FileRecord[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < 20 && all.length < more * 20; pages += 1) {
      const { data } = await call('GET', '/files', { query: { sync_status: 'FAILED', limit: 20, cursor }, signal });
      all.push(...data.items);
      if (data.next_cursor === null) return { all, complete: true };
      cursor = data.next_cursor;
    }
    return { all, complete: false };
  });
  return (
    <div class="inner">
      <header class="spread">
        <h3>Failed copies</h3>
        <Button size="small" label="Retry all failed copies" onClick={() => queueCopies('retry', null, reload)}>
          Retry all
        </Button>
      </header>
      <Shown of={files} rows={2} what="Failed copies">
        {({ all, complete }) => (
          <>
            <FailedCopies files={all} withOrganization />
            {!complete && (
              <Button size="small" onClick={() => setMore(more + 1)}>
                Show more
              </Button>
            )}
          </>
        )}
      </Shown>
    </div>
  );
}

function Migrations({ status, reload }: { status: StatusReply; reload: () => Promise<void> }) {
  return (
    <Panel title="Migrations" flush={status.migrations.length > 0}>
      {status.migrations.length === 0 ? (
        <p class="quiet-text">None is running. A migration is started at the storage of an organization.</p>
      ) : (
        <Table
          label="Running migrations"
          rows={status.migrations}
          rowKey={(migration) => migration.organization_id}
          columns={[
            {
              title: 'Organization',
              phone: 'title',
              cell: (migration) => (
                <a class="cell-main" href={href(`org/${migration.organization_id}/storage`)}>
                  {migration.organization_id}
                </a>
              ),
            },
            { title: 'To', cell: (migration) => migration.to },
            { title: 'Files moved', align: 'end', cell: (migration) => <><Count value={migration.files} />{migration.planned_files !== null && ` of ${count(migration.planned_files)}`}</> },
            { title: 'Bytes moved', align: 'end', cell: (migration) => <><Size bytes={migration.bytes} />{migration.planned_bytes !== null && ` of ${size(migration.planned_bytes)}`}</> },
          ]}
          buttons={(migration) => (
                <Button
                  size="small"
                  label={`Stop the migration of organization ${migration.organization_id}`}
                  onClick={() => stopMigration(migration.organization_id, reload)}
                >
                  Stop
                </Button>
              )}
        />
      )}
    </Panel>
  );
}

function Purge({ status, open }: { status: StatusReply; open: (what: 'due' | 'now') => void }) {
  const { due, due_bytes, waiting, waiting_bytes, next_due_at, expired, due_blobs } = status.purge;
  return (
    <Panel
      title="Purge"
      action={
        <>
          <Button size="small" kind="danger" disabled={waiting + due === 0} onClick={() => open('now')}>
            Purge all now…
          </Button>
          <Button size="small" label="Run the purge of what is due" onClick={() => open('due')}>
            Run
          </Button>
        </>
      }
    >
      <Pairs
        rows={[
          ['Due', `${counted(due, 'file')} of ${size(due_bytes)}, ${counted(due_blobs, 'replaced blob')}`],
          expired > 0 && ['Expired', `${counted(expired, 'temporary file')}`],
          ['In the trash', `${counted(waiting, 'file')} of ${size(waiting_bytes)}, can be restored`],
          next_due_at !== null && ['Next due', <Time at={next_due_at} />],
        ]}
      />
    </Panel>
  );
}

function Uploads({ status }: { status: StatusReply }) {
  const { unfinished, resumable } = status;
  const list = useLoad('admin uploads', async (signal) => (await call('GET', '/admin/uploads', { query: { limit: 50 }, signal })).data, 5_000);
  return (
    <Panel title="Uploads under way" flush>
      <div class="panel-part">
        <Pairs
          rows={[
            ['Staged', `${counted(unfinished.files, 'file')} of ${size(unfinished.bytes)}, at most ${size(unfinished.max_bytes)}`],
            resumable.open !== null && [
              'Resumable',
              `${counted(resumable.open, 'open upload')} of ${size(resumable.open_bytes ?? 0)}, ${count(resumable.transfers)} receiving now`,
            ],
          ]}
        />
      </div>
      <Shown of={list} rows={1} what="Resumable uploads">
        {({ items: all, next_cursor }) => {
          // The server keeps a finished one for a day, for a client that did not hear of its end.
          const items = all.filter((upload) => upload.state !== 'finished');
          return items.length === 0 ? null : (
            <>
              <Table
                label="Resumable uploads"
                rows={items}
                rowKey={(upload) => upload.upload_id}
                columns={[
                  {
                    title: 'Upload',
                    phone: 'title',
                    cell: (upload) => (
                      <>
                        {upload.original_name === null ? <code>{upload.upload_id}</code> : <Name name={upload.original_name} />}
                        <span class="cell-sub">organization {upload.organization_id}</span>
                      </>
                    ),
                  },
                  { title: 'State', cell: (upload) => <State kind={upload.state === 'failed' ? 'bad' : 'busy'}>{upload.state}</State> },
                  {
                    title: 'Stored',
                    align: 'end',
                    cell: (upload) => (upload.length === null ? size(upload.offset) : `${size(upload.offset)} of ${size(upload.length)}`),
                  },
                  { title: 'Ends', phone: 'hidden', cell: (upload) => <Time at={upload.expires_at} /> },
                ]}
                buttons={(upload) =>
                      upload.state === 'open' && (
                        <Button
                          size="small"
                          kind="danger"
                          label={`Cancel the upload ${spoken(upload.original_name ?? upload.upload_id)}`}
                          onClick={() => cancel(upload.upload_id, upload.original_name, list.reload)}
                        >
                          Cancel
                        </Button>
                      )}
              />
              {next_cursor !== null && <p class="panel-empty">The oldest {count(items.length)} are shown.</p>}
            </>
          );
        }}
      </Shown>
    </Panel>
  );
}

async function cancel(upload_id: string, name: string | null, reload: () => Promise<void>): Promise<void> {
  const done = await ask({
    title: 'Cancel this upload?',
    text: `The bytes of ${spoken(name ?? upload_id)} that the server has are removed. The client cannot continue the upload.`,
    verb: 'Cancel the upload',
    danger: true,
    act: () => call('POST', '/admin/uploads/{upload_id}/cancel', { path: { upload_id }, body: {} }),
  });
  if (!done) return;
  say('The upload was cancelled');
  await reload();
}

function Deliveries() {
  const hooks = useLoad('webhooks', async (signal) => (await call('GET', '/webhooks', { signal })).data, 10_000);
  return (
    <Panel title="Webhooks">
      <Shown of={hooks} rows={1} what="Webhooks">
        {(list) => {
          const of = (state: string) => list.filter((hook) => hook.state === state).length;
          return list.length === 0 ? (
            <p class="quiet-text">None. Events are sent to nobody.</p>
          ) : (
            <div class="spread wrap">
              <span class="states">
                <State kind="ok">{count(of('ok'))} accept</State>
                <State kind={of('failing') > 0 ? 'bad' : 'ok'}>{count(of('failing'))} failing</State>
                <State kind="off">{count(of('disabled'))} disabled</State>
              </span>
              <LinkButton size="small" href={href('store/webhooks')}>
                Open webhooks
              </LinkButton>
            </div>
          );
        }}
      </Shown>
    </Panel>
  );
}

function Variants() {
  const variants = useLoad('variants', async (signal) => (await call('GET', '/admin/variants/status', { signal })).data, 10_000);
  const prune = async () => {
    let report: VariantCacheReport | null = null;
    const done = await ask({
      title: 'Empty the variant cache?',
      text: 'All thumbnails in the cache are removed. The server makes each again when somebody asks for it, which takes time and CPU.',
      verb: 'Empty the cache',
      danger: true,
      act: async () => (report = (await call('POST', '/admin/variants/prune', { body: {} })).data),
    });
    if (!done || !report) return;
    say(`${counted((report as VariantCacheReport).removed, 'variant')} removed`);
    await variants.reload();
  };
  return (
    <Panel
      title="Variants"
      action={
        <Button size="small" kind="danger" onClick={prune}>
          Empty the cache…
        </Button>
      }
    >
      <Shown of={variants} rows={2} what="Variants">
        {(data) => (
          <Pairs
            rows={[
              ['On disk', `${counted(data.disk_entries, 'variant')}, ${size(data.disk_bytes)}`],
              ['In memory', `${counted(data.memory_entries, 'variant')}, ${size(data.memory_bytes)}`],
              ['Decoded', `${size(data.intermediate_bytes)} for further sizes`],
              ['In advance', `${count(data.eager_made)} made, ${count(data.eager_waiting)} wait, ${count(data.eager_dropped)} left out since the start`],
            ]}
          />
        )}
      </Shown>
    </Panel>
  );
}

