/** The backup destinations with their snapshots. */

import { signal } from '@preact/signals';
import { call, isAbort, Problem, type Snapshot } from '../../api/call';
import { useLoad, type Loaded } from '../../data/load';
import { onEnd } from '../../session';

export interface Destination {
  name: string;
  /** Oldest first. Absent if the destination cannot be read. While a run works there, those that were there before. */
  snapshots?: Snapshot[];
  /** A run works there, so its snapshots cannot be read. */
  isBusy?: boolean;
  error?: unknown;
}

/** A backup that this page asked for, until its snapshot is in the list. */
export interface Making {
  startedAt: number;
  /** The newest snapshot before. */
  before: string | undefined;
  wasBusy: boolean;
  /** How it ended: with a snapshot or without. */
  made?: Snapshot | null;
}

export const makings = signal<ReadonlyMap<string, Making>>(new Map());
const known = new Map<string, Snapshot[]>();

export function setMaking(name: string, making: Making | null): void {
  const next = new Map(makings.peek());
  if (making) next.set(name, making);
  else next.delete(name);
  makings.value = next;
}

/** Reads all destinations. One that cannot be read, for example an unmounted disk, does not hide the others. */
export function useSnapshots(): Loaded<Destination[]> {
  const isAwaited = [...makings.value.values()].some((one) => one.made === undefined);
  return useLoad(
    'backups',
    async (signal) => {
      const { data } = await call('GET', '/admin/backups', { signal });
      return Promise.all(data.map(({ name }) => read(name, signal)));
    },
    (data) => (isAwaited || data?.some((one) => one.isBusy) ? 2_000 : 60_000),
  );
}

async function read(name: string, signal: AbortSignal): Promise<Destination> {
  const making = makings.peek().get(name);
  const isAwaited = making !== undefined && making.made === undefined;
  try {
    const { data } = await call('GET', '/admin/backups/{destination}', { path: { destination: name }, signal });
    known.set(name, data);
    const newest = data.at(-1);
    if (isAwaited && (making.wasBusy || newest?.snapshot_id !== making.before)) {
      setMaking(name, { ...making, made: newest && newest.snapshot_id !== making.before ? newest : null });
    }
    return { name, snapshots: data };
  } catch (error) {
    if (isAbort(error)) throw error;
    if (!(error instanceof Problem) || error.code !== 'conflict') return { name, error };
    if (isAwaited && !making.wasBusy) setMaking(name, { ...making, wasBusy: true });
    return { name, snapshots: known.get(name) ?? [], isBusy: true };
  }
}

onEnd(() => {
  makings.value = new Map();
  known.clear();
});
