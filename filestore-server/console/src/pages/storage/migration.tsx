/** Files from before the binding: how many, the plan, the move with progress, and its result. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { call, type MigratePlan, type MigrateStatus } from '../../api/call';
import { useLoad } from '../../data/load';
import { useRate } from '../../data/rate';
import { TwoToneBar } from '../../parts/bar';
import { Button } from '../../parts/controls/button';
import { FormDialog } from '../../parts/dialog';
import { SelectField } from '../../parts/controls/field';
import { Shown } from '../../parts/notes/loaded';
import { Notice } from '../../parts/notes/notice';
import { Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { Count } from '../../parts/values/size';
import { State } from '../../parts/notes/state';
import { counted, size } from '../../text/sizes';
import { duration } from '../../text/times';
import { stopMigration } from '../store/overview';
import { numberOf, type Stored } from './storage';

export function MigrationPanel({ organization, stored, reload }: { organization: string; stored: Stored; reload: () => Promise<void> }) {
  const number = numberOf(organization);
  const to = stored.bindings?.find((binding) => binding.isActive)?.storageProvider ?? 'LOCAL';
  return number === null ? null : <Migration key={`${organization} ${to}`} number={number} to={to} reload={reload} />;
}

type Moved = NonNullable<MigrateStatus['running']>;

interface Moving {
  plan: MigratePlan;
  running: Moved | null;
}

function Migration({ number, to, reload }: { number: number; to: string; reload: () => Promise<void> }) {
  const moving = useLoad<Moving>(
    `migrate ${number} ${to}`,
    async (signal) => {
      const [plan, status] = await Promise.all([
        call('GET', '/admin/migrate/plan', { query: { organizationId: number, to }, signal }),
        call('GET', '/admin/migrate/status', { query: { organizationId: number }, signal }),
      ]);
      return { plan: plan.data, running: status.data.running };
    },
    (data) => (data?.running ? 1_000 : 10_000),
  );
  const [open, setOpen] = useState(false);
  const [ended, setEnded] = useState(false);
  const wasRunning = useRef(false);
  const running = moving.data?.running ?? null;
  const rate = useRate(running ? running.bytes : null);
  useEffect(() => {
    if (!moving.data) return;
    if (running) setEnded(false);
    else if (wasRunning.current) {
      // The plan may have been counted before the last file was moved.
      setEnded(true);
      void moving.reload();
      void reload();
    }
    wasRunning.current = running !== null;
  }, [moving.data]);

  // Nothing is elsewhere and nothing was moved: there is nothing to say.
  if (moving.data && moving.data.plan.move_files === 0 && !running && !ended && to === 'LOCAL') return null;

  const start = async (bytesPerSecond: number | null) => {
    const body = { organizationId: number, to, detach: true, ...(bytesPerSecond !== null && { bytes_per_second: bytesPerSecond }) };
    await call('POST', '/admin/migrate/run', { body });
    setOpen(false);
    wasRunning.current = true;
    await moving.reload();
  };

  return (
    <Panel title="Move the files from before" action={running && <State kind="busy">under way</State>}>
      <Shown of={moving} rows={2} what="Migration">
        {({ plan }) => (
          <div class="stack tight">
            {ended && <Ended plan={plan} onClose={() => setEnded(false)} />}
            {running ? (
              <Progress plan={plan} running={running} rate={rate} onStop={() => stopMigration(String(number), moving.reload)} />
            ) : plan.move_files > 0 ? (
              <Rest plan={plan} onMove={() => setOpen(true)} />
            ) : !ended && (
              <State kind="ok">
                {there(plan)}
              </State>
            )}
          </div>
        )}
      </Shown>
      {open && moving.data && <PlanDialog plan={moving.data.plan} onClose={() => setOpen(false)} onStart={start} />}
    </Panel>
  );
}

const there = ({ there_files: files, to }: MigratePlan): string =>
  files === 0 ? `No file waits to be moved to ${to}` : files === 1 ? `The ready file is at ${to}` : `All ${counted(files, 'ready file')} are at ${to}`;

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

function PlanDialog({ plan, onClose, onStart }: { plan: MigratePlan; onClose: () => void; onStart: (rate: number | null) => Promise<void> }) {
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
      <p class="dialog-text">
        The server moves the files, also when this page is closed. They are served while they move, and nothing is lost if you stop.
      </p>
    </FormDialog>
  );
}

function Progress({ plan, running, rate, onStop }: { plan: MigratePlan; running: Moved; rate: number | null; onStop: () => Promise<void> }) {
  // Until the run has counted, the total is what was moved and what is left.
  const files = Math.max(running.planned_files ?? running.files + plan.move_files, running.files);
  const bytes = Math.max(running.planned_bytes ?? running.bytes + plan.move_bytes, running.bytes);
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
        {size(running.bytes)} of {size(bytes)}. The move goes on when this page is closed. Files are served meanwhile, and nothing is lost if you stop.
      </p>
      <div>
        <Button size="small" icon="square" onClick={onStop}>
          Stop
        </Button>
      </div>
    </>
  );
}

/** The run has ended. The server keeps no report of it: what is left is counted anew. */
function Ended({ plan, onClose }: { plan: MigratePlan; onClose: () => void }) {
  const left = plan.move_files;
  return (
    <Notice kind={left > 0 ? 'warn' : 'ok'} title={left > 0 ? 'The move ended, and some files are left' : `The move to ${plan.to} has ended`} onClose={onClose}>
      {left === 0 && <p>{there(plan)}.</p>}
      {left > 0 && <p>It was stopped, or these files could not be moved: the log of the server names each with the reason. Move again to retry.</p>}
    </Notice>
  );
}
