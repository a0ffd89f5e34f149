/** The newest events for a page: those of the log, and each further one when it happens. */

import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { call, isAbort, type LogEvent } from '../api/call';
import { onEnd } from '../session';
import { merge } from './deeds';
import { onEvent, onGap } from './events';

export interface Activity {
  events: LogEvent[] | undefined;
  error: unknown;
  loading: boolean;
  /** Whether older events may follow. */
  more: boolean;
  loadOlder: () => Promise<void>;
  reload: () => void;
}

/** Reads the newest events, of one organization or of all, and stays up to date by the stream. */
export function useActivity(organization: string | null, limit: number, types?: string): Activity {
  const [state, setState] = useState<{ of: string; events: LogEvent[] | undefined; next: string; more: boolean; error: unknown }>({
    of: '',
    events: undefined,
    next: 'end',
    more: false,
    error: null,
  });
  const [loading, setLoading] = useState(true);
  const [attempt, setAttempt] = useState(0);
  const of = `${organization ?? '*'} ${types ?? ''}`;

  const read = async (before: string, abort?: AbortSignal) => {
    const query = {
      order: 'desc' as const,
      before,
      limit,
      ...(types && { types }),
      ...(organization !== null && { organization_id: organization }),
    };
    return (await call('GET', '/events', { query, ...(abort && { signal: abort }) })).data;
  };

  useEffect(() => {
    const controller = new AbortController();
    const early: LogEvent[] = [];
    const isMine = (event: LogEvent) =>
      (organization === null || event.data.organization_id === organization) && (!types || fits(event.type, types));
    const stop = onEvent((event) => {
      if (!isMine(event)) return;
      early.push(event);
      setState((now) => (now.of === of && now.events ? { ...now, events: merge([event], now.events) } : now));
    });
    const stopGap = onGap((isStart) => !isStart && setAttempt((n) => n + 1));
    setLoading(true);
    read('end', controller.signal)
      .then((page) => setState({ of, events: merge(early, page.events), next: page.next, more: page.more, error: null }))
      .catch((error: unknown) => {
        if (!isAbort(error)) setState({ of, events: undefined, next: 'end', more: false, error });
      })
      .finally(() => setLoading(false));
    return () => {
      controller.abort();
      stop();
      stopGap();
    };
  }, [of, limit, attempt]);

  const current = state.of === of ? state : { ...state, events: undefined, error: null, more: false };
  return {
    events: current.events,
    error: current.error,
    loading,
    more: current.more,
    reload: () => setAttempt((n) => n + 1),
    loadOlder: async () => {
      // A page can be empty although more follow: the server looks at a limited number of events.
      let before = state.next;
      for (let pages = 0; pages < 20; pages += 1) {
        const page = await read(before);
        before = page.next;
        if (page.events.length > 0 || !page.more) {
          setState((now) =>
            now.of === of
              ? { ...now, events: [...(now.events ?? []), ...page.events], next: page.next, more: page.more }
              : now,
          );
          return;
        }
      }
      setState((now) => ({ ...now, next: before }));
    },
  };
}

function fits(type: string, types: string): boolean {
  return types.split(',').some((one) => (one.endsWith('*') ? type.startsWith(one.slice(0, -1)) : one === type));
}

/** Names of files, as far as they were asked for. Null: not there, or not readable. */
const names = signal<ReadonlyMap<string, string | null>>(new Map());
const asked = new Set<string>();
onEnd(() => {
  names.value = new Map();
  asked.clear();
});

/** The name of a file, if it is known. Asks for it once: events do not carry names. */
export function nameOf(id: string): string | null | undefined {
  return names.value.get(id);
}

/** Asks for the names of files that are drawn, at most 100 in one request. */
export function askNames(ids: readonly string[]): void {
  if (asked.size > 2000) forget();
  const fresh = ids.filter((id) => !asked.has(id));
  for (const id of fresh) asked.add(id);
  for (let at = 0; at < fresh.length; at += 100) void readNames(fresh.slice(at, at + 100));
}

async function readNames(ids: readonly string[]): Promise<void> {
  const found = new Map<string, string | null>(ids.map((id) => [id, null]));
  try {
    // Records of unknown files, and of those that the key may not read, are absent.
    const { data } = await call('GET', '/files', { query: { ids: ids.join(',') } });
    for (const record of data.items) if (found.has(record.file_id)) found.set(record.file_id, record.original_name);
  } catch (error) {
    if (isAbort(error)) {
      for (const id of ids) asked.delete(id);
      return;
    }
  }
  names.value = new Map([...names.peek(), ...found]);
}

function forget(): void {
  asked.clear();
  names.value = new Map();
}

onEvent((event) => {
  const id = event.data.file_id;
  if (id && (event.type === 'file.edited' || event.type === 'file.replaced')) {
    asked.delete(id);
    askNames([id]);
  }
});
