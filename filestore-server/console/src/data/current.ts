// The listing that is shown or was shown last, kept up to date by events. The page of one file walks along it.
import { effect, signal } from '@preact/signals';
import { call, canRetry, type FileRecord, type LogEvent } from '../api/call';
import { onEnd } from '../session';
import { judge } from './bulk';
import { drop } from './selection';
import { onEvent, onGap } from './events';
import { admits, filterKey, Listing, type Filter } from './listing';
import { refreshUsage } from './place';

export const current = signal<Listing | null>(null);

/** Opens the listing of a filter, or gives back the one that is open. */
export function openListing(filter: Filter): Listing {
  const open = current.peek();
  if (open && filterKey(open.filter) === filterKey(filter)) return open;
  const next = new Listing(filter);
  open?.close();
  current.value = next;
  void next.more();
  return next;
}

/** A record changed on this page: it is shown at once as the server returned it. */
export function noteRecord(record: FileRecord): void {
  current.peek()?.update(record);
}

const stale = new Set<string>();
/** Of these, the files that are new: they come in at the top, if the filter admits them. */
const arrived = new Set<string>();
let reading: ReturnType<typeof setTimeout> | undefined;

function reread(id: string): void {
  stale.add(id);
  reading ??= setTimeout(() => void readStale(), 400);
}

async function readStale(): Promise<void> {
  const listing = current.peek();
  const ids = [...stale];
  stale.clear();
  reading = undefined;
  if (!listing) return;
  if (ids.length > 1000) return listing.refresh();
  for (let from = 0; from < ids.length; from += 100) {
    const part = ids.slice(from, from + 100);
    try {
      // A record that is gone is absent, and has its own event.
      const { data } = await call('GET', '/files', { query: { ids: part.join() } });
      if (current.peek() !== listing) return;
      for (const record of data.items) take(listing, record);
    } catch (error) {
      // What could not be read is read later.
      if (canRetry(error)) for (const id of part) reread(id);
    }
    for (const id of part) arrived.delete(id);
  }
}

function take(listing: Listing, record: FileRecord): void {
  const { file_id } = record;
  const isHere = listing.indexOf(file_id) >= 0;
  if (!admits(listing.filter, record)) {
    if (isHere) listing.remove(new Set([file_id]));
  } else if (isHere) listing.update(record);
  else if (arrived.has(file_id)) listing.above.value = new Set([...listing.above.peek(), file_id]);
  else listing.insert([record]);
}

function concerns(event: LogEvent, filter: Filter): boolean {
  if (event.data.organization_id !== filter.organization) return false;
  return filter.sub_system === undefined || event.data.sub_system === undefined || event.data.sub_system === filter.sub_system;
}

/** Whether every file of the sub-system is in the listing, so that an upload is surely new in it. */
const isPlain = (filter: Filter): boolean =>
  !filter.mime_type && !filter.name_contains && !filter.created_after && !filter.created_before && !filter.sync_status && filter.metadata.length === 0;

onEvent((event) => {
  const listing = current.peek();
  const id = event.data.file_id;
  if (event.type.startsWith('file.')) refreshUsage(800);
  if (!listing || !id || !concerns(event, listing.filter)) return;
  const verdict = judge(id, event.type, event.timestamp);
  if (verdict === 'ask') reread(id);
  if (verdict !== 'act') return;
  const { filter } = listing;
  const arrives = filter.deleted ? ['file.deleted', 'file.expired'] : ['file.uploaded', 'file.put_back'];
  const leaves = filter.deleted ? ['file.restored', 'file.purged'] : ['file.deleted', 'file.expired', 'file.purged'];
  if (leaves.includes(event.type)) {
    listing.remove(new Set([id]));
    drop([id]);
  } else if (arrives.includes(event.type)) {
    if (listing.indexOf(id) >= 0) return;
    if (isPlain(filter)) listing.above.value = new Set([...listing.above.peek(), id]);
    else {
      // Whether the filter admits it is known only from the record.
      arrived.add(id);
      reread(id);
    }
  } else if (event.type === 'file.restored') {
    reread(id);
  } else if (listing.indexOf(id) >= 0) {
    reread(id);
  }
});
onGap((isStart) => {
  const listing = current.peek();
  if (!listing || listing.isFresh) return;
  void (isStart ? listing.head() : listing.refresh().then(() => listing.head()));
});

/** Lets new files in by themselves while the view is at its top. */
export function letIn(atTop: { readonly value: boolean }): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = effect(() => {
    const listing = current.value;
    if (!listing || !atTop.value || listing.above.value.size === 0) return;
    timer ??= setTimeout(() => {
      timer = undefined;
      if (atTop.value && current.peek() === listing) void listing.head();
    }, 350);
  });
  return () => {
    clearTimeout(timer);
    end();
  };
}

onEnd(() => {
  current.peek()?.close();
  current.value = null;
  stale.clear();
  arrived.clear();
});
