// The only place that asks the server: calls with the types of the OpenAPI document.
import { Clock } from './clock.js';
import { Problem, problemOf } from './problem.js';
import { DEFAULT_RETRY, isWorthRetry, pause, pauseMs, type RetryPolicy } from './retry.js';
import type { Operations } from './schema.js';

/** HTTP methods of the API. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** The paths that have a method, for example `/files/{file_id}/info` for `GET`. */
export type PathOf<M extends Method> = keyof Operations extends infer Name
  ? Name extends `${M} ${infer Path}`
    ? Path
    : never
  : never;

/** One call of the API, for example `OperationOf<'GET', '/files'>`. */
export type OperationOf<M extends Method, P extends string> = `${M} ${P}` extends keyof Operations
  ? Operations[`${M} ${P}`]
  : never;

/** The value of a successful reply. */
export type ReplyOf<M extends Method, P extends string> = OperationOf<M, P> extends { reply: infer Value }
  ? Value
  : never;

/** The parameters and the body of a call. */
export type OptionsOf<M extends Method, P extends string> = Omit<OperationOf<M, P>, 'reply' | 'headers'> & {
  /** Request headers. Those that the document names are completed. */
  headers?: HeadersOf<OperationOf<M, P>> & Record<string, string | undefined>;
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
  /** Maximum attempts of this call (default: those of the connection). */
  attempts?: number | undefined;
};

type HeadersOf<Operation> = Operation extends { headers?: infer Headers } ? Partial<Headers> : unknown;

/** The options can be left out if none is required. */
type Rest<M extends Method, P extends string> = Partial<OptionsOf<M, P>> extends OptionsOf<M, P>
  ? [options?: OptionsOf<M, P>]
  : [options: OptionsOf<M, P>];

/** A successful reply. */
export interface Reply<Value> {
  /** The value of the body. */
  data: Value;
  status: number;
  headers: Headers;
}

/** Options of a {@link Connection}. */
export interface ConnectionOptions {
  /** Address of the server, with its prefix if it has one, for example `https://files.example.org`. */
  url: string | URL;
  /** API key. An open server needs none. */
  key?: string | undefined;
  /** Replaces the global `fetch`, for example to add headers. */
  fetch?: typeof fetch | undefined;
  /** Retries of failed calls. */
  retry?: Partial<RetryPolicy> | undefined;
  /** Is called after every reply 401, before the call fails. For example, to show a form for a new key. */
  onUnauthorized?: ((problem: Problem) => void) | undefined;
  /** Is called after every request, with false if there was no reply. For example, to show that the server is away. */
  onReachable?: ((isReachable: boolean) => void) | undefined;
}

/** The options of a call without their types. */
interface RawOptions {
  path?: Record<string, string | number>;
  query?: Record<string, unknown>;
  body?: unknown;
  headers?: Record<string, string | undefined>;
  signal?: AbortSignal | undefined;
  attempts?: number | undefined;
}

const API = '/api/v1';

/**
 * A server and the key that it is asked with.
 *
 * For example, read a record and list files:
 *
 * ```ts
 * const server = new Connection({ url: 'https://files.example.org', key: 'fsk_…' });
 * const { data: record } = await server.call('GET', '/files/{file_id}/info', { path: { file_id } });
 * const { data: page } = await server.call('GET', '/files', { query: { organization_id: '42' } });
 * ```
 */
export class Connection {
  /** Address of the server, without a slash at its end. */
  readonly url: string;
  /** API key. You can replace it at any time, for example after a rotation. */
  key: string | undefined;
  readonly retry: RetryPolicy;
  /** The function that sends requests, if the application has its own. */
  readonly ownFetch: typeof fetch | undefined;
  readonly #options: ConnectionOptions;
  readonly #clock = new Clock();

  constructor(options: ConnectionOptions) {
    this.url = String(options.url).replace(/\/+$/, '').replace(/\/api\/v1$/, '');
    this.key = options.key;
    this.ownFetch = options.fetch;
    this.retry = { ...DEFAULT_RETRY, ...options.retry };
    this.#options = options;
  }

  /** Sends a call, and returns the value of its reply. Fails with a {@link Problem}. */
  async call<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    ...[options]: Rest<M, P>
  ): Promise<Reply<ReplyOf<M, P>>> {
    const read = async (response: Response) => {
      const { status, headers } = response;
      return { data: (await valueOf(response)) as ReplyOf<M, P>, status, headers };
    };
    return this.#send(method, path, (options ?? {}) as RawOptions, 'application/json', read);
  }

  /**
   * Sends a call, and returns the reply before its body, for example to read bytes piece by piece. Fails with a
   * {@link Problem} if the status is neither 2xx nor 304.
   */
  request<M extends Method, P extends PathOf<M>>(method: M, path: P, ...[options]: Rest<M, P>): Promise<Response> {
    return this.#send(method, path, (options ?? {}) as RawOptions, '*/*', (response) => response);
  }

  /** Returns the address of a call, for example for `src` or `href`. A browser asks it without the key. */
  address<M extends Method, P extends PathOf<M>>(
    method: M,
    path: P,
    options?: Pick<OptionsOf<M, P>, Extract<keyof OptionsOf<M, P>, 'path' | 'query'>>,
  ): string {
    void method;
    return this.#address(path, (options ?? {}) as RawOptions);
  }

  /** Returns the absolute address of a `url` in a reply: servers without `public_url` reply with a path. */
  link(url: string): string {
    return url.startsWith('/') ? this.url + url.slice(Math.max(0, url.indexOf(`${API}/`))) : url;
  }

  /** Returns the server's time in milliseconds since 1970, as far as its replies tell it. */
  now(): number {
    return this.#clock.now();
  }

  /** Notes the clock of a reply. For the parts of this package that send their own requests. */
  see(date: string | null, sentMs: number): void {
    this.#clock.see(date, sentMs, Date.now());
    this.#options.onReachable?.(true);
  }

  /** Tells the application about a problem that it has asked for. Returns the problem. */
  report<E>(problem: E): E {
    if (!(problem instanceof Problem)) return problem;
    if (problem.code === 'unreachable') this.#options.onReachable?.(false);
    if (problem.status === 401) this.#options.onUnauthorized?.(problem);
    return problem;
  }

  /** Returns the headers that every request has. */
  headers(own: Record<string, string | undefined> = {}): Headers {
    const headers = new Headers();
    if (this.key) headers.set('Authorization', `Bearer ${this.key}`);
    for (const [name, value] of Object.entries(own)) if (value !== undefined) headers.set(name, value);
    return headers;
  }

  async #send<T>(
    method: Method,
    path: string,
    options: RawOptions,
    accept: string,
    read: (response: Response) => T | Promise<T>,
  ): Promise<T> {
    const address = this.#address(path, options);
    const headers = this.headers({ Accept: accept, ...options.headers });
    const body = bodyOf(options.body, headers);
    const init = { method, headers, body, ...(options.signal && { signal: options.signal }) };
    const retry = { ...this.retry, attempts: options.attempts ?? this.retry.attempts };
    const isRepeatable = method === 'GET' || method === 'DELETE' || headers.has('Idempotency-Key');

    for (let failures = 1; ; failures += 1) {
      try {
        return await this.#once(address, init, read);
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (!isWorthRetry(retry, failures, error, isRepeatable)) throw error;
        await pause(pauseMs(retry, failures, error), options.signal);
      }
    }
  }

  async #once<T>(address: string, init: RequestInit, read: (response: Response) => T | Promise<T>): Promise<T> {
    const sentMs = Date.now();
    try {
      const response = await (this.ownFetch ?? fetch)(address, init);
      this.see(response.headers.get('Date'), sentMs);
      if (response.ok || response.status === 304) return await read(response);
      throw problemOf(response.status, response.headers, await response.text());
    } catch (error) {
      throw this.report(failed(error, init.signal));
    }
  }

  #address(path: string, { path: values = {}, query = {} }: RawOptions): string {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])));
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) parameters.set(name, String(value));
    }
    const text = parameters.toString();
    return `${this.url}${API}${filled}${text && `?${text}`}`;
  }
}

/** Turns a failure of a request into a problem. An abort stays what it is. */
export function failed(error: unknown, signal?: AbortSignal | null): unknown {
  if (signal?.aborted) return signal.reason;
  // A `fetch` of the application can abort by itself.
  if (error instanceof Problem || (error instanceof DOMException && error.name === 'AbortError')) return error;
  return new Problem({ code: 'unreachable', detail: 'the server cannot be reached', cause: error });
}

function bodyOf(body: unknown, headers: Headers): BodyInit | null {
  if (body === undefined) return null;
  const isBytes = body instanceof FormData || body instanceof Blob || ArrayBuffer.isView(body);
  if (isBytes || body instanceof ArrayBuffer) return body as BodyInit;
  if (!headers.has('Content-Type')) headers.set('Content-Type', 'application/json');
  return JSON.stringify(body);
}

async function valueOf(response: Response): Promise<unknown> {
  const kind = response.headers.get('Content-Type') ?? '';
  if (response.status === 204 || response.status === 304) return undefined;
  if (!/^text\/|json/.test(kind)) return response.blob();
  const text = await response.text();
  if (!kind.includes('json')) return text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem({ status: response.status, detail: 'the reply is not JSON', cause: error });
  }
}
