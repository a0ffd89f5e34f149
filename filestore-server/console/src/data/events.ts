// One stream of events for the page: of the organization that is shown, or of the store on the store's pages. It is
// closed while nobody looks, and goes on where it was.
import { computed, effect, signal } from '@preact/signals';
import { follow } from 'filestore-client';
import { isAbort, Problem, server, type LogEvent } from '../api/call';
import { route } from '../router';
import { administers, may, me } from '../session';

type Listener = (event: LogEvent) => void;
const listeners = new Set<Listener>();
const gaps = new Set<(isStart: boolean) => void>();

/** Whether events arrive at the moment. */
export const live = signal(false);
/** Why no events come, if they cannot: switched off, or not allowed. */
export const silentBecause = signal<Problem | null>(null);

/** Hears each event. Returns how to stop. */
export function onEvent(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Hears that events may have been missed, so that records must be read again: at the start, only the newest. */
export function onGap(listener: (isStart: boolean) => void): () => void {
  gaps.add(listener);
  return () => gaps.delete(listener);
}

const visible = signal(document.visibilityState === 'visible');
document.addEventListener('visibilitychange', () => (visible.value = document.visibilityState === 'visible'));

/** The organization to follow, `*` for all, or null for none. */
const scope = computed<string | null>(() => {
  if (!me.value || !may('read')) return null;
  return route.value.params['org'] ?? (administers.value ? '*' : null);
});

let places = new Map<string, string>();

async function run(of: string, signal: AbortSignal): Promise<void> {
  for (let after = places.get(of) ?? 'end'; !signal.aborted; after = 'end') {
    try {
      const events = follow(server, {
        after,
        ...(of === '*' ? {} : { organization_id: of }),
        signal,
        onPlace: (id) => {
          // What happened between the first listing and now was in neither.
          if (after === 'end' && !places.has(of)) for (const gap of gaps) gap(true);
          places.set(of, id);
        },
        onConnected: (isConnected) => (live.value = isConnected && !signal.aborted),
      });
      for await (const event of events) {
        for (const listener of listeners) listener(event);
      }
      return;
    } catch (error) {
      if (isAbort(error) || signal.aborted) return;
      if (!(error instanceof Problem) || error.code !== 'events_gone') {
        silentBecause.value = error instanceof Problem ? error : null;
        return;
      }
      places.delete(of);
      for (const gap of gaps) gap(false);
    }
  }
}

effect(() => {
  const of = scope.value;
  if (of === null) {
    places = new Map();
    live.value = false;
    return;
  }
  if (!visible.value) return;
  const end = new AbortController();
  silentBecause.value = null;
  void run(of, end.signal);
  return () => {
    end.abort(new DOMException('another page is shown', 'AbortError'));
    live.value = false;
  };
});
