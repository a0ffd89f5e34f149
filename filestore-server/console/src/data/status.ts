/** The state of the whole service, asked again every 5 s, and every second while something runs. */

import { call, type StatusReply } from '../api/call';
import { useLoad, type Loaded } from './load';

export function useStatus(): Loaded<StatusReply> {
  return useLoad(
    'status',
    async (signal) => (await call('GET', '/admin/status', { signal })).data,
    (status) => (status && runs(status) ? 1_000 : 5_000),
  );
}

function runs(status: StatusReply): boolean {
  return status.migrations.length > 0 || status.checks.running !== null || status.sync.syncing > 0;
}
