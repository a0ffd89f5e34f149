/**
 * Work that ends when the page ends, because only its reply has the result: a check that lists its findings, the
 * verification of a snapshot, a sync. It lives here and not in a page, so that the reader can visit other pages. Leaving
 * the console warns.
 */

import { signal } from '@preact/signals';
import { isAbort } from '../api/call';
import { keepAwake, onEnd } from '../session';

export interface Run<T = unknown> {
  state: 'running' | 'done' | 'failed';
  startedAt: number;
  /** Anything that the page needs to draw the progress, for example which snapshot it is. */
  plan?: unknown;
  result?: T;
  error?: unknown;
}

export const runs = signal<ReadonlyMap<string, Run>>(new Map());

function put(name: string, run: Run | null): void {
  const next = new Map(runs.peek());
  if (run) next.set(name, run);
  else next.delete(name);
  runs.value = next;
}

/** Starts a run, unless one of this name is running. */
export function startRun<T>(name: string, work: () => Promise<T>, plan?: unknown): void {
  if (runs.peek().get(name)?.state === 'running') return;
  const started: Run = { state: 'running', startedAt: Date.now(), plan };
  put(name, started);
  keepAwake.value += 1;
  work()
    .then(
      (result) => put(name, { ...started, state: 'done', result }),
      (error: unknown) => put(name, isAbort(error) ? null : { ...started, state: 'failed', error }),
    )
    .finally(() => (keepAwake.value = Math.max(0, keepAwake.peek() - 1)));
}

export function runOf<T>(name: string): Run<T> | undefined {
  return runs.value.get(name) as Run<T> | undefined;
}

/** Forgets the result of a run that has ended. */
export function forgetRun(name: string): void {
  if (runs.peek().get(name)?.state !== 'running') put(name, null);
}

addEventListener('beforeunload', (event) => {
  if ([...runs.peek().values()].some((run) => run.state === 'running')) event.preventDefault();
});

onEnd(() => (runs.value = new Map()));
