// Uploads of one file: by a form if it is small, and in parts that resume otherwise.
import { blobOf, changedAt, folderPathOf, hex, nameOf, randomName, sha256, type Source } from './bytes.js';
import { Connection } from './call.js';
import { Problem } from './problem.js';
import { isWorthRetry, pause, pauseMs } from './retry.js';
import type { ChangeReply, FileRecord } from './schema.js';
import { send } from './send.js';
import { memoryStore, type StoredUpload, type UploadStore } from './store.js';
import { Transfer, VERSION, type Progress } from './transfer.js';

/** Files below this size are sent as a form. It is the size of the smallest part, so there is nothing to resume. */
const RESUMABLE_FROM = 1 << 20;
const PATIENCE_MS = 300_000;

/** Where a file belongs, and its description. */
export interface UploadFields {
  /** Organization of the file. */
  organization_id: string;
  /** Sub-system: an area of your application, for example `invoices`. */
  sub_system: string;
  /** File name (default: the name of a `File`). */
  original_name?: string | undefined;
  /** Media type (default: detected from the bytes, or else from the name). */
  mime_type?: string | undefined;
  /** Custom metadata that the server keeps with the file. */
  metadata?: Record<string, unknown> | undefined;
  /** If true, the file is `TEMP` and expires. */
  upload_temp?: boolean | undefined;
  /** Expected SHA-256 in hexadecimal digits. If the bytes do not match, the server refuses the file. */
  sha256?: string | undefined;
}

/** The options of sending. */
export interface SendOptions {
  /** Stops the upload. To continue it, upload the same file again. */
  signal?: AbortSignal | undefined;
  /** Is called with every news of stored and sent bytes. */
  onProgress?: ((progress: Progress) => void) | undefined;
  /** Longest time without progress before the upload fails, in milliseconds (default 5 minutes). */
  patienceMs?: number | undefined;
  /** Keeps unfinished uploads (default: until the program ends). */
  store?: UploadStore | undefined;
  /** Identifies the file in the store. Default for a `File`: place, folder, name, size and time of the last change. */
  fingerprint?: string | undefined;
  /** Size in bytes from which a file is sent in parts (default 1 MiB). */
  resumableFrom?: number | undefined;
  /** A name for this upload. The same file with the same name is stored once within 24 hours. Default: random. */
  idempotencyKey?: string | undefined;
}

export type UploadOptions = UploadFields & SendOptions;

const DEFAULT_STORE = memoryStore();

/**
 * Uploads a file, and returns its record. Fails with a {@link Problem}.
 *
 * A file of 1 MiB and more is sent in parts. After a break, the upload continues at the last byte that the server has
 * stored. With {@link indexedDbStore}, it continues after a reload, too: upload the same file again.
 *
 * ```ts
 * const record = await upload(server, input.files[0], {
 *   organization_id: '42',
 *   sub_system: 'gallery',
 *   onProgress: ({ stored, total }) => (bar.value = stored / total),
 * });
 * ```
 */
export async function upload(server: Connection, source: Source, options: UploadOptions): Promise<FileRecord> {
  const file = blobOf(source);
  const { organization_id, sub_system } = options;
  const fields = { ...texts({ organization_id, sub_system }), ...described(source, options) };
  if (file.size < (options.resumableFrom ?? RESUMABLE_FROM)) {
    return sendForm(server, server.address('POST', '/files/upload'), file, fields, options);
  }
  const endpoint = server.address('POST', '/uploads');
  const fingerprint = options.fingerprint ?? fingerprintOf(server, source, options);
  return sendParts(server, endpoint, source, fields, { ...options, fingerprint });
}

/**
 * Uploads a file to a signed URL, without a key, and returns its record.
 *
 * If the URL was signed with `resumable`, the file is sent in parts. Otherwise it is sent as a form.
 *
 * ```ts
 * const { url } = await (await fetch('/my-service/upload-url')).json();
 * const record = await uploadTo(url, input.files[0]);
 * ```
 */
export async function uploadTo(
  url: string,
  source: Source,
  options: Omit<UploadFields, 'organization_id' | 'sub_system' | 'upload_temp'> & SendOptions = {},
): Promise<FileRecord> {
  const at = url.indexOf('/api/v1/');
  if (at < 0) throw new TypeError(`not an upload URL of filestore: ${url}`);
  const server = new Connection({ url: url.slice(0, at) });
  const fields = described(source, options);
  if (new URL(url, 'http://localhost').pathname.endsWith('/files/upload')) {
    return sendForm(server, url, blobOf(source), fields, options);
  }
  // The signature is a secret. The rest of the URL has a nonce, so it is another one for every upload.
  const place = url.replace(/([?&])sig=[^&]*/, '$1');
  const fingerprint = options.fingerprint ?? markOf([place], source, options);
  return sendParts(server, url, source, fields, { ...options, fingerprint });
}

/** What replaces the bytes of a file. */
export type ReplaceOptions = Pick<UploadFields, 'original_name' | 'mime_type' | 'metadata' | 'sha256'> &
  SendOptions & {
    /** If true, the file becomes `READY`. */
    make_as_ready?: boolean | undefined;
    /** `ETag` of the bytes to replace. If the file has others, the call fails with `precondition_failed`. */
    ifMatch?: string | undefined;
  };

/** Replaces the bytes of a file. They are sent in parts and resume, as in {@link upload}. */
export async function replace(
  server: Connection,
  file_id: string,
  source: Source,
  options: ReplaceOptions = {},
): Promise<ChangeReply> {
  const fields = { file_id, ...described(source, options) };
  const ready = options.make_as_ready ? { make_as_ready: 'true' } : {};
  const headers = { 'If-Match': options.ifMatch };
  return sendParts(server, server.address('POST', '/uploads'), source, { ...fields, ...ready }, options, headers);
}

/** Returns the default fingerprint of a file, or nothing if the file has no name and time. */
export function fingerprintOf(server: Connection, source: Source, fields: UploadFields): string | undefined {
  return markOf([server.url, fields.organization_id, fields.sub_system], source, fields);
}

function markOf(place: string[], source: Source, { original_name = nameOf(source) }: Described): string | undefined {
  const changed = changedAt(source);
  if (changed === undefined) return undefined;
  // Files of one folder can have the same name, size and time.
  const folder = folderPathOf(source);
  return JSON.stringify([...place, original_name, blobOf(source).size, changed, ...(folder ? [folder] : [])]);
}

/** Cancels an unfinished upload: the server removes its bytes. A file that the upload has made stays. */
export async function cancelUpload(
  server: Connection,
  entry: StoredUpload,
  store: UploadStore = DEFAULT_STORE,
): Promise<void> {
  try {
    await server.call('DELETE', '/uploads/{upload}', { path: { upload: entry.upload }, headers: VERSION });
  } catch (error) {
    // Already ended, or another organization's.
    if (!(error instanceof Problem) || ![404, 410].includes(error.status)) throw error;
  }
  await store.delete(entry.fingerprint);
}

type Described = Omit<UploadFields, 'organization_id' | 'sub_system'>;

/** Returns the fields that describe a file. */
function described(source: Source, options: Described): Record<string, string> {
  return texts({
    original_name: options.original_name ?? (nameOf(source) || undefined),
    mime_type: options.mime_type,
    metadata: options.metadata && JSON.stringify(options.metadata),
    upload_temp: options.upload_temp?.toString(),
    sha256: options.sha256,
  });
}

/** Leaves out the fields that are not given. */
function texts(fields: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(fields).filter((pair): pair is [string, string] => pair[1] !== undefined));
}

function sendParts(
  server: Connection,
  endpoint: string,
  source: Source,
  fields: Record<string, string>,
  options: SendOptions,
  headers: Record<string, string | undefined> = {},
): Promise<FileRecord> {
  const file = blobOf(source);
  const { fingerprint, signal, onProgress, idempotencyKey } = options;
  const entry = fingerprint === undefined ? undefined : {
    fingerprint,
    server: server.url,
    upload: '',
    name: fields['original_name'] ?? '',
    size: file.size,
    lastModified: changedAt(source) ?? 0,
    organization_id: fields['organization_id'] ?? '',
    sub_system: fields['sub_system'] ?? '',
    stored: 0,
    startedAt: Date.now(),
  };
  return new Transfer(server, {
    file,
    endpoint,
    fields,
    headers,
    idempotencyKey,
    entry,
    store: options.store ?? DEFAULT_STORE,
    patienceMs: options.patienceMs ?? PATIENCE_MS,
    signal,
    onProgress,
  }).run();
}

async function sendForm(
  server: Connection,
  url: string,
  file: Blob,
  fields: Record<string, string>,
  options: SendOptions,
): Promise<FileRecord> {
  const digest = fields['sha256'] ?? (await digestOf(file));
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, value);
  if (digest !== undefined) form.set('sha256', digest);
  form.append('file', file, fields['original_name'] ?? 'file');
  return JSON.parse(await sendRepeatable(server, url, form, file.size, options)) as FileRecord;
}

/** Sends a form until it is stored, under one idempotency key. Returns the text of the reply. */
export async function sendRepeatable(
  server: Connection,
  url: string,
  form: FormData,
  total: number,
  options: Pick<SendOptions, 'signal' | 'onProgress' | 'idempotencyKey' | 'patienceMs'>,
): Promise<string> {
  const { signal, onProgress } = options;
  const headers = { 'Idempotency-Key': options.idempotencyKey ?? randomName() };
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const policy = { ...server.retry, attempts: Infinity, longestRetryAfterS: patienceMs / 1000 };
  const began = Date.now();
  const onSent = (sent: number) => onProgress?.({ stored: 0, sent: Math.min(sent, total), total, resumedAt: 0 });

  for (let failures = 1; ; failures += 1) {
    try {
      const { text } = await send(server, { method: 'POST', url, headers, body: form, size: total, signal, onSent });
      onProgress?.({ stored: total, sent: total, total, resumedAt: 0 });
      return text;
    } catch (error) {
      if (!(error instanceof Problem) || !isWorthRetry(policy, failures, error, true)) throw error;
      const ms = pauseMs(policy, failures, error);
      if (Date.now() + ms - began > patienceMs) throw error;
      await pause(ms, signal);
    }
  }
}

/** Small files are sent with their digest, so that a damaged request stores nothing. */
async function digestOf(file: Blob): Promise<string | undefined> {
  if (file.size > RESUMABLE_FROM) return undefined;
  const digest = await sha256(await file.arrayBuffer());
  return digest && hex(digest);
}
