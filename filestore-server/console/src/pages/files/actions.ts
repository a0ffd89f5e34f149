// What can be done with files from a list: move to the trash and back, download, copy ids.
import { call, server, type FileRecord } from '../../api/call';
import { runBulk, type Outcome } from '../../data/bulk';
import { current } from '../../data/current';
import { refreshUsage } from '../../data/place';
import { drop } from '../../data/selection';
import { ask } from '../../parts/dialog';
import { say, sayError } from '../../parts/toast';
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
  const grace = me.peek()?.limits.purge_grace_secs ?? 0;
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
    if (grace === 0) say(`${files(outcome.done)} deleted`);
    else say(`${did}. ${outcome.done.length === 1 ? 'It' : 'They'} can be restored for ${duration(grace * 1000)}`, () => restore(outcome.done));
  };
  if (grace > 0) {
    await act();
    return true;
  }
  const many = records.length > 100;
  return ask({
    title: `Delete ${files(records)}?`,
    text: 'This server keeps no trash (purge_grace_secs is 0): deleted files cannot be restored.',
    verb: 'Delete',
    danger: true,
    ...(many ? { typed: String(records.length) } : {}),
    act,
  });
}

/** Takes files out of the trash. */
export async function restore(records: readonly FileRecord[]): Promise<void> {
  const outcome = await runBulk('restore', records, (done) => {
    const ids = new Set(done.map((one) => one.file_id));
    const listing = current.peek();
    if (listing?.filter.deleted) listing.remove(ids);
    else listing?.insert(done);
    drop(ids);
  });
  refreshUsage(100);
  tell(outcome, `${files(outcome.done)} restored`, 'Restoring');
  if (outcome.done.length > 0) say(`${files(outcome.done)} restored`);
}

/** Most browsers ask before a page downloads more files than this in turn. */
export const MOST_DOWNLOADS = 10;

/** Downloads files by signed addresses, so that the bytes do not pass through the page. */
export async function download(records: readonly FileRecord[]): Promise<void> {
  try {
    for (const record of records.slice(0, MOST_DOWNLOADS)) {
      const { data } = await call('POST', '/files/{file_id}/sign', {
        path: { file_id: record.file_id },
        body: { expires_in_s: 60, disposition: 'attachment' },
      });
      const link = document.createElement('a');
      link.href = server.link(data.url);
      link.rel = 'noopener';
      link.download = '';
      link.click();
      if (records.length > 1) await new Promise((go) => setTimeout(go, 400));
    }
  } catch (error) {
    sayError('Not downloaded', error);
  }
}
