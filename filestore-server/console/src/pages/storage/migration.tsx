/** Files from before the binding: how many, the plan, the move with progress, and its result. */

import { useState } from 'preact/hooks';
import { call, type MigratePlan, type MigrateReport } from '../../api/call';
import { useLoad } from '../../data/load';
import { useRate } from '../../data/rate';
import { forgetRun, runOf, startRun } from '../../data/runs';
import { TwoToneBar } from '../../parts/bar';
import { Button } from '../../parts/button';
import { FormDialog } from '../../parts/dialog';
import { ErrorBox } from '../../parts/error';
import { SelectField } from '../../parts/field';
import { Shown } from '../../parts/loaded';
import { Notice } from '../../parts/notice';
import { Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { Count } from '../../parts/size';
import { State } from '../../parts/state';
import { counted, size } from '../../text/sizes';
import { duration } from '../../text/times';
import { stopMigration } from '../store/overview';
import { numberOf, type Stored } from './storage';

export function MigrationPanel({ organization, stored, reload }: { organization: string; stored: Stored; reload: () => Promise<void> }) {
  const number = numberOf(organization);
  const to = stored.bindings?.find((binding) => binding.isActive)?.storageProvider ?? 'LOCAL';
  return number === null ? null : <Migration key={`${organization} ${to}`} number={number} to={to} reload={reload} />;
}

interface Moving {
  plan: MigratePlan;
  running: Moved | null;
}

interface Moved {
  files: number;
  bytes: number;
  to: string;
  /** What the run found to move at its start. Null for a moment. */
  planned_files?: number | null;
  planned_bytes?: number | null;
}

function Migration({ number, to, reload }: { number: number; to: string; reload: () => Promise<void> }) {
  const name = `migrate ${number}`;
  const run = runOf<MigrateReport>(name);
  const isOurs = run?.state === 'running';
  const moving = useLoad<Moving>(
    `migrate ${number} ${to}`,
    async (signal) => {
      const [plan, status] = await Promise.all([
        call('GET', '/admin/migrate/plan', { query: { organizationId: number, to }, signal }),
        call('GET', '/admin/migrate/status', { query: { organizationId: number }, signal }),
      ]);
      return { plan: plan.data, running: status.data.running };
    },
    (data) => (data?.running || isOurs ? 1_000 : 10_000),
  );
  const [open, setOpen] = useState(false);
  const running = moving.data?.running ?? null;
  const rate = useRate(running ? running.bytes : null);

  // Nothing is elsewhere and nothing was moved: there is nothing to say.
  if (moving.data && moving.data.plan.move_files === 0 && !running && !run && to === 'LOCAL') return null;

  const start = (bytesPerSecond: number | null) => {
    setOpen(false);
    startRun(
      name,
      async () => {
        const body = { organizationId: number, to, ...(bytesPerSecond !== null && { bytes_per_second: bytesPerSecond }) };
        const { data } = await call('POST', '/admin/migrate/run', { body });
        void reload();
        return data;
      },
      moving.data?.plan,
    );
    setTimeout(() => void moving.reload(), 300);
  };

  return (
    <Panel title="Move the files from before" action={running && <State kind="busy">under way</State>}>
      <Shown of={moving} rows={2} what="Migration">
        {({ plan }) => (
          <div class="stack tight">
            {run?.state === 'done' && run.result && <Result report={run.result} to={to} onClose={() => forgetRun(name)} />}
            {run?.state === 'failed' && <ErrorBox error={run.error} what="The move" />}
            {running || isOurs ? (
              <Progress
                plan={plan}
                first={isOurs ? (run.plan as MigratePlan | undefined) : undefined}
                running={running ?? { files: 0, bytes: 0, to }}
                rate={rate}
                isOurs={isOurs}
                onStop={() => stopMigration(String(number), moving.reload)}
              />
            ) : plan.move_files > 0 ? (
              <Rest plan={plan} onMove={() => setOpen(true)} />
            ) : (
              <State kind="ok">
                {plan.there_files > 0 ? `All ${counted(plan.there_files, 'ready file')} are at ${to}` : `No file waits to be moved to ${to}`}
              </State>
            )}
          </div>
        )}
      </Shown>
      {open && moving.data && <PlanDialog plan={moving.data.plan} onClose={() => setOpen(false)} onStart={start} />}
    </Panel>
  );
}

function Rest({ plan, onMove }: { plan: MigratePlan; onMove: () => void }) {
  const from = [...new Set(plan.from.map((holding) => holding.provider_code))].join(', ');
  return (
    <>
      <p>
        <span class="figure-m">
          <Count value={plan.move_files} />
        </span>{' '}
        <span class="use-note">
          {plan.move_files === 1 ? 'file' : 'files'} of {size(plan.move_bytes)} {plan.move_files === 1 ? 'is' : 'are'} at {from}, and not at {plan.to}
        </span>
      </p>
      {plan.refused && (
        <Notice kind="warn">
          <p>{plan.refused}</p>
        </Notice>
      )}
      <div>
        <Button size="small" icon="move-right" disabled={Boolean(plan.refused)} onClick={onMove}>
          Move to {plan.to}…
        </Button>
      </div>
    </>
  );
}

const RATES = [
  { value: '', label: 'As fast as possible' },
  { value: String(100 << 20), label: '100 MiB/s' },
  { value: String(20 << 20), label: '20 MiB/s' },
  { value: String(5 << 20), label: '5 MiB/s' },
  { value: String(1 << 20), label: '1 MiB/s' },
] as const;

function PlanDialog({ plan, onClose, onStart }: { plan: MigratePlan; onClose: () => void; onStart: (rate: number | null) => void }) {
  const [rate, setRate] = useState<string>('');
  return (
    <FormDialog
      title={`Move ${counted(plan.move_files, 'file')} to ${plan.to}`}
      verb="Move"
      cautious
      onClose={onClose}
      act={() => onStart(rate ? Number(rate) : null)}
    >
      <Pairs
        rows={[
          ['To move', `${counted(plan.move_files, 'file')}, ${size(plan.move_bytes)}`],
          ...plan.from.map(
            (holding) =>
              [
                `from ${holding.provider_code}`,
                `${counted(holding.files, 'file')}, ${size(holding.bytes)}${holding.available ? '' : ' (not configured)'}`,
              ] as const,
          ),
          ['Already there', `${counted(plan.there_files, 'file')}, ${size(plan.there_bytes)}`],
          plan.stay_files > 0 && ['Stay on the server', `${counted(plan.stay_files, 'file')} (temporary and thumbnails), ${size(plan.stay_bytes)}`],
          rate !== '' && ['At least', duration((plan.move_bytes / Number(rate)) * 1000)],
        ]}
      />
      <SelectField label="Speed" value={rate} choices={RATES} onChange={setRate} hint="A limit leaves room on the line for your users." />
      <Notice kind="warn">
        <p>
          <strong>This page must stay open.</strong> The move stops when the tab is closed. You can then start it again, and it continues with the
          rest. For a long move, use the command line.
        </p>
      </Notice>
      <p class="dialog-text">Files are served while they move. Nothing is lost if you stop.</p>
    </FormDialog>
  );
}

function Progress({
  plan,
  first,
  running,
  rate,
  isOurs,
  onStop,
}: {
  plan: MigratePlan;
  first: MigratePlan | undefined;
  running: Moved;
  rate: number | null;
  isOurs: boolean;
  onStop: () => Promise<void>;
}) {
  // Until the run has counted, the total is what was moved and what is left.
  const files = Math.max(running.planned_files ?? first?.move_files ?? running.files + plan.move_files, running.files);
  const bytes = Math.max(running.planned_bytes ?? first?.move_bytes ?? running.bytes + plan.move_bytes, running.bytes);
  const left = rate && rate > 0 ? ((bytes - running.bytes) / rate) * 1000 : null;
  return (
    <>
      <p class="spread">
        <span>
          <span class="figure-m">
            <Count value={running.files} />
          </span>{' '}
          <span class="use-note">
            of {counted(files, 'file')} moved to {running.to}
          </span>
        </span>
        <span class="use-note number">
          {rate !== null && `${size(Math.round(rate))}/s`}
          {left !== null && `, ${duration(left)} left`}
        </span>
      </p>
      <TwoToneBar label="Move" text={`${size(running.bytes)} of ${size(bytes)} moved`} done={running.bytes} total={bytes} />
      <p class="quiet-text">
        {size(running.bytes)} of {size(bytes)}. Files are served while they move. Nothing is lost if you stop.
        {isOurs ? ' This page must stay open: the move stops when the tab is closed.' : ' It was started elsewhere.'}
      </p>
      <div>
        <Button size="small" icon="square" onClick={onStop}>
          Stop
        </Button>
      </div>
    </>
  );
}

function Result({ report, to, onClose }: { report: MigrateReport; to: string; onClose: () => void }) {
  const clean = report.failed === 0 && report.left_files === 0;
  return (
    <Notice
      kind={clean ? 'ok' : report.stopped && report.failed === 0 ? 'info' : 'warn'}
      title={`${counted(report.moved_files, 'file')} of ${size(report.moved_bytes)} moved to ${to}${report.stopped ? ', then stopped' : ''}`}
      onClose={onClose}
    >
      {report.left_files > 0 && (
        <p>
          {counted(report.left_files, 'file')} of {size(report.left_bytes)} {report.left_files === 1 ? 'is' : 'are'} still elsewhere.
        </p>
      )}
      {report.failed > 0 && (
        <>
          <p>{counted(report.failed, 'file')} could not be moved. Start the move again to retry.</p>
          <ul class="failures">
            {report.failures.slice(0, 5).map((failure) => (
              <li key={failure.file_id}>
                <code>{failure.file_id}</code> <bdi>{failure.error}</bdi>
              </li>
            ))}
          </ul>
        </>
      )}
    </Notice>
  );
}
