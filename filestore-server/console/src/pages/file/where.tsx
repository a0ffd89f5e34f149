// Where the bytes of a file are, why, and what comes next: as the server explains it.
import { useEffect, useState } from 'preact/hooks';
import { call, isAbort, type ExplainedFact, type ExplainedStep, type Explanation, type FileRecord } from '../../api/call';
import { ErrorLine } from '../../parts/notes/error';
import { Icon } from '../../parts/icon';
import { Time } from '../../parts/values/time';
import { left } from '../../data/state';
import { duration } from '../../text/times';

const sentence = (text: string): string => `${text[0]?.toUpperCase() ?? ''}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
const placeOf = (fact: ExplainedFact): string => fact.provider ?? (fact.code === 'data_directory' || fact.code === 'backend' ? 'LOCAL' : fact.code);

export function Where({ record }: { record: FileRecord }) {
  const [told, setTold] = useState<Explanation | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const end = new AbortController();
    call('GET', '/files/{file_id}/explain', { path: { file_id: record.file_id }, signal: end.signal })
      .then(({ data }) => (setTold(data), setError(null)), (problem: unknown) => !isAbort(problem) && setError(problem));
    return () => end.abort(new DOMException('another file is shown', 'AbortError'));
  }, [record.file_id, record.version, record.sync_status, record.storage_provider, record.status, record.purge_status]);
  if (error !== null) return <ErrorLine error={error} />;
  if (told === null) return <div class="where-chips"><PlaceChip name={record.storage_provider} here /></div>;
  const step = told.next[0];
  const moves = step && ['copy', 'copying', 'move', 'retry_by_hand'].includes(step.code) ? step : null;
  const here = told.where[0] ? placeOf(told.where[0]) : record.storage_provider;
  const others = told.where.slice(1).filter((fact) => !['removed', 'awaited'].includes(fact.code));
  return (
    <>
      <div class="where-chips">
        <PlaceChip name={here} here />
        {moves?.provider && <><Icon name="arrow-right" size={14} /><PlaceChip name={moves.provider} here={false} /></>}
        {moves && <span class="where-note">{moves.code === 'copying' ? 'copying' : moves.code === 'retry_by_hand' ? 'copy failed' : 'waits'}</span>}
      </div>
      {others.map((fact, at) => <p key={at} class="where-line">{fact.code === 'replaced' ? `An older copy at ${placeOf(fact)} waits to be removed.` : sentence(fact.sentence)}</p>)}
      {told.why.slice(0, 1).map((fact, at) => <p key={at} class="where-line">{sentence(fact.sentence)}</p>)}
      <details class="where-more">
        <summary>What comes next</summary>
        {told.why.slice(1).map((fact, at) => <p key={at}>{sentence(fact.sentence)}</p>)}
        {told.next.map((one, at) => <Step key={at} step={one} />)}
        {told.tried.length > 0 && <p class="where-tried">Tried before:</p>}
        {told.tried.map((fact, at) => <p key={at}><Fact fact={fact} /></p>)}
      </details>
    </>
  );
}

function PlaceChip({ name, here }: { name: string; here: boolean }) {
  const local = name === 'LOCAL';
  return <span class={`place ${here ? 'here' : ''}`}><Icon name={local ? 'hard-drive' : here ? 'cloud-check' : 'cloud'} size={14} />{name}</span>;
}

function Fact({ fact }: { fact: ExplainedFact }) {
  return <>{sentence(fact.sentence)}{fact.since && <> Since <Time at={fact.since} />.</>}{fact.until && <> Until <Time at={fact.until} absolute />.</>}{fact.error && <code class="where-error"><bdi>{fact.error}</bdi></code>}</>;
}

function Step({ step }: { step: ExplainedStep }) {
  const wait = step.not_before ? left(step.not_before) : null;
  return (
    <div class="where-step">
      <p>{sentence(step.sentence)}{wait !== null && ` In ${duration(wait)} at the earliest.`}{step.attempt && step.max_attempts ? ` Attempt ${step.attempt} of ${step.max_attempts}.` : ''}</p>
      {step.waits_for.map((fact, at) => <p key={at} class="quiet-text">It waits: <Fact fact={fact} /></p>)}
      {step.then.map((fact, at) => <p key={at} class="quiet-text">Then: <Fact fact={fact} /></p>)}
    </div>
  );
}
