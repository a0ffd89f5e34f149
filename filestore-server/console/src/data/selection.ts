// Which files are selected: by id, so that scrolling and new files change nothing.
import { computed, signal } from '@preact/signals';
import type { FileRecord } from '../api/call';
import { onEnd } from '../session';

export const selection = signal<ReadonlyMap<string, FileRecord>>(new Map());
export const selectedBytes = computed(() => [...selection.value.values()].reduce((sum, one) => sum + one.file_size, 0));
/** Where a range starts: the record that was selected last without Shift. */
export const anchor = signal<FileRecord | null>(null);

export function clearSelection(): void {
  if (selection.peek().size > 0) selection.value = new Map();
  anchor.value = null;
}

export function toggle(record: FileRecord): void {
  const next = new Map(selection.peek());
  if (!next.delete(record.file_id)) next.set(record.file_id, record);
  selection.value = next;
  anchor.value = record;
}

export function add(records: Iterable<FileRecord>): void {
  const next = new Map(selection.peek());
  for (const record of records) next.set(record.file_id, record);
  selection.value = next;
}

export function drop(ids: Iterable<string>): void {
  const next = new Map(selection.peek());
  let changed = false;
  for (const id of ids) changed = next.delete(id) || changed;
  if (changed) selection.value = next;
}

onEnd(clearSelection);
