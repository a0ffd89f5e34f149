/** Checks of the store: the running one, the last ones, and findings with what each means. */

import { useState } from 'preact/hooks';
import { call, type FsckFinding, type FsckReport, type FsckRunning, type FsckStatus, type FsckSummary } from '../../api/call';
import { useLoad } from '../../data/load';
import { useRate } from '../../data/rate';
import { forgetRun, runOf, startRun } from '../../data/runs';
import { useStatus } from '../../data/status';
import { TwoToneBar } from '../../parts/bar';
import { Button } from '../../parts/controls/button';
import { Checkbox, Radios } from '../../parts/controls/checkbox';
import { Command } from '../../parts/values/command';
import { FormDialog } from '../../parts/dialog';
import { ErrorBox } from '../../parts/notes/error';
import { SelectField } from '../../parts/controls/field';
import { Shown } from '../../parts/notes/loaded';
import { Notice } from '../../parts/notes/notice';
import { Aside, Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Tag } from '../../parts/values/tag';
import { Time } from '../../parts/values/time';
import { say, sayError } from '../../parts/notes/toast';
import { href } from '../../router';
import { Page } from '../../shell/page';
import { count, counted, size } from '../../text/sizes';
import { duration } from '../../text/times';
import { FINDINGS } from './findings';

const RUN = 'check';

export function Checks() {
  const status = useLoad(
    'checks',
    async (signal) => (await call('GET', '/admin/fsck/status', { signal })).data,
    (data) => (data?.running || runOf(RUN)?.state === 'running' ? 1_000 : 5_000),
  );
  const [open, setOpen] = useState(false);
  const run = runOf<FsckReport>(RUN);
  const running = status.data?.running ?? null;

  return (
    <Page
      title="Checks"
      under="of the whole store"
      body={null}
      actions={
        <Button kind="primary" icon="shield-check" disabled={running !== null && !running.scrub} onClick={() => setOpen(true)}>
          Check now
        </Button>
      }
    >
      <div class="sided">
        <div class="sided-main">
          <Shown of={status} rows={4} what="Checks">
            {(data) => (
              <div class="stack">
                {running && <Running running={running} isOurs={run?.state === 'running'} reload={status.reload} />}
                {!running && run?.state === 'running' && <State kind="busy">The check begins</State>}
                {run?.state === 'failed' && <ErrorBox error={run.error} what="The check" />}
                {run?.state === 'done' && run.result && <Report report={run.result} />}
                <Last status={data} />
              </div>
            )}
          </Shown>
        </div>
        <aside class="sided-side" aria-label="Repair">
          <Aside title="Repair">
            <p class="aside-note">
              A repair changes the store, and quarantines what it cannot explain. So it runs on the command line only, where you see each finding
              first:
            </p>
            <Command label="commands to repair" commands={['filestore fsck --deep', 'filestore fsck --deep --repair']} />
          </Aside>
          <Aside title="Scrub">
            <p class="aside-note">
              The server checks itself in the background, once a week (<code class="code">[scrub] period_secs</code>). A scrub only reports.
            </p>
          </Aside>
        </aside>
      </div>
      {open && <RunDialog onClose={() => setOpen(false)} onStarted={status.reload} />}
    </Page>
  );
}

const PARTS = ['files', 'blobs', 'leftovers', 'variants', 'totals'] as const;
const PART_WORDS: Record<string, string> = {
  files: 'files: is each where its record says',
  blobs: 'stored blobs: does a record name each',
  leftovers: 'leftovers of uploads',
  variants: 'cached variants',
  totals: 'totals',
};

function Running({ running, isOurs, reload }: { running: FsckRunning; isOurs: boolean; reload: () => Promise<void> }) {
  const rate = useRate(running.checked_bytes);
  const part = PARTS.indexOf(running.part as (typeof PARTS)[number]);
  const stop = async () => {
    try {
      await call('POST', '/admin/fsck/stop', { body: {} });
      say('The check was stopped. You can resume it.');
      await reload();
    } catch (reason) {
      sayError('The check could not be stopped', reason);
    }
  };
  return (
    <Panel
      title={running.scrub ? 'Scrub' : 'Check'}
      note={<State kind="busy">under way</State>}
      action={
        !running.scrub && (
          <Button size="small" icon="square" label="Stop the check" onClick={stop}>
            Stop
          </Button>
        )
      }
    >
      <div class="stack tight">
        <p class="spread">
          <span>
            <span class="figure-m">{count(running.checked_files)}</span>{' '}
            <span class="use-note">
              files and {count(running.checked_names)} names checked, {size(running.checked_bytes)} read
            </span>
          </span>
          <span class="use-note number">{rate !== null && rate > 0 && `${size(Math.round(rate))}/s`}</span>
        </p>
        <TwoToneBar
          label="Check"
          text={part < 0 ? 'it begins' : `part ${part + 1} of ${PARTS.length}: ${running.part}`}
          done={Math.max(0, part)}
          total={PARTS.length}
        />
        <p class="quiet-text">
          {part < 0 ? 'It begins.' : `Part ${part + 1} of ${PARTS.length}, ${PART_WORDS[running.part]}.`}
          {isOurs ? ' Keep this page open to see each finding. The check stops when the tab is closed, and can be resumed.' : ' The check goes on when this page is closed.'}
        </p>
        <State kind={running.found > 0 ? 'bad' : 'ok'}>{running.found > 0 ? `${counted(running.found, 'finding')} so far` : 'Nothing found so far'}</State>
      </div>
    </Panel>
  );
}

function Last({ status }: { status: FsckStatus }) {
  return (
    <>
      <Summary title="Last check" of={status.last} none="None yet." />
      <Summary title="Last scrub" of={status.scrub} none="None yet. The first scrub runs a week after the store was made." />
    </>
  );
}

function Summary({ title, of: check, none }: { title: string; of: FsckSummary | null; none: string }) {
  if (!check) {
    return (
      <Panel title={title}>
        <p class="quiet-text">{none}</p>
      </Panel>
    );
  }
  const open = check.found - check.repaired;
  const ended = check.ended_at !== null;
  return (
    <Panel
      title={title}
      note={
        ended ? (
          <State kind={open > 0 ? 'bad' : 'ok'}>{open > 0 ? counted(open, 'open finding') : check.found > 0 ? 'All findings repaired' : 'Nothing found'}</State>
        ) : (
          <State kind="warn">Stopped before its end</State>
        )
      }
    >
      <Pairs
        rows={[
          ['Kind', check.deep ? 'Deep: every byte was read' : 'Names and sizes'],
          ['Started', <Time at={check.started_at} />],
          ended && [
            'Ended',
            <>
              <Time at={check.ended_at ?? ''} />, after {duration(Date.parse(check.ended_at ?? '') - Date.parse(check.started_at))}
            </>,
          ],
          ['Checked', `${counted(check.checked_files, 'file')}${check.deep ? `, ${size(check.checked_bytes)}` : ''}`],
          ['Findings', `${count(check.found)}${check.repaired > 0 ? `, ${count(check.repaired)} repaired` : ''}`],
          check.postponed.length > 0 && ['Left out', `${check.postponed.join(', ')} did not answer`],
        ]}
      />
      {open > 0 && (
        <p class="quiet-text">
          The <a href={href('store/activity')}>activity</a> names each damaged file. To see all findings, check again and let this page list them.
        </p>
      )}
    </Panel>
  );
}

function Report({ report }: { report: FsckReport }) {
  const kinds = Object.entries(report.found_by_kind).filter(([, found]) => Number(found) > 0);
  return (
    <Notice
      kind={report.clean ? 'ok' : report.found > 0 ? 'bad' : 'warn'}
      title={
        report.ended_at === null
          ? 'The check was stopped'
          : report.clean
            ? 'The check looked at everything and found nothing'
            : report.found > 0
              ? `The check found ${counted(report.found, 'problem')}`
              : 'The check found nothing, but did not see everything'
      }
      onClose={() => forgetRun(RUN)}
    >
      {Object.entries(report.postponed).map(([code, why]) => (
        <p key={code}>
          {code} was left out: <bdi>{String(why)}</bdi>
        </p>
      ))}
      {kinds.length > 0 && (
        <ul class="findings">
          {kinds.map(([kind, found]) => {
            const words = FINDINGS[kind];
            return (
              <li key={kind}>
                <strong>
                  {words?.title ?? kind}, {count(Number(found))}
                </strong>
                {words && (
                  <>
                    : {words.means} {words.repair}
                  </>
                )}
              </li>
            );
          })}
        </ul>
      )}
      {report.findings.length > 0 && <FindingTable findings={report.findings.slice(0, 50)} more={report.found - Math.min(50, report.findings.length)} />}
      <div class="row">
        <Button size="small" icon="download" onClick={() => download(report)}>
          Download the report
        </Button>
      </div>
    </Notice>
  );
}

function FindingTable({ findings, more }: { findings: readonly FsckFinding[]; more: number }) {
  return (
    <div class="finding-box">
      <Table
        label="Findings"
        rows={findings.map((finding, index) => ({ ...finding, key: `${index} ${finding.name}` }))}
        rowKey={(finding) => finding.key}
        columns={[
          { title: 'Finding', phone: 'title', cell: (finding) => FINDINGS[finding.kind]?.title ?? finding.kind },
          { title: 'Place', cell: (finding) => <Tag>{finding.place}</Tag> },
          {
            title: 'Detail',
            cell: (finding) => (
              <>
                <bdi>{finding.detail}</bdi>
                <span class="cell-sub mono">{finding.file_id ?? finding.name}</span>
              </>
            ),
          },
        ]}
      />
      {more > 0 && <p class="panel-empty">{count(more)} more are in the report.</p>}
    </div>
  );
}

function download(report: FsckReport): void {
  const blob = new Blob([JSON.stringify(report, null, 2)], { type: 'application/json' });
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = `filestore-check-${report.started_at.slice(0, 10)}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const RATES = [
  { value: '', label: 'As fast as possible' },
  { value: String(50 << 20), label: '50 MiB/s' },
  { value: String(8 << 20), label: '8 MiB/s' },
  { value: String(1 << 20), label: '1 MiB/s' },
] as const;

function RunDialog({ onClose, onStarted }: { onClose: () => void; onStarted: () => Promise<void> }) {
  const status = useStatus();
  const [deep, setDeep] = useState<'shallow' | 'deep'>('shallow');
  const [rate, setRate] = useState<string>(String(50 << 20));
  const [provider, setProvider] = useState('');
  const [listed, setListed] = useState(false);
  const providers = status.data?.providers ?? [];
  const bytes = status.data?.bytes ?? 0;

  const start = async () => {
    const body = {
      deep: deep === 'deep',
      ...(deep === 'deep' && rate && { bytes_per_second: Number(rate) }),
      ...(provider && { provider_code: provider }),
    };
    forgetRun(RUN);
    if (listed) {
      startRun(RUN, async () => (await call('POST', '/admin/fsck/run', { body })).data as FsckReport);
      setTimeout(() => void onStarted(), 300);
    } else {
      await call('POST', '/admin/fsck/run', { body: { ...body, detach: true } });
      void onStarted();
    }
    onClose();
  };

  return (
    <FormDialog title="Check the store" verb="Check" cautious onClose={onClose} act={start}>
      <Radios
        legend="How"
        value={deep}
        onChange={setDeep}
        choices={[
          { value: 'shallow', label: 'Names and sizes', hint: 'Compares every record with what is stored. Takes minutes for a million files.' },
          {
            value: 'deep',
            label: 'Every byte',
            hint: `Reads everything and compares digests: ${size(bytes)} of ${counted(status.data?.files ?? 0, 'file')}. At providers, reads can cost money.`,
          },
        ]}
      />
      <SelectField
        label="Where"
        value={provider}
        onChange={setProvider}
        choices={[
          { value: '', label: 'Everywhere' },
          ...providers.map((one) => ({ value: one.provider_code, label: `Only ${one.provider_code}` })),
        ]}
      />
      {deep === 'deep' && (
        <SelectField
          label="Speed"
          value={rate}
          choices={RATES}
          onChange={setRate}
          hint={rate && bytes > 0 ? `At least ${duration((bytes / Number(rate)) * 1000)} for everything.` : undefined}
        />
      )}
      <Checkbox
        label="List each finding on this page"
        hint="The page must then stay open: the check stops with it. Otherwise the check goes on without the page, and only the number of findings is kept."
        checked={listed}
        onChange={setListed}
      />
      <p class="dialog-text">A check only reports. It changes nothing.</p>
    </FormDialog>
  );
}
