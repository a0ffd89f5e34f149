// What happened to a file, from the log of events: newest first, as far back as the log is kept.
import { useEffect, useState } from 'preact/hooks';
import { call, isAbort, Problem, type EventPage, type FileRecord, type LogEvent } from '../../api/call';
import { onEvent } from '../../data/events';
import { Button } from '../../parts/controls/button';
import { ErrorLine } from '../../parts/notes/error';
import { Time } from '../../parts/values/time';
import { Timeline, type Moment } from '../../parts/timeline';
import { count } from '../../text/sizes';

const WORDS: Record<string, (event: LogEvent) => [title: string, tone: Moment['tone']]> = {
  'file.uploaded': () => ['Uploaded', 'plain'],
  'file.put_back': () => ['Put back from a snapshot', 'ok'],
  'file.thumbnail': () => ['Became a thumbnail', 'plain'],
  'file.ready': () => ['Made permanent', 'plain'],
  'file.replaced': ({ data }) => [`Replaced, version ${data.version ?? ''}`, 'plain'],
  'file.edited': ({ data }) => [`${changed(data.changed ?? [])} edited`, 'plain'],
  'file.deleted': ({ data }) => [`Moved to the trash${data.by ? ` by ${BY[data.by] ?? data.by}` : ''}`, 'warn'],
  'file.expired': () => ['Expired', 'warn'],
  'file.restored': () => ['Restored', 'ok'],
  'file.purged': () => ['Removed for good', 'bad'],
  'file.synced': ({ data }) => [`Copied to ${data.to ?? 'its provider'}`, 'ok'],
  'file.migrated': ({ data }) => [`Moved to ${data.to ?? 'another provider'}`, 'ok'],
  'file.sync_failed': ({ data }) => [`Copy failed after ${count(data.attempts ?? 0)} attempts`, 'bad'],
  'file.damaged': ({ data }) => [data.ok ? 'Damage found and repaired' : 'Damage found', 'bad'],
};
const BY: Record<string, string> = {
  key: 'a key', open_mode: 'a caller without a key', admin_socket: 'an administrator', library: 'the application', expiry: 'its end', erasure: 'an erasure',
};

function changed(fields: string[]): string {
  const words = fields.map((one) => ({ name: 'Name', type: 'Type', metadata: 'Metadata' })[one] ?? one);
  return words.map((word, at) => (at === 0 ? word : word.toLowerCase())).join(' and ');
}

/** Most events that are looked through before the visitor is asked. */
const STEP = 5;

export function History({ record }: { record: FileRecord }) {
  const [events, setEvents] = useState<LogEvent[]>([]);
  const [rest, setRest] = useState<string | null>('end');
  const [back, setBack] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);

  async function look(from: string, signal?: AbortSignal): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      let before: string | null = from;
      for (let step = 0; step < STEP && before !== null; step += 1) {
        const query: Record<string, string | number> = { order: 'desc', before, limit: 1000, organization_id: record.organization_id, types: 'file.*' };
        const { data }: { data: EventPage } = await call('GET', '/events', { query: query, ...(signal ? { signal } : {}) });
        const mine = data.events.filter((one) => one.data.file_id === record.file_id);
        setEvents((known) => [...known, ...mine.filter((one) => !known.some((other) => other.id === one.id))]);
        const last = data.events[data.events.length - 1];
        if (last) setBack(last.timestamp);
        const born = mine.some((one) => one.type === 'file.uploaded') || (last !== undefined && last.timestamp < record.created_at);
        before = born || !data.more ? null : data.next;
      }
      setRest(before);
    } catch (problem) {
      if (!isAbort(problem)) setError(problem);
    } finally {
      setBusy(false);
    }
  }

  useEffect(() => {
    const end = new AbortController();
    setEvents([]);
    setRest('end');
    void look('end', end.signal);
    const stop = onEvent((event) => {
      if (event.data.file_id === record.file_id) setEvents((known) => known.some((one) => one.id === event.id) ? known : [event, ...known]);
    });
    return () => {
      stop();
      end.abort(new DOMException('another file is shown', 'AbortError'));
    };
  }, [record.file_id]);

  const moments: Moment[] = events.map((event) => {
    const [title, tone] = WORDS[event.type]?.(event) ?? [event.type, 'plain' as const];
    return { id: event.id, title, tone: tone ?? 'plain', at: <Time at={event.timestamp} absolute /> };
  });
  const off = error instanceof Problem && error.code === 'events_off';
  return (
    <>
      {moments.length > 0 && <Timeline moments={moments} label="History" />}
      {off && <p class="quiet-text">Events are switched off on this server, so there is no history.</p>}
      {error !== null && !off && <ErrorLine error={error} />}
      {moments.length === 0 && !busy && error === null && rest === null && <p class="quiet-text">The log of events no longer reaches back to this file.</p>}
      {rest !== null && rest !== 'end' && !busy && (
        <p class="quiet-text history-more">
          {back !== null && <>Looked back to <Time at={back} absolute />. </>}
          <Button size="small" onClick={() => look(rest)}>Look further</Button>
        </p>
      )}
    </>
  );
}
