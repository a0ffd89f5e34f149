/** Asks the server for a page's data, keeps what was there while it asks again, and polls while somebody looks. */

import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { isAbort, offlineSince, serverNow } from '../api/call';

export interface Loaded<T> {
  data: T | undefined;
  /** Why the last attempt failed. `data` may still be there from before. */
  error: unknown;
  loading: boolean;
  /** When `data` came, by the server's clock. */
  at: number | null;
  /** Asks again now. Resolves when the answer is shown. */
  reload: () => Promise<void>;
  /** Replaces the data, for example with the reply to a change. */
  set: (data: T) => void;
}

/**
 * Loads with `load`, again whenever `key` changes, and every `every` milliseconds while the page is visible.
 * `every` may depend on the data, so that a page asks more often while something runs.
 */
export function useLoad<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  every?: number | ((data: T | undefined) => number | null),
): Loaded<T> {
  const [state, setState] = useState<{ key: string; data: T | undefined; error: unknown; at: number | null }>({
    key,
    data: undefined,
    error: null,
    at: null,
  });
  const [loading, setLoading] = useState(true);
  const latest = useRef(load);
  latest.current = load;
  const running = useRef<AbortController | null>(null);

  const run = useCallback(async () => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setLoading(true);
    try {
      const data = await latest.current(controller.signal);
      if (!controller.signal.aborted) setState({ key, data, error: null, at: serverNow() });
    } catch (error) {
      if (controller.signal.aborted || isAbort(error)) return;
      setState((before) => (before.key === key ? { ...before, error } : { key, data: undefined, error, at: null }));
    } finally {
      if (running.current === controller) {
        running.current = null;
        setLoading(false);
      }
    }
  }, [key]);

  useEffect(() => {
    void run();
    return () => running.current?.abort();
  }, [run]);

  const current = state.key === key ? state : { key, data: undefined, error: null, at: null };
  const pause = typeof every === 'function' ? every(current.data) : (every ?? null);
  useEffect(() => {
    if (pause === null) return;
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible' && !running.current) void run();
    }, pause);
    const shown = () => {
      if (document.visibilityState === 'visible' && !running.current) void run();
    };
    document.addEventListener('visibilitychange', shown);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', shown);
    };
  }, [run, pause]);

  // The connection is back: what failed or grew old is asked for again.
  const offline = offlineSince.value !== null;
  const wasOffline = useRef(offline);
  useEffect(() => {
    if (wasOffline.current && !offline) void run();
    wasOffline.current = offline;
  }, [offline, run]);

  const set = useCallback(
    (data: T) => {
      // A reading that is under way may be older than this.
      running.current?.abort();
      running.current = null;
      setLoading(false);
      setState({ key, data, error: null, at: serverNow() });
    },
    [key],
  );
  return { data: current.data, error: current.error, loading, at: current.at, reload: run, set };
}

/** Follows cursors to the end. For lists that are short by nature, such as sub-systems. */
export async function allPages<T>(
  page: (cursor: string | undefined) => Promise<{ items: T[]; next_cursor: string | null }>,
  most = 100,
): Promise<{ items: T[]; complete: boolean }> {
  const items: T[] = [];
  let cursor: string | undefined;
  for (let pages = 0; pages < most; pages += 1) {
    const reply = await page(cursor);
    items.push(...reply.items);
    if (reply.next_cursor === null) return { items, complete: true };
    cursor = reply.next_cursor;
  }
  return { items, complete: false };
}
