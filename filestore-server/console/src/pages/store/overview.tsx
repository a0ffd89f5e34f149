/** `filestore status` as a page: advice first, then totals, providers, work, and the latest events. */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { call, type AdminProvider, type Snapshot, type StatusAdvice, type StatusReply } from '../../api/call';
import { askNames, useActivity } from '../../data/activity';
import { gather } from '../../data/deeds';
import { organizationName, organizations, organizationsComplete } from '../../data/place';
import { useStatus } from '../../data/status';
import { AdviceCard } from '../../parts/notes/advice';
import { Meter, TwoToneBar } from '../../parts/bar';
import { Button, LinkButton } from '../../parts/controls/button';
import { CopyButton } from '../../parts/values/copy';
import { ErrorBox } from '../../parts/notes/error';
import { Shown } from '../../parts/notes/loaded';
import { Blocks } from '../../parts/notes/loading';
import { Aside, Panel } from '../../parts/panel';
import { Count, Size } from '../../parts/values/size';
import { State, StateMark } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Since, Time } from '../../parts/values/time';
import { Timeline } from '../../parts/timeline';
import { say, sayError } from '../../parts/notes/toast';
import { href } from '../../router';
import { Page } from '../../shell/page';
import { count, counted, size } from '../../text/sizes';
import { clockSeconds, fully, short, utc } from '../../text/times';
import { describe } from '../activity/describe';
import { Live } from '../activity/live';
import { CopyBar, queueCopies } from './copies';
import { age, CheckDialog, isDown, ProviderState, sinceWords } from './providers-shared';
import { PurgeDialog } from './purge';
import { useSnapshots } from './snapshots';

export function Overview() {
  const status = useStatus();
  const [checked, setChecked] = useState<string | null>(null);
  const [purging, setPurging] = useState(false);
  const data = status.data;

  return (
    <Page
      title="Overview"
      under={data && `filestore ${data.store.version}, up ${short(data.store.uptime_secs * 1000)}`}
      body={null}
      actions={
        <>
          <Live />
          {data && (
            <CopyButton icon="braces" text={() => JSON.stringify(data, null, 2)}>
              Copy as JSON
            </CopyButton>
          )}
        </>
      }
    >
      <div class="sided overview">
        <div class="sided-main">
          <Shown of={status} rows={8} what="State">
            {(now) => (
              <div class="stack">
                <Advice status={now} onCheck={setChecked} reload={status.reload} />
                <Figures status={now} />
                <Providers status={now} onCheck={setChecked} />
                <Work status={now} onPurge={() => setPurging(true)} reload={status.reload} />
              </div>
            )}
          </Shown>
        </div>
        <aside class="sided-side" aria-label="Activity">
          <Latest />
        </aside>
      </div>
      {checked !== null && (
        <CheckDialog
          code={checked}
          onClose={() => {
            setChecked(null);
            void status.reload();
          }}
        />
      )}
      {purging && <PurgeDialog now={false} onClose={() => setPurging(false)} onDone={() => void status.reload()} />}
    </Page>
  );
}

/** How long a provider that recovered keeps its green line. */
const RECOVERED_MS = 60_000;

function Advice({ status, onCheck, reload }: { status: StatusReply; onCheck: (code: string) => void; reload: () => Promise<void> }) {
  const recovered = useRecovered(status.providers);
  return (
    <>
      {status.advice.map((advice, index) => {
        const provider = advice.code === 'provider_failing' && status.providers.find((one) => one.provider_code === advice.provider_code);
        return provider ? (
          <DownCard key={provider.provider_code} provider={provider} reads={advice.problem.startsWith('gets no writes')} onCheck={onCheck} />
        ) : (
          <OtherCard key={`${advice.code} ${index}`} advice={advice} reload={reload} />
        );
      })}
      {recovered.map((code) => (
        <AdviceCard key={code} kind="ok" icon="circle-check" title={`${code} answers again. Waiting work continues.`} />
      ))}
    </>
  );
}

function useRecovered(providers: readonly AdminProvider[]): string[] {
  const down = useRef(new Set<string>());
  const [recovered, setRecovered] = useState<Record<string, number>>({});
  useEffect(() => {
    const now = Date.now();
    const next: Record<string, number> = {};
    for (const [code, at] of Object.entries(recovered)) if (now - at < RECOVERED_MS) next[code] = at;
    for (const provider of providers) {
      const code = provider.provider_code;
      if (isDown(provider)) {
        down.current.add(code);
        delete next[code];
      } else if (down.current.delete(code)) next[code] = now;
    }
    if (JSON.stringify(next) !== JSON.stringify(recovered)) setRecovered(next);
  }, [providers]);
  return Object.keys(recovered);
}

function DownCard({ provider, reads, onCheck }: { provider: AdminProvider; reads: boolean; onCheck: (code: string) => void }) {
  const code = provider.provider_code;
  const { sync, purge, dropped } = provider.backlog;
  const bound = (organizations.value ?? []).filter((one) => one.binding?.storage_provider === code);
  const through = bound.filter((one) => one.binding?.sync_enabled === false).length;
  return (
    <AdviceCard
      kind="bad"
      title={
        <>
          {code} {provider.state === 'half_open' ? 'is on trial' : reads ? 'gets no writes' : 'does not answer'}
          {provider.state_since !== null && (
            <>
              {' '}
              since {sinceWords(provider.state_since)}, for <Since at={provider.state_since} />
            </>
          )}
        </>
      }
      error={provider.last_error}
      action={
        <Button icon="stethoscope" onClick={() => onCheck(code)}>
          Check {code}
        </Button>
      }
    >
      <p>
        {sync > 0
          ? `${counted(sync, 'file')} ${sync === 1 ? 'waits' : 'wait'} to be copied and ${sync === 1 ? 'is safe where it is' : 'are safe where they are'} now. `
          : 'No file waits to be copied there. '}
        {purge + dropped > 0 && `${counted(purge + dropped, 'removal')} ${purge + dropped === 1 ? 'waits' : 'wait'}. `}
        Waiting work continues by itself when {code} answers.
      </p>
      {through > 0 && (
        <p>
          Uploads of organizations that are written through to it get 502 until then:{' '}
          <a href={href(`store/providers/${code}`)}>{counted(through, 'binding')}</a>
          {!organizationsComplete.value && ' or more'}.
        </p>
      )}
    </AdviceCard>
  );
}

const ABOUT: Record<string, string> = {
  database: 'The database',
  storage: 'The storage',
  disk: 'The disk',
  records: 'Records',
  blobs: 'Stored bytes',
  checks: 'Checks',
  uploads: 'Uploads',
  sync: 'Sync',
  events: 'Events',
  webhooks: 'Webhooks',
};

const GRAVE = new Set(['database_fault', 'storage_fault', 'disk_full', 'damaged_rows', 'missing_blobs']);
/** Where each kind of problem is looked at. */
const PLACES: Record<string, [path: string, words: string]> = {
  open_findings: ['store/checks', 'Open checks'],
  webhook_failing: ['store/webhooks', 'Open webhooks'],
  webhook_disabled: ['store/webhooks', 'Open webhooks'],
};

function OtherCard({ advice, reload }: { advice: StatusAdvice; reload: () => Promise<void> }) {
  const { code, command, organization_id } = advice;
  const place = PLACES[code];
  return (
    <AdviceCard
      kind={GRAVE.has(code) ? 'bad' : 'warn'}
      title={`${ABOUT[advice.about] ?? advice.about}: ${advice.problem}`}
      action={
        code === 'sync_failed' ? (
          <Button icon="rotate-cw" onClick={() => queueCopies('retry', null, reload)}>
            Retry
          </Button>
        ) : place ? (
          <LinkButton href={href(place[0])}>{place[1]}</LinkButton>
        ) : (
          command && <CopyButton text={command}>Copy the command</CopyButton>
        )
      }
    >
      <WithCode text={`${advice.next.charAt(0).toUpperCase()}${advice.next.slice(1)}.`} />
      {code === 'sync_failed' && organization_id && (
        <p>
          <a href={href(`org/${organization_id}/files`, { sync_status: 'FAILED' })}>Show the files of organization {organization_id}</a>
        </p>
      )}
    </AdviceCard>
  );
}

/** A sentence whose commands stand between backticks. */
function WithCode({ text }: { text: string }) {
  return (
    <p>
      {text.split('`').map((part, index) =>
        index % 2 === 1 ? (
          <code key={index} class="code">
            {part}
          </code>
        ) : (
          part
        ),
      )}
    </p>
  );
}

function Figures({ status }: { status: StatusReply }) {
  const { disk, unfinished, resumable, sync } = status;
  const used = disk ? disk.total_bytes - disk.free_bytes : 0;
  const list = organizations.value;
  return (
    <dl class="figures">
      <div>
        <dt>Files</dt>
        <dd class="figure">
          <Count value={status.files} />
        </dd>
        <dd class="figure-note">
          {list && (organizationsComplete.value ? counted(list.length, 'organization') : `more than ${counted(list.length, 'organization')}`)}
        </dd>
      </div>
      <div>
        <dt>Stored</dt>
        <dd class="figure">
          <Size bytes={status.bytes} />
        </dd>
        <dd class="figure-note">{counted(sync.synced, 'file')} at providers</dd>
      </div>
      <div>
        <dt>Disk</dt>
        {disk ? (
          <>
            <dd class="figure">
              <Size bytes={disk.free_bytes} /> <span class="figure-unit">free</span>
            </dd>
            <dd class="figure-note figure-meter">
              <Meter value={used} total={disk.total_bytes} tone={disk.takes_uploads ? 'ink' : 'bad'} />
              <span>of {size(disk.total_bytes)}</span>
            </dd>
          </>
        ) : (
          <dd class="figure-note">The size is not known.</dd>
        )}
      </div>
      <div>
        <dt>Uploads under way</dt>
        <dd class="figure">
          <Count value={unfinished.files} />
        </dd>
        <dd class="figure-note">
          {size(unfinished.bytes)} of {size(unfinished.max_bytes)} staged
          {resumable.open !== null && resumable.open > 0 && `, ${count(resumable.open)} resumable`}
        </dd>
      </div>
    </dl>
  );
}

function Providers({ status, onCheck }: { status: StatusReply; onCheck: (code: string) => void }) {
  return (
    <Panel title="Providers" flush>
      <Table
        label="Providers"
        rows={status.providers}
        rowKey={(provider) => provider.provider_code}
        rowClass={(provider) => provider.state === 'open' && 'sick'}
        columns={[
          {
            title: 'Provider',
            phone: 'title',
            cell: (provider) => (
              <>
                <a class="cell-main" href={href(`store/providers/${provider.provider_code}`)}>
                  {provider.provider_code}
                </a>{' '}
                <span class="cell-beside">
                  <bdi>{provider.provider_name}</bdi>
                </span>
              </>
            ),
          },
          { title: 'State', cell: (provider) => <ProviderState provider={provider} /> },
          { title: 'To copy', align: 'end', cell: (provider) => <Waiting value={provider.backlog.sync} /> },
          { title: 'To purge', align: 'end', phone: 'hidden', cell: (provider) => <Waiting value={provider.backlog.purge} /> },
          { title: 'To drop', align: 'end', phone: 'hidden', cell: (provider) => <Waiting value={provider.backlog.dropped} /> },
          { title: 'Oldest', align: 'end', phone: 'hidden', cell: (provider) => age(provider.backlog.oldest_secs) },
        ]}
        buttons={(provider) =>
              provider.storage_location === 'CLOUD' &&
              provider.is_configured && (
                <Button size="small" label={`Check ${provider.provider_code}`} onClick={() => onCheck(provider.provider_code)}>
                  Check
                </Button>
              )}
      />
    </Panel>
  );
}

function Waiting({ value }: { value: number }) {
  return value === 0 ? <span class="quiet-text number">0</span> : <Count value={value} />;
}

function Work({ status, onPurge, reload }: { status: StatusReply; onPurge: () => void; reload: () => Promise<void> }) {
  return (
    <Panel title="Background work" flush>
      <div class="work">
        <SyncRow status={status} reload={reload} />
        <MigrationRows status={status} reload={reload} />
        <PurgeRow status={status} onPurge={onPurge} />
        <CheckRow status={status} />
        <BackupRows />
      </div>
    </Panel>
  );
}

/** One kind of work: what it does, how far it is, and what can be done about it. */
function Row({ title, bar, thin, act, children }: {
  title: string;
  bar?: ComponentChildren;
  thin?: boolean;
  act?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <div class="work-row">
      <h3>{title}</h3>
      <p>{children}</p>
      <div class={`work-bar ${thin ? 'thin' : ''}`}>{bar}</div>
      <div class="work-act">{act}</div>
    </div>
  );
}

function SyncRow({ status, reload }: { status: StatusReply; reload: () => Promise<void> }) {
  const { pending, syncing, synced, failed } = status.sync;
  const retry = failed > 0 && (
    <Button size="small" label="Retry failed copies" onClick={() => queueCopies('retry', null, reload)}>
      Retry
    </Button>
  );
  return (
    <Row title="Sync" thin bar={<CopyBar sync={status.sync} />} act={retry}>
      {pending + syncing + synced + failed === 0 ? (
        'No organization copies its files to a provider'
      ) : (
        <>
          {count(pending)} {pending === 1 ? 'waits' : 'wait'}, {count(syncing)} under way
          {failed > 0 && (
            <>
              , <span class="bad-text">{count(failed)} failed</span>
            </>
          )}
        </>
      )}
    </Row>
  );
}

function MigrationRows({ status, reload }: { status: StatusReply; reload: () => Promise<void> }) {
  if (status.migrations.length === 0) return <Row title="Migration">None is running</Row>;
  return (
    <>
      {status.migrations.map(({ organization_id, to, files, planned_files, bytes, planned_bytes }) => (
        <Row
          key={organization_id}
          title="Migration"
          thin
          bar={<TwoToneBar label="Migration" text={`${counted(files, 'file')} moved`} done={bytes} total={planned_bytes} />}
          act={
            <Button size="small" label={`Stop the migration of organization ${organization_id}`} onClick={() => stopMigration(organization_id, reload)}>
              Stop
            </Button>
          }
        >
          <a class="plain-link" href={href(`org/${organization_id}/storage`)}>
            {organizationName(organization_id)}
          </a>{' '}
          to {to}, {count(files)} of {counted(planned_files ?? files, 'file')} moved
        </Row>
      ))}
    </>
  );
}

export async function stopMigration(organization: string, reload: () => Promise<void>): Promise<void> {
  try {
    await call('POST', '/admin/migrate/stop', { body: { organizationId: Number(organization) } });
    say('The migration stops after the files that are under way');
    await reload();
  } catch (reason) {
    sayError('The migration could not be stopped', reason);
  }
}

function PurgeRow({ status, onPurge }: { status: StatusReply; onPurge: () => void }) {
  const { due, due_bytes, waiting, expired, due_blobs } = status.purge;
  return (
    <Row
      title="Purge"
      act={
        <Button size="small" label="Run the purge" onClick={onPurge}>
          Run
        </Button>
      }
    >
      {count(due)} due{due > 0 && ` (${size(due_bytes)})`}, {count(waiting)} within the grace period
      {due_blobs > 0 && `, ${counted(due_blobs, 'replaced blob')}`}
      {expired > 0 && `, ${counted(expired, 'expired file')}`}
    </Row>
  );
}

function CheckRow({ status }: { status: StatusReply }) {
  const { running, last, scrub } = status.checks;
  const newest = [last, scrub].filter((check) => check !== null).sort((a, b) => (a.started_at < b.started_at ? 1 : -1))[0];
  const isScrub = running ? running.scrub : newest !== undefined && newest === scrub;
  const open = newest ? newest.found - newest.repaired : 0;
  return (
    <Row
      title={isScrub ? 'Scrub' : 'Check'}
      bar={
        running ? (
          <State kind={running.found > 0 ? 'bad' : 'busy'}>{running.found > 0 ? counted(running.found, 'finding') : 'Nothing found so far'}</State>
        ) : (
          newest &&
          newest.ended_at !== null && (
            <State kind={open > 0 ? 'bad' : 'ok'}>{open > 0 ? `${counted(open, 'open finding')}` : newest.found > 0 ? 'All repaired' : 'Nothing found'}</State>
          )
        )
      }
      act={<OpenLink to="checks" label="Check the store" word="Check" />}
    >
      {running ? (
        `Running, ${counted(running.checked_files, 'file')} and ${size(running.checked_bytes)} so far`
      ) : newest ? (
        newest.ended_at === null ? (
          <>
            Stopped, started <Time at={newest.started_at} within />
          </>
        ) : (
          <>
            Ended <Time at={newest.ended_at} within />, {newest.deep ? `${size(newest.checked_bytes)} read` : `${counted(newest.checked_files, 'file')} looked at`}
          </>
        )
      ) : (
        'None yet'
      )}
    </Row>
  );
}

function OpenLink({ to, label, word = 'Open' }: { to: string; label: string; word?: string }) {
  return (
    <LinkButton size="small" href={href(`store/${to}`)} label={label}>
      {word}
    </LinkButton>
  );
}

function BackupRows() {
  const backups = useSnapshots();
  if (backups.data === undefined || backups.data.length === 0) {
    return (
      <Row title="Backup" act={<OpenLink to="backups" label="Open backups" />}>
        {backups.error !== null ? 'The destinations could not be read' : backups.data ? 'No destination is configured' : ''}
      </Row>
    );
  }
  return (
    <>
      {backups.data.map(({ name, snapshots, isBusy, error }) => {
        const newest: Snapshot | undefined = snapshots?.at(-1);
        const damaged = newest ? newest.damaged + newest.damaged_records : 0;
        return (
          <Row
            key={name}
            title="Backup"
            bar={
              newest ? (
                <State kind={damaged > 0 ? 'bad' : 'ok'}>{damaged > 0 ? `${count(damaged)} damaged` : 'Nothing damaged'}</State>
              ) : (
                <State kind={error ? 'bad' : isBusy ? 'busy' : 'wait'}>{error ? 'Not there' : isBusy ? 'Under way' : 'Waits for its first'}</State>
              )
            }
            act={<OpenLink to="backups" label={`Open backups of ${name}`} />}
          >
            {name}
            {newest ? (
              <>
                , taken <Time at={newest.created_at} within />, {counted(newest.files, 'file')}
              </>
            ) : (
              `, ${error ? 'cannot be read' : isBusy ? 'a run works there' : 'no snapshot yet'}`
            )}
          </Row>
        );
      })}
    </>
  );
}

function Latest() {
  const activity = useActivity(null, 60);
  const deeds = activity.events ? gather(activity.events, activity.more).slice(0, 14) : [];
  const wanted = deeds.filter((deed) => deed.count === 1).flatMap((deed) => deed.event.data.file_id ?? []);
  useEffect(() => askNames(wanted), [wanted.join()]);
  void utc.value;
  return (
    <Aside title="Activity" action={<a href={href('store/activity')}>All events</a>}>
      {activity.error !== null ? (
        <ErrorBox error={activity.error} onRetry={activity.reload} />
      ) : activity.events === undefined ? (
        <Blocks rows={6} />
      ) : deeds.length === 0 ? (
        <p class="quiet-text">
          <StateMark kind="wait" /> No events yet.
        </p>
      ) : (
        <Timeline
          label="Latest events"
          moments={deeds.map((deed) => ({
            id: deed.event.id,
            ...describe(deed, true),
            at: (
              <time dateTime={deed.event.timestamp} title={fully(deed.event.timestamp)}>
                {sameDay(deed.event.timestamp) ? clockSeconds(deed.event.timestamp) : <Time at={deed.event.timestamp} />}
              </time>
            ),
          }))}
        />
      )}
    </Aside>
  );
}

function sameDay(time: string): boolean {
  return new Date(time).toDateString() === new Date().toDateString();
}

