// One upload of the queue: a file, or several that are stored together or not at all.
import { signal } from '@preact/signals';
import type { FileRecord, Progress } from 'filestore-client';
import { hasHidden } from '../text/names';

export type State = 'waiting' | 'running' | 'paused' | 'stored' | 'failed';

/** Where files go. */
export interface Target {
  organization: string;
  subSystem: string;
}

let last = 0;

export class Item {
  readonly id = (last += 1);
  readonly target: Target;
  readonly name: string;
  readonly size: number;
  /** The number of files. More than one for a batch. */
  readonly count: number;
  /** Whether a name has characters that nobody sees. */
  readonly isDisguised: boolean;
  /** The same for the same file at the same target. */
  readonly mark: string;
  /** The files, until they are stored. */
  files: File[];
  state: State = 'waiting';
  stored = 0;
  sent = 0;
  resumedAt = 0;
  /** Why it failed: what the server said, or a sentence of this page. */
  problem: unknown = null;
  record: FileRecord | null = null;
  /** Ends the running request. */
  stop: AbortController | null = null;
  /** Grows with every change of this item. */
  readonly changed = signal(0);

  constructor(files: File[], target: Target) {
    this.files = files;
    this.target = target;
    this.count = files.length;
    this.name = files.length === 1 ? (files[0]?.name ?? '') : `${files.length} files, all or nothing`;
    this.size = files.reduce((sum, file) => sum + file.size, 0);
    this.mark = JSON.stringify([target, ...files.map((file) => [file.webkitRelativePath, file.name, file.size, file.lastModified])]);
    this.isDisguised = files.some((file) => hasHidden(file.name));
  }

  /** The file of an item that is no batch. */
  get file(): File | undefined {
    return this.count === 1 ? this.files[0] : undefined;
  }

  /** True if another attempt can help, because the refusal came from the server. */
  get canRetry(): boolean {
    return this.state === 'failed' && typeof this.problem !== 'string';
  }

  note(progress: Progress): void {
    this.stored = progress.stored;
    this.sent = progress.sent;
    this.resumedAt = progress.resumedAt;
    this.changed.value += 1;
  }
}
