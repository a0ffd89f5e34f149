/** Backups: destinations, snapshots, what is damaged in them. Restore is for the command line. */

import { useState } from 'preact/hooks';
import { call, type BackupVerifyReport, type Snapshot } from '../../api/call';
import { forgetRun, runOf, startRun } from '../../data/runs';
import { Button } from '../../parts/controls/button';
import { Radios } from '../../parts/controls/checkbox';
import { Command } from '../../parts/values/command';
import { FormDialog } from '../../parts/dialog';
import { Empty } from '../../parts/notes/empty';
import { ErrorBox } from '../../parts/notes/error';
import { Shown } from '../../parts/notes/loaded';
import { Notice } from '../../parts/notes/notice';
import { Aside, Panel } from '../../parts/panel';
import { Size } from '../../parts/values/size';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Tag } from '../../parts/values/tag';
import { Time } from '../../parts/values/time';
import { serverNow } from '../../api/call';
import { Page } from '../../shell/page';
import { count, counted, size } from '../../text/sizes';
import { short } from '../../text/times';
import { makings, setMaking, useSnapshots, type Destination } from './snapshots';

const DAY = 86_400_000;

export function Backups() {
  const backups = useSnapshots();
  const [asked, setAsked] = useState<string | null>(null);
  const newest = backups.data?.flatMap((one) => one.snapshots?.at(-1) ?? []).at(-1);
  const first = backups.data?.[0]?.name ?? 'nightly';

  return (
    <Page title="Backups" under={backups.data && counted(backups.data.length, 'destination')} body={null}>
      <div class="sided">
        <div class="sided-main">
          <Shown of={backups} rows={5} what="Backups">
            {(list) =>
              list.length === 0 ? (
                <Empty icon="archive" title="No destination">
                  Name one in the configuration of the server, preferably on another disk or at another site:{' '}
                  <code class="code">[[backup.destinations]]</code> with <code class="code">name</code> and <code class="code">path</code>.
                </Empty>
              ) : (
                <div class="stack">
                  {list.map((destination) => (
                    <DestinationPanel key={destination.name} of={destination} onMake={() => setAsked(destination.name)} reload={backups.reload} />
                  ))}
                </div>
              )
            }
          </Shown>
        </div>
        <aside class="sided-side" aria-label="Restore">
          <Aside title="Restore">
            <p class="aside-note">
              A restore revives files that were deleted on purpose too, so it needs a decision for each file. Run it on the command line:
            </p>
            <Command
              label="command to restore"
              commands={[`filestore backup restore --from ${first}${newest ? ` --snapshot ${newest.snapshot_id}` : ''} --file FILE_ID`]}
            />
          </Aside>
          <Aside title="Keep the newest">
            <p class="aside-note">To remove old snapshots, and keep for example 14:</p>
            <Command label="command to prune" commands={[`filestore backup prune --from ${first} --keep 14`]} />
          </Aside>
        </aside>
      </div>
      {asked !== null && (
        <MakeDialog
          destination={asked}
          newest={backups.data?.find((one) => one.name === asked)?.snapshots?.at(-1)}
          onClose={() => setAsked(null)}
          reload={backups.reload}
        />
      )}
    </Page>
  );
}

const SHOWN = 10;

function DestinationPanel({ of: { name, snapshots, isBusy, error }, onMake, reload }: { of: Destination; onMake: () => void; reload: () => Promise<void> }) {
  const [all, setAll] = useState(false);
  const making = makings.value.get(name);
  const verifying = runOf<BackupVerifyReport>(`verify ${name}`);
  const newestFirst = [...(snapshots ?? [])].reverse();
  const newest = newestFirst[0];
  const isMaking = making !== undefined && making.made === undefined;
  const busy = isBusy || isMaking || verifying?.state === 'running';

  const verify = (snapshot: Snapshot) =>
    startRun(`verify ${name}`, async () => {
      const { data } = await call('POST', '/admin/backups/{destination}/verify', {
        path: { destination: name },
        body: { snapshot_id: snapshot.snapshot_id },
      });
      await reload();
      return data;
    }, snapshot.snapshot_id);

  return (
    <Panel
      title={name}
      note={newest ? <Age of={newest} /> : undefined}
      flush
      action={
        !error && (
          <Button size="small" icon="plus" disabled={busy} label={`Back up to ${name}`} onClick={onMake}>
            Back up
          </Button>
        )
      }
    >
      {isMaking && (
        <div class="panel-part">
          <Notice kind="accent" icon="archive" title="A snapshot is being taken" onClose={() => setMaking(name, null)}>
            <p>
              Started <Time at={making.startedAt} within />. It is in this list when it has ended, and goes on when this page is closed. If it fails, the
              log of the server tells why.
            </p>
          </Notice>
        </div>
      )}
      {isBusy && !isMaking && verifying?.state !== 'running' && (
        <div class="panel-part">
          <State kind="busy">Another run works here</State>
        </div>
      )}
      {verifying?.state === 'running' && (
        <div class="panel-part">
          <Notice kind="accent" icon="archive" title="A snapshot is being verified">
            <p>
              Started <Time at={verifying.startedAt} within />. Every byte is read and compared. Keep this tab open: the result is shown only here, and
              the run stops with it.
            </p>
          </Notice>
        </div>
      )}
      {verifying?.state === 'failed' && (
        <div class="panel-part">
          <ErrorBox error={verifying.error} what="The verification" />
        </div>
      )}
      {making?.made !== undefined && (
        <div class="panel-part">
          <Made of={making.made} onClose={() => setMaking(name, null)} />
        </div>
      )}
      {verifying?.state === 'done' && verifying.result && (
        <div class="panel-part">
          <Verified report={verifying.result} onClose={() => forgetRun(`verify ${name}`)} />
        </div>
      )}
      {error ? (
        <ErrorBox error={error} what={name} onRetry={reload} />
      ) : newestFirst.length === 0 ? (
        !isBusy && <p class="panel-empty">No snapshot yet.</p>
      ) : (
        <>
          <Table
            label={`Snapshots at ${name}`}
            rows={all ? newestFirst : newestFirst.slice(0, SHOWN)}
            rowKey={(snapshot) => snapshot.snapshot_id}
            columns={[
              {
                title: 'Snapshot',
                phone: 'title',
                cell: (snapshot) => (
                  <>
                    <span class="cell-main">
                      <Time at={snapshot.created_at} absolute />
                    </span>{' '}
                    {snapshot.shares_disk && <Tag kind="warn" title="It has hard links to the files of the store">same disk</Tag>}
                    {snapshot.local_only && <Tag title="Bytes at providers are listed, not copied">without provider bytes</Tag>}
                    <span class="cell-sub mono">{snapshot.snapshot_id}</span>
                  </>
                ),
              },
              { title: 'Files', align: 'end', cell: (snapshot) => count(snapshot.files) },
              { title: 'Bytes', align: 'end', cell: (snapshot) => <Size bytes={snapshot.bytes} /> },
              { title: 'State', cell: (snapshot) => <Damage of={snapshot} /> },
            ]}
            buttons={(snapshot) => (
                  <Button
                    size="small"
                    disabled={busy}
                    busy={verifying?.state === 'running' && verifying.plan === snapshot.snapshot_id}
                    label={`Verify the snapshot ${snapshot.snapshot_id}`}
                    onClick={() => verify(snapshot)}
                  >
                    Verify
                  </Button>
                )}
          />
          {!all && newestFirst.length > SHOWN && (
            <div class="panel-more">
              <Button size="small" onClick={() => setAll(true)}>
                Show all {count(newestFirst.length)}
              </Button>
            </div>
          )}
        </>
      )}
    </Panel>
  );
}

function Age({ of: snapshot }: { of: Snapshot }) {
  const age = serverNow() - Date.parse(snapshot.created_at);
  return age > 2 * DAY ? <State kind="warn">newest is {short(age)} old</State> : <span>newest {short(Math.max(0, age))} old</span>;
}

function Damage({ of: snapshot }: { of: Snapshot }) {
  const damaged = snapshot.damaged + snapshot.damaged_records;
  if (damaged === 0) return <State kind="ok">Nothing damaged</State>;
  return (
    <State kind="bad">
      {snapshot.damaged > 0 && counted(snapshot.damaged, 'damaged blob')}
      {snapshot.damaged > 0 && snapshot.damaged_records > 0 && ', '}
      {snapshot.damaged_records > 0 && counted(snapshot.damaged_records, 'damaged record')}
    </State>
  );
}

function Made({ of: snapshot, onClose }: { of: Snapshot | null; onClose: () => void }) {
  if (!snapshot) {
    return (
      <Notice kind="bad" title="The backup ended without a snapshot" onClose={onClose}>
        <p>The log of the server tells why. Copied bytes stay at the destination, and the next run continues from there.</p>
      </Notice>
    );
  }
  const damaged = snapshot.damaged + snapshot.damaged_records;
  return (
    <Notice kind={damaged > 0 ? 'warn' : 'ok'} title={`Snapshot of ${counted(snapshot.files, 'file')} taken`} onClose={onClose}>
      <p>
        {size(snapshot.bytes)} in {counted(snapshot.blobs, 'blob')}.
        {damaged > 0 && ` ${counted(damaged, 'item')} of the store are damaged or missing, and so they are in the snapshot. Check the store.`}
      </p>
    </Notice>
  );
}

function Verified({ report, onClose }: { report: BackupVerifyReport; onClose: () => void }) {
  return (
    <Notice
      kind={report.ok ? 'ok' : 'bad'}
      title={report.ok ? 'The snapshot is intact' : report.error ? 'The verification failed' : 'The snapshot is damaged'}
      onClose={onClose}
    >
      <p>
        {counted(report.checked, 'blob')} of {size(report.checked_bytes)} read.{' '}
        {report.missing > 0 && `${counted(report.missing, 'blob')} missing. `}
        {report.wrong > 0 && `${counted(report.wrong, 'blob')} damaged. `}
        {report.set_aside > 0 && `${counted(report.set_aside, 'blob')} moved aside: the next snapshot copies them again. `}
        {!report.database_ok && 'The copy of the database is damaged. '}
        {report.error && <bdi>{report.error.message}</bdi>}
      </p>
    </Notice>
  );
}

function MakeDialog({
  destination,
  newest,
  onClose,
  reload,
}: {
  destination: string;
  newest: Snapshot | undefined;
  onClose: () => void;
  reload: () => Promise<void>;
}) {
  const [how, setHow] = useState<'copy' | 'links' | 'local'>('copy');
  const start = async () => {
    const body = { ...(how === 'links' && { hard_links: true }), ...(how === 'local' && { local_only: true }), detach: true };
    await call('POST', '/admin/backups/{destination}/create', { path: { destination }, body });
    setMaking(destination, { startedAt: serverNow(), before: newest?.snapshot_id, wasBusy: false });
    onClose();
    void reload();
  };
  return (
    <FormDialog title={`Back up to ${destination}`} verb="Back up" cautious onClose={onClose} act={start}>
      <Radios
        legend="What"
        value={how}
        onChange={setHow}
        choices={[
          { value: 'copy', label: 'Everything', hint: 'Copies what the destination does not have yet, also from providers.' },
          { value: 'local', label: 'Without the bytes at providers', hint: 'Lists files at providers, and copies only what the server stores.' },
          { value: 'links', label: 'With hard links', hint: 'Quick, on the same disk. A failing disk then damages the snapshot too.' },
        ]}
      />
      <p class="dialog-text">The backup goes on when this page is closed. For every night, use the timer of the package.</p>
    </FormDialog>
  );
}
