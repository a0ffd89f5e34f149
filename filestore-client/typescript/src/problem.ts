// The one error of this package.
import type { ErrorCode, ProblemDocument } from './schema.js';

/** The codes of errors that no server has sent. */
export type LocalCode =
  /** There was no reply: no connection, or it broke, or another origin forbids the request. */
  | 'unreachable'
  /** The reply is not from filestore, for example an error page of a proxy. */
  | 'not_filestore';

/** What a {@link Problem} is made of. */
export interface ProblemParts {
  status?: number;
  document?: Partial<ProblemDocument>;
  code?: LocalCode;
  detail?: string;
  requestId?: string | undefined;
  retryAfter?: number | undefined;
  cause?: unknown;
}

/**
 * A failed call. Use `code` to decide in a program, and show `detail` to people.
 *
 * If a caller aborts a call, the call fails with the reason of the signal instead, usually an `AbortError`.
 */
export class Problem extends Error {
  override readonly name = 'Problem';
  /** HTTP status, or 0 if there was no reply. */
  readonly status: number;
  /** Stable code of the error, for example `quota_exceeded`. */
  readonly code: ErrorCode | LocalCode;
  /** HTTP status in words. */
  readonly title: string;
  /** Explanation for people. */
  readonly detail: string;
  /** Id of the request, as in the server's log. */
  readonly requestId: string | undefined;
  /** Field, parameter or key with the error. */
  readonly field: string | undefined;
  /** Batch item with the error: the index, starting at 0. */
  readonly item: number | undefined;
  /** Allowed values, if there are few. */
  readonly allowed: readonly string[] | undefined;
  /** Limit that the request exceeded. Sizes are in bytes. */
  readonly limit: number | undefined;
  /** Current state, if the state does not allow the change. */
  readonly from: string | undefined;
  /** Requested state, if the state does not allow the change. */
  readonly to: string | undefined;
  /** Seconds after which a retry can help, from `Retry-After`. */
  readonly retryAfter: number | undefined;

  constructor(parts: ProblemParts) {
    const document = parts.document ?? {};
    const status = parts.status ?? document.status ?? 0;
    const detail = document.detail ?? parts.detail ?? `the server replied ${status}`;
    super(detail, parts.cause === undefined ? undefined : { cause: parts.cause });
    this.status = status;
    this.code = document.code ?? parts.code ?? 'not_filestore';
    this.title = document.title ?? '';
    this.detail = detail;
    this.requestId = document.request_id ?? parts.requestId;
    this.field = document.field ?? undefined;
    this.item = document.item ?? undefined;
    this.allowed = document.allowed;
    this.limit = document.limit ?? undefined;
    this.from = document.from ?? undefined;
    this.to = document.to ?? undefined;
    this.retryAfter = parts.retryAfter;
  }

  /** True if the same request can succeed later: no reply, a busy server, a provider that does not answer. */
  get isTemporary(): boolean {
    return [0, 408, 429, 502, 503, 504].includes(this.status) || this.code === 'idempotency_in_progress';
  }

  /** True if the server says that it did not begin with the request. */
  get didNothing(): boolean {
    return this.status === 429 || this.code === 'busy';
  }
}

/** Reads `Retry-After`: seconds, or a date. */
function retryAfter(headers: Headers): number | undefined {
  const text = headers.get('Retry-After');
  if (text === null) return undefined;
  const seconds = /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}

/** Makes the problem of a reply that is no success. `text` is its body. */
export function problemOf(status: number, headers: Headers, text: string): Problem {
  let document: Partial<ProblemDocument> = {};
  if (/json/.test(headers.get('Content-Type') ?? '')) {
    try {
      const value: unknown = JSON.parse(text);
      if (value !== null && typeof value === 'object' && 'code' in value) document = value as Partial<ProblemDocument>;
    } catch {
      // A reply that was cut off. Its status counts.
    }
  }
  return new Problem({
    status,
    document,
    requestId: headers.get('X-Request-Id') ?? undefined,
    retryAfter: retryAfter(headers),
  });
}
