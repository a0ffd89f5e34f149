// Uploads that an earlier visit has begun. Their files must be chosen again: a page may not keep them.
import { effect, signal } from '@preact/signals';
import { cancelUpload, type StoredUpload } from 'filestore-client';
import { me, onEnd } from '../session';
import { bytes, store } from './connection';
import { fingerprintAt, isQueued, version } from './queue';

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

/** Finds the unfinished uploads of files, in any sub-system or in one. Those of the queue go on by themselves. */
export async function begun(
  organization: string,
  subSystem: string | null,
  files: readonly File[],
): Promise<Map<File, StoredUpload>> {
  const all = await store.list().catch(() => []);
  const known = new Map<string, StoredUpload>();
  for (const entry of all) {
    const isThere = entry.organization_id === organization && (subSystem ?? entry.sub_system) === entry.sub_system;
    if (entry.server === bytes.url && isThere && !isQueued(entry)) known.set(entry.fingerprint, entry);
  }
  const found = new Map<File, StoredUpload>();
  const places = new Set([...known.values()].map((entry) => entry.sub_system));
  for (const file of files) {
    for (const place of places) {
      const entry = known.get(fingerprintAt(file, { organization, subSystem: place }) ?? '');
      if (entry) found.set(file, entry);
    }
  }
  return found;
}

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
