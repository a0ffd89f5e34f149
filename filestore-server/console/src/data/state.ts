// What a record's state means, as a shape and words.
import { serverNow, type FileRecord } from '../api/call';
import type { StateKind } from '../parts/notes/state';
import { short } from '../text/times';
import { organizations } from './place';

export interface Told {
  kind: StateKind;
  words: string;
  /** Whether it is worth a mark where normality has none. */
  notable: boolean;
}

/** The provider that the organization's new files go to, if it has a binding. */
export function boundTo(organization: string): string | null {
  const binding = organizations.value?.find((one) => one.organization_id === organization)?.binding;
  return binding && binding.storage_provider !== 'LOCAL' ? binding.storage_provider : null;
}

/** Time left of an instant, or null if it has passed. */
export function left(until: string | null): number | null {
  if (until === null) return null;
  const ms = Date.parse(until) - serverNow();
  return ms > 0 ? ms : null;
}

/** The state of a live file in a few words. */
export function stateOf(record: FileRecord): Told {
  if (record.status === 'TEMP') {
    const ms = left(record.expires_at);
    return { kind: 'warn', words: ms === null ? 'Temporary, expiring' : `Temporary, ${short(ms)}`, notable: true };
  }
  const to = boundTo(record.organization_id);
  switch (record.sync_status) {
    case 'FAILED':
      return { kind: 'bad', words: to ? `Not copied to ${to}` : 'Copy failed', notable: true };
    case 'PENDING':
      if (record.awaits_copy === false) break;
      return { kind: 'wait', words: to ? `Waits for ${to}` : 'Waits for its copy', notable: true };
    case 'SYNCING':
      return { kind: 'busy', words: 'Copying', notable: true };
    default:
      break;
  }
  if (record.storage_location === 'CLOUD') return { kind: 'ok', words: `At ${record.storage_provider}`, notable: false };
  return { kind: 'ok', words: record.status === 'THUMBNAIL' ? 'Thumbnail' : 'Stored', notable: false };
}
