/** What the overview, the list of providers and the page of one provider share. */

import { useEffect, useState } from 'preact/hooks';
import { call, isAbort, type AdminProvider, type ProviderCheckReport } from '../../api/call';
import { Button } from '../../parts/controls/button';
import { Dialog } from '../../parts/dialog';
import { ErrorBox } from '../../parts/notes/error';
import { Late } from '../../parts/notes/loading';
import { Name } from '../../parts/values/name';
import { Notice } from '../../parts/notes/notice';
import { State, type StateKind } from '../../parts/notes/state';
import { clock, day, short } from '../../text/times';
import { serverNow } from '../../api/call';

/** The state of a provider: a shape, a word, and since when it is not the normal one. */
export function ProviderState({ provider }: { provider: AdminProvider }) {
  const { kind, word } = stateWord(provider);
  const note = kind === 'ok' || provider.state_since === null ? null : <>since {sinceWords(provider.state_since)}</>;
  return (
    <State kind={kind} note={note}>
      {word}
    </State>
  );
}

export function stateWord(provider: AdminProvider): { kind: StateKind; word: string } {
  if (!provider.is_configured) return { kind: 'bad', word: 'Not configured' };
  if (provider.state === 'open') return { kind: 'bad', word: 'Down' };
  if (provider.state === 'half_open') return { kind: 'busy', word: 'On trial' };
  if (!provider.is_active) return { kind: 'off', word: 'Inactive' };
  return { kind: 'ok', word: 'Answers' };
}

/** An instant as time of day, if it is of today, else with the day. */
export function sinceWords(time: string): string {
  return serverNow() - Date.parse(time) < 12 * 3_600_000 ? clock(time) : day(time);
}

export function isDown(provider: AdminProvider): boolean {
  return provider.state === 'open' || provider.state === 'half_open' || !provider.is_configured;
}

export function age(secs: number | null): string {
  return secs === null ? '–' : short(secs * 1000);
}

/** Runs the check of a provider and shows each step. */
export function CheckDialog({ code, onClose }: { code: string; onClose: () => void }) {
  return (
    <Dialog
      title={`Check of ${code}`}
      wide
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <ProviderCheck code={code} />
    </Dialog>
  );
}

/** The check: it writes, reads and deletes two objects of its own, and reports each step. */
export function ProviderCheck({ code, onResult }: { code: string; onResult?: (report: ProviderCheckReport) => void }) {
  const [report, setReport] = useState<ProviderCheckReport | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [attempt, setAttempt] = useState(0);

  useEffect(() => {
    const controller = new AbortController();
    setReport(null);
    setError(null);
    call('POST', '/admin/providers/{code}/check', { path: { code }, body: {}, signal: controller.signal })
      .then(({ data }) => {
        setReport(data);
        onResult?.(data);
      })
      .catch((reason: unknown) => !isAbort(reason) && setError(reason));
    return () => controller.abort();
  }, [code, attempt]);

  if (error !== null) return <ErrorBox error={error} what="Check" onRetry={() => setAttempt(attempt + 1)} />;
  if (!report) {
    return (
      <div role="status" class="check-waits">
        <Late>
          <State kind="busy">Writes, reads and deletes two small objects. A provider that does not answer takes up to a minute.</State>
        </Late>
      </div>
    );
  }
  return (
    <div class="stack tight" role="status">
      <Notice kind={report.can_serve ? 'ok' : 'bad'} title={report.can_serve ? `${code} can serve` : `${code} cannot serve`} />
      <Steps report={report} />
      <div>
        <Button size="small" icon="rotate-cw" onClick={() => setAttempt(attempt + 1)}>
          Check again
        </Button>
      </div>
    </div>
  );
}

const OUTCOME: Record<string, { kind: StateKind; word: string }> = {
  ok: { kind: 'ok', word: 'ok' },
  cannot: { kind: 'warn', word: 'not offered' },
  failed: { kind: 'bad', word: 'failed' },
  skipped: { kind: 'off', word: 'skipped' },
};

function Steps({ report }: { report: ProviderCheckReport }) {
  return (
    <ol class="check-steps">
      {report.steps.map((step) => {
        const outcome = OUTCOME[step.outcome] ?? { kind: 'wait' as const, word: step.outcome };
        return (
          <li key={step.name}>
            <State kind={outcome.kind}>{outcome.word}</State>
            <span class="step-name">{step.name}</span>
            <span class="step-detail">
              <Name name={step.detail} whole />
            </span>
          </li>
        );
      })}
    </ol>
  );
}
