// The queue of uploads: three at a time, each with its own fate. It outlives pages and sessions, but not the tab.
import { batch, effect, signal, untracked } from '@preact/signals';
import { cancelUpload, fingerprintOf, Problem, upload, uploadBatch, type StoredUpload } from 'filestore-client';
import { serverNow } from '../api/call';
import { refreshUsage, usage } from '../data/place';
import { keepAwake, may, me, onEnd } from '../session';
import { announce } from '../shell/live';
import { counted } from '../text/sizes';
import { refusal } from './checks';
import { bytes, store } from './connection';
import { Item, type State, type Target } from './item';

const AT_A_TIME = 3;
/** Pause between two looks at the sums, in milliseconds. */
const PUBLISH_MS = 150;
/** The speed is that of these last milliseconds. */
const SPEED_MS = 12_000;

/** All items, in the order of their arrival. */
const items: Item[] = [];
/** The newest item of each file. */
const byMark = new Map<string, Item>();
/** Places in `items` before this one have none that waits. */
let head = 0;
let running = 0;

/** Grows when items come, go, or change their state. */
export const version = signal(0);

/** Sums over the queue, of files and bytes. */
export interface Totals {
  files: number;
  stored: number;
  failed: number;
  paused: number;
  active: number;
  bytes: number;
  storedBytes: number;
  sentBytes: number;
  /** Bytes a second, by what the server has acknowledged. Null at the start. */
  speed: number | null;
}

const NONE: Totals = {
  files: 0, stored: 0, failed: 0, paused: 0, active: 0, bytes: 0, storedBytes: 0, sentBytes: 0, speed: null,
};
export const totals = signal<Totals>(NONE);

/** Everything in the queue. Read `version` to hear of changes. */
export const all = (): readonly Item[] => items;

// What goes in.

const UNREADABLE = 'It cannot be read: it was moved or changed, or it may not be opened. Choose it again.';

/** Puts files into the queue. A file that is there already and not stored is tried again instead. Returns how many are. */
export function add(files: readonly File[], target: Target): number {
  let known = 0;
  const used = usage.peek()?.organization_id === target.organization ? usage.peek() : null;
  const ahead = pending(target.organization);
  for (const file of files) {
    const item = new Item([file], target);
    const before = byMark.get(item.mark);
    if (before && before.state !== 'stored') {
      known += 1;
      if (before.state === 'failed' || before.state === 'paused') {
        before.files = [file];
        resume(before);
      }
      continue;
    }
    const problem = refusal(file, me.peek()?.limits, used, ahead);
    if (problem === null) {
      ahead.bytes += file.size;
      ahead.files += 1;
    } else {
      item.problem = problem;
      item.state = 'failed';
    }
    byMark.set(item.mark, item);
    items.push(item);
  }
  changed();
  pump();
  return known;
}

/** Shows files and folders that the browser could not read as failed, so that nobody takes them for stored. */
export function addUnread(names: readonly string[], target: Target): void {
  for (const name of names) {
    const item = new Item([new File([], name)], target);
    item.problem = UNREADABLE;
    item.state = 'failed';
    items.push(item);
  }
  changed();
}

/** Puts files into the queue that are stored together or not at all. */
export function addBatch(files: readonly File[], target: Target): void {
  items.push(new Item([...files], target));
  changed();
  pump();
}

function pending(organization: string): { bytes: number; files: number } {
  const open = items.filter((item) => item.target.organization === organization && !ended(item));
  return {
    bytes: open.reduce((sum, item) => sum + item.size, 0),
    files: open.reduce((sum, item) => sum + item.count, 0),
  };
}

const ended = (item: Item): boolean => item.state === 'stored' || item.state === 'failed';

// What runs.

function pump(): void {
  if (me.peek() === null || !may('write')) return;
  while (running < AT_A_TIME) {
    while (head < items.length && items[head]?.state !== 'waiting') head += 1;
    const next = items[head];
    if (!next) return;
    void run(next);
  }
}

async function run(item: Item): Promise<void> {
  const stop = new AbortController();
  item.stop = stop;
  running += 1;
  set(item, 'running');
  try {
    item.record = await send(item, stop.signal);
    item.files = [];
    item.stored = item.sent = item.size;
    set(item, 'stored');
  } catch (error) {
    if (!stop.signal.aborted && !(error instanceof Problem && error.status === 401)) {
      item.problem = isUnreadable(error) ? UNREADABLE : error;
      set(item, 'failed');
    } else if (item.state === 'running' && item.stop === stop) {
      // The session has ended. After signing in, it goes on.
      set(item, 'waiting');
    }
  } finally {
    if (item.stop === stop) item.stop = null;
    running -= 1;
    pump();
    told();
  }
}

const isUnreadable = (error: unknown): boolean =>
  error instanceof DOMException && ['NotReadableError', 'NotFoundError'].includes(error.name);

async function send(item: Item, signal: AbortSignal): Promise<Item['record']> {
  const { organization: organization_id, subSystem: sub_system } = item.target;
  const options = {
    organization_id,
    sub_system,
    signal,
    // Offline, an upload waits as long as it takes.
    patienceMs: Infinity,
    onProgress: (progress: Parameters<Item['note']>[0]) => {
      item.note(progress);
      publish();
    },
  };
  const [file] = item.files;
  if (item.count === 1 && file) return upload(bytes, file, { ...options, store });
  const [first] = await uploadBatch(bytes, item.files, options);
  return first ?? null;
}

/** Says when the last of them is done. */
function told(): void {
  const { active, stored, failed } = (publishNow(), totals.peek());
  if (active > 0 || stored + failed === 0) return;
  refreshUsage(500);
  announce(`${counted(stored, 'file')} stored${failed > 0 ? `, ${failed} failed` : ''}`);
}

// What the visitor asks for.

export function pause(item: Item): void {
  if (item.state !== 'running' && item.state !== 'waiting') return;
  set(item, 'paused');
  item.stop?.abort();
}

export function resume(item: Item): void {
  if (item.state !== 'paused' && item.state !== 'failed') return;
  item.problem = null;
  set(item, 'waiting');
  pump();
}

export function pauseAll(): void {
  batch(() => items.forEach(pause));
}

export function resumeAll(): void {
  batch(() => items.filter((item) => item.state === 'paused').forEach(resume));
}

export function retryFailed(): void {
  batch(() => items.filter((item) => item.canRetry).forEach(resume));
}

/** Takes an item out of the queue, after the server has removed what it has of it. */
export async function remove(item: Item): Promise<void> {
  if (!items.includes(item)) return;
  const entry = item.state === 'stored' ? undefined : await entryOf(item);
  pause(item);
  if (entry) await cancelUpload(bytes, entry, store);
  items.splice(items.indexOf(item), 1);
  byMark.delete(item.mark);
  head = 0;
  changed();
}

/** Takes out what is stored. With `failed`, also what has failed. */
export function clear(failed = false): void {
  const rest = items.filter((item) => !(item.state === 'stored' || (failed && item.state === 'failed')));
  items.length = 0;
  byMark.clear();
  for (const item of rest) {
    items.push(item);
    byMark.set(item.mark, item);
  }
  head = 0;
  samples.length = 0;
  changed();
}

async function entryOf(item: Item): Promise<StoredUpload | undefined> {
  const fingerprint = fingerprintFor(item);
  return fingerprint === undefined ? undefined : store.get(fingerprint).catch(() => undefined);
}

const fingerprintFor = ({ file, target }: Item): string | undefined => file && fingerprintAt(file, target);

/** The fingerprint of a file at a target, as in the store. */
export const fingerprintAt = (file: File, { organization: organization_id, subSystem: sub_system }: Target): string | undefined =>
  fingerprintOf(bytes, file, { organization_id, sub_system });

/** True if the file of an unfinished upload is in the queue. */
export function isQueued(entry: StoredUpload): boolean {
  return items.some((item) => item.file?.size === entry.size && fingerprintFor(item) === entry.fingerprint);
}

// What the pages see.

function set(item: Item, state: State): void {
  item.state = state;
  if (state === 'waiting') head = Math.min(head, Math.max(0, items.indexOf(item)));
  // What was sent and not stored is sent again.
  if (state !== 'running') item.sent = item.stored;
  item.changed.value += 1;
  changed();
}

function changed(): void {
  version.value += 1;
  publish();
}

let soon: ReturnType<typeof setTimeout> | undefined;
function publish(): void {
  soon ??= setTimeout(publishNow, PUBLISH_MS);
}

const samples: [at: number, bytes: number][] = [];

function publishNow(): void {
  clearTimeout(soon);
  soon = undefined;
  const sums: Totals = { ...NONE };
  for (const item of items) {
    // Files that cannot be sent are told apart, and do not count for what is to be done.
    if (item.state === 'failed') sums.failed += item.count;
    else {
      sums.files += item.count;
      sums.bytes += item.size;
      sums.storedBytes += item.stored;
      sums.sentBytes += item.sent;
    }
    if (item.state === 'stored') sums.stored += item.count;
    if (item.state === 'paused') sums.paused += item.count;
    if (item.state === 'running' || item.state === 'waiting') sums.active += item.count;
  }
  sums.speed = speedAt(sums);
  totals.value = sums;
}

function speedAt(sums: Totals): number | null {
  if (sums.active === 0) {
    samples.length = 0;
    return null;
  }
  const now = serverNow();
  samples.push([now, sums.storedBytes]);
  while (samples.length > 2 && (samples[0]?.[0] ?? now) < now - SPEED_MS) samples.shift();
  const [since, before] = samples[0] ?? [now, sums.storedBytes];
  return now - since < 1000 || sums.storedBytes <= before ? null : ((sums.storedBytes - before) * 1000) / (now - since);
}

let wasAwake = 0;
effect(() => {
  const isAwake = totals.value.active > 0 ? 1 : 0;
  if (isAwake === wasAwake) return;
  keepAwake.value = keepAwake.peek() + isAwake - wasAwake;
  wasAwake = isAwake;
});

effect(() => {
  // The end of a session ends its requests. The files stay, and go on with the next key.
  const isSignedIn = me.value !== null;
  untracked(() => {
    if (isSignedIn) pump();
    else for (const item of items) item.stop?.abort();
  });
});

// What is done says which files an organization has, so it goes with the session. What has failed stays, as what waits
// does: it is shown after signing in, and can be tried again.
onEnd(() => clear());

addEventListener('beforeunload', (event) => {
  if (totals.peek().active > 0) event.preventDefault();
});
