// Moves files into the trash and back, 1,000 ids a request. Says what it did, and what not and why.
import { signal } from '@preact/signals';
import { call, isAbort, serverNow, type FileRecord } from '../api/call';
import { me, onEnd } from '../session';

export interface Refusal {
  record: FileRecord;
  detail: string;
  code: string;
}

export interface Run {
  verb: 'trash' | 'restore';
  total: number;
  done: number;
  stop: () => void;
}

export interface Outcome {
  done: FileRecord[];
  refused: Refusal[];
  /** Set if the run ended early: stopped by hand, or by an error. */
  error: unknown;
}

/** The run under way, for its progress. */
export const bulk = signal<Run | null>(null);
/** What the last run could not do. */
export const refusals = signal<Refusal[]>([]);

/**
 * When this page last changed a file, by the server's clock. Events of thousands of files lag behind the replies, and an
 * older one says nothing about the file any more.
 */
const changedAt = new Map<string, { at: number; verb: Run['verb'] }>();
/** The page knows the server's clock to a second or so. */
const CLOCK_MS = 2_000;

/** What to do with an event: act on it, ignore it, or ask for the record, if the clocks do not tell what was first. */
export function judge(id: string, type: string, timestamp: string): 'act' | 'ask' | 'ignore' {
  const change = changedAt.get(id);
  if (!change) return 'act';
  const later = Date.parse(timestamp) - change.at;
  if (later < -CLOCK_MS) return 'ignore';
  return later < CLOCK_MS && type === { trash: 'file.restored', restore: 'file.deleted' }[change.verb] ? 'ask' : 'act';
}

const verbs = {
  trash: async (ids: string[], signal: AbortSignal) => {
    const { data } = await call('POST', '/files/delete', { body: { ids }, signal });
    return data.results.map((one) => ({ id: one.id, done: one.deleted, error: one.error }));
  },
  restore: async (ids: string[], signal: AbortSignal) => {
    const { data } = await call('POST', '/files/restore', { body: { ids }, signal });
    return data.results.map((one) => ({ id: one.id, done: one.restored, error: one.error }));
  },
};

/** Does it for all records. `each` hears of every part that the server has acknowledged. */
export async function runBulk(
  verb: Run['verb'],
  records: readonly FileRecord[],
  each: (done: FileRecord[]) => void,
): Promise<Outcome> {
  const end = new AbortController();
  const step = Math.min(me.peek()?.limits.max_ids ?? 1000, 1000);
  const outcome: Outcome = { done: [], refused: [], error: null };
  const byId = new Map(records.map((one) => [one.file_id, one]));
  bulk.value = { verb, total: records.length, done: 0, stop: () => end.abort(new DOMException('stopped', 'AbortError')) };
  refusals.value = [];
  try {
    for (let from = 0; from < records.length && !end.signal.aborted; from += step) {
      const part = records.slice(from, from + step).map((one) => one.file_id);
      const sent = serverNow();
      const results = await verbs[verb](part, end.signal);
      if (changedAt.size > 50_000) changedAt.clear();
      const done: FileRecord[] = [];
      for (const result of results) {
        const record = byId.get(result.id);
        if (!record) continue;
        if (result.done || result.error === null) {
          done.push(record);
          changedAt.set(result.id, { at: sent, verb });
        } else outcome.refused.push({ record, detail: result.error.detail, code: result.error.code });
      }
      outcome.done.push(...done);
      each(done);
      if (bulk.peek()) bulk.value = { ...bulk.peek()!, done: from + part.length };
    }
  } catch (error) {
    outcome.error = isAbort(error) ? null : error;
  } finally {
    bulk.value = null;
    refusals.value = outcome.refused;
  }
  return outcome;
}

onEnd(() => {
  bulk.peek()?.stop();
  refusals.value = [];
  changedAt.clear();
});
