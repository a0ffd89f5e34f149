/** The purge by hand: counted first, then confirmed. */

import { useState } from 'preact/hooks';
import { call, type PurgeReport } from '../../api/call';
import { useLoad } from '../../data/load';
import { FormDialog } from '../../parts/dialog';
import { TextField } from '../../parts/controls/field';
import { Shown } from '../../parts/notes/loaded';
import { Notice } from '../../parts/notes/notice';
import { say } from '../../parts/notes/toast';
import { count, counted, size } from '../../text/sizes';

/** `now` purges deleted files without their grace period: nobody can restore them afterwards. */
export function PurgeDialog({ now, onClose, onDone }: { now: boolean; onClose: () => void; onDone: () => void }) {
  const plan = useLoad(`purge plan ${now}`, async (signal) =>
    (await call('POST', '/admin/purge/run', { body: { dry_run: true, ...(now && { now }) }, signal })).data,
  );
  const [typed, setTyped] = useState('');
  const files = plan.data?.purged ?? 0;
  const work = plan.data ? plan.data.purged + plan.data.expired + plan.data.blobs_removed : 0;
  const asksNumber = now && files > 0;
  const ready = work > 0 && (!asksNumber || typed.replaceAll(',', '').trim() === String(files));

  const run = async () => {
    const { data } = await call('POST', '/admin/purge/run', { body: now ? { now } : {} });
    say(result(data));
    onDone();
    onClose();
  };

  return (
    <FormDialog
      title={now ? 'Purge all deleted files now' : 'Purge what is due'}
      verb="Purge"
      danger
      cautious
      disabled={!ready}
      onClose={onClose}
      act={run}
    >
      <Shown of={plan} rows={2} what="Plan">
        {(data) => (
          <div class="dialog-text">
            <p>
              <strong>{counted(data.purged, 'file')}</strong> of {size(data.purged_bytes)}
              {data.blobs_removed > 0 && <>, {counted(data.blobs_removed, 'replaced blob')}</>}
              {data.expired > 0 && <>, {counted(data.expired, 'expired temporary file')}</>}.
            </p>
            <p>
              {now
                ? 'Their grace period is ignored. The bytes are removed everywhere, and no request brings them back.'
                : 'Their grace period has ended. The server removes them by itself too.'}
            </p>
            {!now && data.waiting > 0 && <p>{counted(data.waiting, 'further file')} can still be restored and stay.</p>}
            {data.is_paused && (
              <Notice kind="warn">
                <p>The purge is paused because the clock of the server jumped forward.</p>
              </Notice>
            )}
          </div>
        )}
      </Shown>
      {asksNumber && <TextField label={`Type ${files} to confirm`} value={typed} onInput={setTyped} inputMode="numeric" autoComplete="off" mono />}
    </FormDialog>
  );
}

function result(report: PurgeReport): string {
  const failed = report.failed > 0 ? `, ${count(report.failed)} failed and are tried again` : '';
  return `${counted(report.purged, 'file')} of ${size(report.purged_bytes)} purged${failed}`;
}
