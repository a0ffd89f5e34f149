/** The backup destinations with their snapshots. */

import { call, isAbort, type Snapshot } from '../../api/call';
import { useLoad, type Loaded } from '../../data/load';

export interface Destination {
  name: string;
  /** Oldest first. Absent if the destination cannot be read. */
  snapshots?: Snapshot[];
  error?: unknown;
}

/** Reads all destinations. One that cannot be read, for example an unmounted disk, does not hide the others. */
export function useSnapshots(): Loaded<Destination[]> {
  return useLoad(
    'backups',
    async (signal) => {
      const { data } = await call('GET', '/admin/backups', { signal });
      return Promise.all(data.map(({ name }) => read(name, signal)));
    },
    60_000,
  );
}

async function read(name: string, signal: AbortSignal): Promise<Destination> {
  try {
    const { data } = await call('GET', '/admin/backups/{destination}', { path: { destination: name }, signal });
    return { name, snapshots: data };
  } catch (error) {
    if (isAbort(error)) throw error;
    return { name, error };
  }
}
