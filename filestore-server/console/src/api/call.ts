// The way to the server: one connection of the package filestore-client, whose calls are typed by the OpenAPI document.
// Here it learns where the server is, gets lanes for its requests, and tells when nobody answers.
import { signal } from '@preact/signals';
import { Connection, Problem } from 'filestore-client';

export { Problem };
export type * from 'filestore-client';

/** Where the console lives, with a slash at the end. */
export const consoleRoot = new URL('../', import.meta.url);
/** The API of the same server, with a slash at the end. */
export const apiRoot = new URL('../api/v1/', consoleRoot);

/** Since when nothing answers (ms), or null. */
export const offlineSince = signal<number | null>(null);

// At most five requests at a time: HTTP/1.1 gives a browser six connections, and one is the stream of events.
const LANES = 5;
let busy = 0;
const waiting: (() => void)[] = [];

async function enter(): Promise<void> {
  if (busy >= LANES) await new Promise<void>((go) => waiting.push(go));
  else busy += 1;
}
function leave(): void {
  const next = waiting.shift();
  if (next) next();
  else busy -= 1;
}

let epoch = new AbortController();
let refused: (problem: Problem) => void = () => {};

const ownFetch: typeof fetch = async (input, init) => {
  const isStream = new Headers(init?.headers).get('Accept') === 'text/event-stream';
  const signals = [epoch.signal, ...(init?.signal ? [init.signal] : [])];
  const signal = AbortSignal.any(signals);
  const options: RequestInit = { ...init, signal, credentials: 'omit', referrerPolicy: 'no-referrer' };
  if (isStream) return fetch(input, options);
  await enter();
  try {
    if (signal.aborted) throw signal.reason;
    return await fetch(input, options);
  } finally {
    leave();
  }
};

export const server = new Connection({
  url: new URL('../', consoleRoot),
  fetch: ownFetch,
  retry: { attempts: 3, longestRetryAfterS: 30 },
  onUnauthorized: (problem) => refused(problem),
  onReachable: (isReachable) => {
    if (isReachable) offlineSince.value = null;
    else if (!epoch.signal.aborted) offlineSince.value ??= Date.now();
  },
});

/** Sends a call, and returns `{ data, headers, status }`. Throws a `Problem`, or an `AbortError`. */
export const call: Connection['call'] = server.call.bind(server);
/** Sends a call, and returns the `Response`, for bytes. Throws as `call` does. */
export const request: Connection['request'] = server.request.bind(server);
/** Milliseconds since 1970 by the server's clock. */
export const serverNow = (): number => server.now();

/** Sets the key of all further calls. Calls under way with the one before are aborted. */
export function useKey(key: string | null): void {
  epoch.abort(new DOMException('the session has ended', 'AbortError'));
  epoch = new AbortController();
  server.key = key ?? undefined;
}
/** Names the one place that hears of a 401. */
export function onRefused(listener: (problem: Problem) => void): void {
  refused = listener;
}

export const isAbort = (error: unknown): boolean => error instanceof DOMException && error.name === 'AbortError';
export const isUnreachable = (error: unknown): boolean => error instanceof Problem && error.code === 'unreachable';

/** Codes for which the table of errors says that a retry can help. */
const RETRY: ReadonlySet<string> = new Set([
  'unreachable', 'not_filestore', 'body_timeout', 'conflict', 'idempotency_in_progress', 'provider_unavailable', 'busy',
  'outcome_unknown', 'storage_full', 'database_full', 'locked', 'not_ready', 'rate_limited', 'internal',
  'upload_stalled', 'too_many_uploads',
]);
export const canRetry = (error: unknown): boolean => error instanceof Problem && RETRY.has(error.code);
