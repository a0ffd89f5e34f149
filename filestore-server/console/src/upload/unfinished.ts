// Uploads that an earlier visit has begun. Their files must be chosen again: a page may not keep them.
import { effect, signal } from '@preact/signals';
import { cancelUpload, type StoredUpload } from 'filestore-client';
import { me, onEnd } from '../session';
import { bytes, store } from './connection';
import { isQueued, version } from './queue';

/** The server forgets an upload after seven days at the latest. */
const LIFETIME_MS = 7 * 86_400_000;

/** Unfinished uploads at this server whose files are not in the queue. */
export const unfinished = signal<StoredUpload[]>([]);

/** Whether the key may know of it: somebody else may have used this browser before. */
function isOurs({ organization_id }: StoredUpload): boolean {
  const own = me.peek()?.key?.organizations;
  return !own || own.includes('*') || own.includes(organization_id);
}

async function look(): Promise<void> {
  const all = await store.list().catch(() => []);
  const mine: StoredUpload[] = [];
  for (const entry of all) {
    if (entry.server !== bytes.url) continue;
    if (entry.startedAt < Date.now() - LIFETIME_MS) await store.delete(entry.fingerprint).catch(() => undefined);
    else if (!isQueued(entry) && isOurs(entry)) mine.push(entry);
  }
  if (me.peek() !== null) unfinished.value = mine;
}

/** Finds the unfinished uploads of files, whatever their sub-systems. */
export async function begun(organization: string, files: readonly File[]): Promise<Map<File, StoredUpload>> {
  const all = await store.list().catch(() => []);
  const mine = all.filter((entry) => entry.server === bytes.url && entry.organization_id === organization);
  const known = new Map(mine.map((entry) => [mark(entry.name, entry.size, entry.lastModified), entry]));
  const found = new Map<File, StoredUpload>();
  if (known.size === 0) return found;
  for (const file of files) {
    const entry = known.get(mark(file.name, file.size, file.lastModified));
    if (entry) found.set(file, entry);
  }
  return found;
}

const mark = (...parts: (string | number)[]): string => JSON.stringify(parts);

/** Cancels an upload of an earlier visit: the server removes its bytes. */
export async function giveUp(entry: StoredUpload): Promise<void> {
  await cancelUpload(bytes, entry, store);
  await look();
}

/** Forgets the unfinished uploads at this server. The server removes their bytes when they end. */
export async function forgetUnfinished(): Promise<void> {
  for (const entry of await store.list()) if (entry.server === bytes.url) await store.delete(entry.fingerprint);
}

let soon: ReturnType<typeof setTimeout> | undefined;
effect(() => {
  const signedIn = me.value !== null;
  void version.value;
  clearTimeout(soon);
  if (signedIn) soon = setTimeout(() => void look(), 300);
});

onEnd(() => {
  unfinished.value = [];
});
