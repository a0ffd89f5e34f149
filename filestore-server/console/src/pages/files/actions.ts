// What can be done with files from a list: move to the trash and back, download, copy ids.
import { apiRoot, call, type FileRecord } from '../../api/call';
import { bulk, runBulk, type Outcome } from '../../data/bulk';
import { current } from '../../data/current';
import { admits } from '../../data/listing';
import { refreshUsage } from '../../data/place';
import { drop } from '../../data/selection';
import { ask } from '../../parts/dialog';
import { say, sayError } from '../../parts/notes/toast';
import { me } from '../../session';
import { announce } from '../../shell/live';
import { count, counted } from '../../text/sizes';
import { duration } from '../../text/times';

const files = (records: readonly FileRecord[]): string => counted(records.length, 'file');

function tell(outcome: Outcome, did: string, what: string): void {
  if (outcome.error) sayError(`${what} stopped after ${counted(outcome.done.length, 'file')}`, outcome.error);
  else if (outcome.refused.length > 0 && outcome.done.length > 0) announce(`${did}, ${count(outcome.refused.length)} not`);
}

/** Moves files to the trash: at once if they can come back, else after a question. */
export async function moveToTrash(records: readonly FileRecord[]): Promise<boolean> {
  if (records.length === 0) return false;
  if (bulk.peek()) return false;
  const grace = me.peek()?.limits.purge_grace_secs ?? 0;
  let moved = false;
  const act = async () => {
    const outcome = await runBulk('trash', records, (done) => {
      const ids = new Set(done.map((one) => one.file_id));
      current.peek()?.remove(ids);
      drop(ids);
    });
    refreshUsage(100);
    const did = `${files(outcome.done)} moved to the trash`;
    tell(outcome, did, 'Moving to the trash');
    if (outcome.done.length === 0) return;
    moved = true;
    if (grace === 0) say(`${files(outcome.done)} deleted`);
    else say(`${did}. ${outcome.done.length === 1 ? 'It' : 'They'} can be restored for ${duration(grace * 1000)}`, () => restore(outcome.done));
  };
  if (grace > 0) {
    await act();
    return moved;
  }
  const many = records.length > 100;
  await ask({
    title: `Delete ${files(records)}?`,
    text: 'This server keeps no trash (purge_grace_secs is 0): deleted files cannot be restored.',
    verb: 'Delete',
    danger: true,
    ...(many ? { typed: String(records.length) } : {}),
    act,
  });
  return moved;
}

/** Takes files out of the trash. */
export async function restore(records: readonly FileRecord[]): Promise<void> {
  if (bulk.peek()) return;
  const outcome = await runBulk('restore', records, (done) => {
    const ids = new Set(done.map((one) => one.file_id));
    const listing = current.peek();
    if (listing?.filter.deleted) listing.remove(ids);
    else listing?.insert(done.map((one) => ({ ...one, purge_status: null, deleted_at: null, purge_due_at: null })).filter((one) => admits(listing.filter, one)));
    drop(ids);
  });
  refreshUsage(100);
  tell(outcome, `${files(outcome.done)} restored`, 'Restoring');
  if (outcome.done.length > 0) say(`${files(outcome.done)} restored`);
}

/** A signed address on this page's own origin, for players, new tabs and downloads. */
export async function ownUrl(record: FileRecord, options: { expires_in_s: number; disposition?: 'inline' | 'attachment' }): Promise<string> {
  const path = { file_id: record.file_id };
  // Private bytes stay out of shared caches, and bytes at a provider come through the service.
  const body = { ...options, cache: 'private' as const, redirect: false };
  const { data } = await call('POST', '/files/{file_id}/sign', { path, body });
  const rest = data.url.slice(data.url.indexOf('/api/v1/') + '/api/v1/'.length);
  return new URL(rest, apiRoot).href;
}

/** Most browsers ask before a page downloads more files than this in turn. */
export const MOST_DOWNLOADS = 10;

/** Downloads files by signed addresses, so that the bytes do not pass through the page. */
export async function download(records: readonly FileRecord[]): Promise<void> {
  try {
    for (const record of records.slice(0, MOST_DOWNLOADS)) {
      const link = document.createElement('a');
      link.href = await ownUrl(record, { expires_in_s: 60, disposition: 'attachment' });
      link.rel = 'noopener';
      link.download = '';
      link.click();
      if (records.length > 1) await new Promise((go) => setTimeout(go, 400));
    }
  } catch (error) {
    sayError('Not downloaded', error);
  }
}
