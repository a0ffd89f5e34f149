/** The dialog that gives a key a new secret. */

import { useState } from 'preact/hooks';
import { call, type KeyReply } from '../../api/call';
import { Radios } from '../../parts/controls/checkbox';
import { FormDialog } from '../../parts/dialog';
import { me, refreshMe, renewKey } from '../../session';
import { spoken } from '../../text/names';
import { freshKey } from './fresh';

export const OVERLAPS = [
  { value: '0', label: 'None' },
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '24 hours' },
  { value: '604800', label: '7 days' },
] as const;
export type Overlap = (typeof OVERLAPS)[number]['value'];

export function RotateDialog({
  target,
  onClose,
  onRotated,
}: {
  target: KeyReply;
  onClose: () => void;
  onRotated: () => void;
}) {
  const [overlap, setOverlap] = useState<Overlap>('86400');
  const own = me.value?.key?.id === target.id;

  const rotate = async () => {
    const make = async () => {
      const path = { key_id: target.id };
      const { data } = await call('POST', '/admin/keys/{key_id}/rotate', { path, body: { overlap_s: Number(overlap) } });
      // Shown before anything else can fail: nobody gets it a second time.
      freshKey.value = { key: data, rotated: true };
      return data;
    };
    if (own) {
      await renewKey(make);
      void refreshMe().catch(() => undefined);
    } else await make();
    onRotated();
  };

  return (
    <FormDialog title={`Rotate ${spoken(target.name)}`} verb="Rotate" danger={overlap === '0'} onClose={onClose} act={rotate}>
      <p class="dialog-text">The key gets a new secret, which is shown once. Its id, scopes and organizations stay.</p>
      <Radios legend="The secret before is accepted for" value={overlap} onChange={setOverlap} choices={OVERLAPS} row />
      <p class="dialog-text">
        {overlap === '0'
          ? 'Programs with the secret of now get 401 at once. Choose this if the secret leaked.'
          : 'Programs with the secret of now keep working during this time. Replace the secret in each of them before it ends.'}
      </p>
      {own && <p class="dialog-text">This session continues with the new secret.</p>}
    </FormDialog>
  );
}
