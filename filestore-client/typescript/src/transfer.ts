// One resumable upload, in the protocol tus 1.0 (https://tus.io).
//
// The client creates an empty upload and sends the file in parts. The server replies to a part after its bytes are on
// the disk. If a part breaks off, the client asks for the offset and continues there. The reply to the last part has
// the record. If a store keeps the URL of the upload, a later run of the program continues it in the same way.
import { base64, base64OfText, randomName, sha256 } from './bytes.js';
import type { Connection } from './call.js';
import { PartSize } from './parts.js';
import { Problem } from './problem.js';
import { pause, pauseMs } from './retry.js';
import type { FileRecord } from './schema.js';
import { send, type Answer } from './send.js';
import type { StoredUpload, UploadStore } from './store.js';

/** The progress of an upload, in bytes. */
export interface Progress {
  /** Bytes that the server has stored. This number never falls, unless the server has lost the upload. */
  stored: number;
  /** Bytes that have left this program. Equal to `stored` if the program cannot tell, as in Node.js. */
  sent: number;
  /** Size of the file. */
  total: number;
  /** Offset at which this run continued an earlier one. 0 for a new upload. */
  resumedAt: number;
}

/** What a transfer needs. */
export interface Plan {
  file: Blob;
  /** URL to create the upload at. */
  endpoint: string;
  /** Fields of `Upload-Metadata`. */
  fields: Record<string, string>;
  /** Other headers of the creation. */
  headers: Record<string, string | undefined>;
  idempotencyKey: string | undefined;
  /** The entry for the store. Its `upload` and `stored` are filled in. */
  entry: StoredUpload | undefined;
  store: UploadStore;
  patienceMs: number;
  signal: AbortSignal | undefined;
  onProgress: ((progress: Progress) => void) | undefined;
}

export const VERSION = { 'Tus-Resumable': '1.0.0' } as const;
const RECORD = { Prefer: 'return=representation' };
/** Pauses after a break: from a quarter of a second to half a minute. A page that is online again does not wait. */
const PAUSES = { attempts: Infinity, baseMs: 250, capMs: 30_000, longestRetryAfterS: Infinity };
/** Number of times that the server can name another offset, or refuse bytes, without progress. */
const MOST_MISMATCHES = 3;
const MISMATCHES = ['upload_offset_mismatch', 'upload_superseded', 'checksum_mismatch'];

/** Sends a file, and returns the last reply. */
export class Transfer {
  readonly #server: Connection;
  readonly #plan: Plan;
  readonly #parts = new PartSize();
  /** The last part of the upload's URL. */
  #upload: string | undefined;
  /** The number of bytes that the server has stored, or nothing if the server must be asked. */
  #offset: number | undefined;
  #progress: Progress;
  #failures = 0;
  #failingSince: number | undefined;
  #mismatches = 0;
  #isAgain = false;
  /** Makes a repeated creation find the first one. */
  #key = randomName();

  constructor(server: Connection, plan: Plan) {
    this.#server = server;
    this.#plan = plan;
    this.#progress = { stored: 0, sent: 0, total: plan.file.size, resumedAt: 0 };
  }

  /** Sends the whole file. Fails with a problem if no retry can help, or with the reason of the signal. */
  async run(): Promise<FileRecord> {
    this.#upload = (await this.#kept())?.upload;
    let isResumed = this.#upload !== undefined;
    for (;;) {
      try {
        const record = await this.#step();
        if (record) {
          await this.#forget();
          return record;
        }
        await this.#keep();
        if (isResumed) this.#report({ resumedAt: this.#offset ?? 0 });
        isResumed = false;
      } catch (error) {
        await this.#recover(error);
      }
    }
  }

  /** Creates the upload, asks for its offset, or sends a part: whatever is next. Returns the record at the end. */
  async #step(): Promise<FileRecord | undefined> {
    if (this.#upload === undefined) return this.#create();
    if (this.#offset === undefined) return this.#ask();
    return this.#sendPart(this.#upload, this.#offset);
  }

  async #create(): Promise<FileRecord | undefined> {
    const { endpoint, fields, file, headers } = this.#plan;
    const pairs = Object.entries(fields).map(([name, value]) => `${name} ${base64OfText(value)}`);
    const answer = await this.#send('POST', endpoint, null, {
      ...headers,
      'Upload-Length': String(file.size),
      'Upload-Metadata': pairs.join(',') || undefined,
      'Idempotency-Key': this.#plan.idempotencyKey ?? this.#key,
    });
    // Only the last part: the server may name itself by an address that this program cannot reach.
    const upload = answer.headers.get('Location')?.split(/[?#]/)[0]?.split('/').at(-1);
    if (!upload) throw new Problem({ status: 201, detail: 'the server created an upload without a URL' });
    this.#upload = upload;
    return this.#take(answer);
  }

  async #ask(): Promise<undefined> {
    const { data } = await this.#server.call('GET', '/uploads/{upload}', {
      path: { upload: this.#upload ?? '' },
      headers: VERSION,
      signal: this.#plan.signal,
    });
    const { length, offset } = data;
    if (length !== null && length !== this.#plan.file.size) return this.#beginAgain();
    this.#advance(offset);
  }

  /** Forgets the upload: the server has lost it, or it is that of another file. */
  async #beginAgain(): Promise<undefined> {
    await this.#forget();
    this.#upload = undefined;
    this.#key = randomName();
    this.#report({ stored: 0, sent: 0, resumedAt: 0 });
  }

  async #sendPart(upload: string, offset: number): Promise<FileRecord | undefined> {
    const part = this.#plan.file.slice(offset, offset + this.#parts.bytes);
    // Read into memory for the digest, or straight from the disk if the browser computes none.
    const bytes = await read(part);
    const digest = bytes && bytes.byteLength > 0 ? await sha256(bytes) : undefined;
    const began = Date.now();
    const answer = await this.#send('PATCH', this.#address(upload), digest && bytes ? bytes : part, {
      'Upload-Offset': String(offset),
      'Content-Type': 'application/offset+octet-stream',
      'Upload-Checksum': digest && `sha256 ${base64(digest)}`,
    });
    this.#parts.stored(part.size, Date.now() - began);
    return this.#take(answer);
  }

  #address(upload: string): string {
    return this.#server.address('PATCH', '/uploads/{upload}', { path: { upload } });
  }

  #send(
    method: 'POST' | 'PATCH',
    url: string,
    body: Blob | ArrayBuffer | null,
    headers: Record<string, string | undefined>,
  ): Promise<Answer> {
    const from = this.#offset ?? 0;
    const size = body instanceof Blob ? body.size : (body?.byteLength ?? 0);
    return send(this.#server, {
      method,
      url,
      body,
      size,
      headers: { ...VERSION, ...RECORD, ...headers },
      signal: this.#plan.signal,
      onSent: (bytes) => this.#report({ sent: Math.max(this.#progress.sent, from + bytes) }),
    });
  }

  /** Takes over the offset of a reply. Returns the record if the reply has it. */
  #take({ headers, text }: Answer): FileRecord | undefined {
    if (text !== '' && /json/.test(headers.get('Content-Type') ?? '')) {
      this.#report({ stored: this.#plan.file.size, sent: this.#plan.file.size });
      return JSON.parse(text) as FileRecord;
    }
    this.#advance(Number(headers.get('Upload-Offset') ?? NaN));
    return undefined;
  }

  #advance(offset: number): void {
    if (!Number.isInteger(offset) || offset < 0 || offset > this.#plan.file.size) {
      throw new Problem({ status: 200, detail: `the server named an impossible offset: ${offset}` });
    }
    if (offset > this.#progress.stored) {
      [this.#failures, this.#failingSince, this.#mismatches] = [0, undefined, 0];
    }
    this.#offset = offset;
    this.#report({ stored: offset, sent: offset });
  }

  #report(change: Partial<Progress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.#plan.onProgress?.(this.#progress);
  }

  /** Prepares another try after a failure, or fails with the error. */
  async #recover(error: unknown): Promise<void> {
    this.#plan.signal?.throwIfAborted();
    if (!(error instanceof Problem)) throw error;
    this.#offset = undefined;
    if (MISMATCHES.includes(error.code)) {
      this.#mismatches += 1;
      if (this.#mismatches > MOST_MISMATCHES) throw error;
    } else if (this.#isLost(error)) {
      await this.#beginAgain();
      if (this.#isAgain) throw error;
      this.#isAgain = true;
    } else if (error.status === 413 && error.code === 'not_filestore') {
      if (this.#upload === undefined || !this.#parts.refused()) throw error;
    } else if (error.isTemporary) {
      this.#parts.broken();
      await this.#wait(error);
    } else {
      if (isFinal(error)) await this.#forget();
      throw error;
    }
  }

  /** True if the server no longer has the upload, or another server has its bytes. */
  #isLost(error: Problem): boolean {
    return this.#upload !== undefined && ([404, 410].includes(error.status) || error.code === 'upload_elsewhere');
  }

  async #wait(error: Problem): Promise<void> {
    const now = Date.now();
    this.#failingSince ??= now;
    this.#failures += 1;
    const ms = pauseMs(PAUSES, this.#failures, error);
    if (now + ms - this.#failingSince > this.#plan.patienceMs) throw error;
    await pause(ms, this.#plan.signal);
  }

  async #kept(): Promise<StoredUpload | undefined> {
    const { entry, store } = this.#plan;
    return entry && store.get(entry.fingerprint).catch(() => undefined);
  }

  async #keep(): Promise<void> {
    const { entry, store } = this.#plan;
    if (!entry || this.#upload === undefined) return;
    await store.put({ ...entry, upload: this.#upload, stored: this.#offset ?? 0 }).catch(() => undefined);
  }

  async #forget(): Promise<void> {
    const { entry, store } = this.#plan;
    if (entry) await store.delete(entry.fingerprint).catch(() => undefined);
  }
}

/** True if the upload has failed at the server, so that the next try must begin again. */
function isFinal(error: Problem): boolean {
  return error.status === 422 || error.code === 'upload_length_exceeded';
}

async function read(part: Blob): Promise<ArrayBuffer | undefined> {
  if (!(crypto as Partial<Crypto>).subtle) return undefined;
  return part.arrayBuffer();
}
