// Sends bytes, and tells how many of them have left. `fetch` cannot tell, so a page sends by XMLHttpRequest.
import { failed, type Connection } from './call.js';
import { Problem, problemOf } from './problem.js';

/** A request with bytes. */
export interface Sending {
  url: string;
  method: 'POST' | 'PUT' | 'PATCH';
  headers: Record<string, string | undefined>;
  body: Blob | ArrayBuffer | FormData | null;
  /** Size of the body in bytes. */
  size: number;
  signal: AbortSignal | undefined;
  /** Is called with the number of bytes that have left this program. */
  onSent?: (bytes: number) => void;
}

/** A successful reply. */
export interface Answer {
  headers: Headers;
  text: string;
}

/** The longest time in which nothing moves. The server itself answers within 60 s. */
const SILENCE_MS = 90_000;
/** The speed, in bytes per millisecond, below which a request without progress reports counts as broken. */
const LEAST_SPEED = 16;

/** Sends a request once. Fails with a problem, or with the signal's reason. */
export async function send(server: Connection, sending: Sending): Promise<Answer> {
  sending.signal?.throwIfAborted();
  const sentMs = Date.now();
  try {
    const { status, headers, text } = await (isPage(server) ? byPage(server, sending) : byFetch(server, sending));
    server.see(headers.get('Date'), sentMs);
    if (status >= 200 && status < 300) return { headers, text };
    throw problemOf(status, headers, text);
  } catch (error) {
    const problem = failed(error, sending.signal);
    if (problem instanceof Problem && problem.code === 'unreachable') await assertReadable(sending.body);
    throw server.report(problem);
  }
}

/** Fails if a file of a body cannot be read, for example because it was moved. A browser tells it as a broken line. */
async function assertReadable(body: Sending['body']): Promise<void> {
  const values = body instanceof FormData ? [...body.values()] : [body];
  for (const value of values) if (value instanceof Blob) await value.slice(0, 1).arrayBuffer();
}

function isPage(server: Connection): boolean {
  return !server.ownFetch && typeof XMLHttpRequest !== 'undefined';
}

interface RawAnswer extends Answer {
  status: number;
}

/** Aborts if its time is over. The time starts again with `again`. */
class Watch {
  readonly #abort: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(abort: () => void) {
    this.#abort = abort;
  }

  again(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#abort, ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

async function byFetch(server: Connection, sending: Sending): Promise<RawAnswer> {
  const silence = new AbortController();
  const watch = new Watch(() => silence.abort(new Error('the server is silent')));
  watch.again(SILENCE_MS + sending.size / LEAST_SPEED);
  const signal = sending.signal ? AbortSignal.any([sending.signal, silence.signal]) : silence.signal;
  const { url, method, body } = sending;
  try {
    const response = await (server.ownFetch ?? fetch)(url, {
      method,
      headers: server.headers(sending.headers),
      body,
      signal,
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } finally {
    watch.end();
  }
}

function byPage(server: Connection, sending: Sending): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const watch = new Watch(() => request.abort());
    const abort = () => request.abort();
    const end = (settle: () => void) => {
      watch.end();
      sending.signal?.removeEventListener('abort', abort);
      settle();
    };
    const lost = new Problem({ code: 'unreachable', detail: 'the server cannot be reached' });
    const broken = () => end(() => reject(lost));

    request.open(sending.method, sending.url);
    server.headers(sending.headers).forEach((value, name) => request.setRequestHeader(name, value));
    request.upload.onprogress = (event) => {
      watch.again(SILENCE_MS);
      sending.onSent?.(Math.min(event.loaded, sending.size));
    };
    request.onload = () => {
      const { status, responseText: text } = request;
      end(() => resolve({ status, headers: headersOf(request), text }));
    };
    request.onerror = broken;
    request.onabort = broken;
    sending.signal?.addEventListener('abort', abort);
    watch.again(SILENCE_MS);
    request.send(sending.body);
  });
}

/** Returns the headers that the page may read. */
function headersOf(request: XMLHttpRequest): Headers {
  const headers = new Headers();
  for (const line of request.getAllResponseHeaders().trim().split(/[\r\n]+/)) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return headers;
}
