// Signs addresses that need no key: for how long, of which size, to copy, and as a QR code.
import { useState } from 'preact/hooks';
import { VARIANT_SIZES, type VariantSize } from 'filestore-client';
import { call, server, type FileRecord } from '../../api/call';
import { hasPicture } from '../../data/sheets';
import { Button } from '../../parts/controls/button';
import { Radios } from '../../parts/controls/checkbox';
import { CopyButton } from '../../parts/values/copy';
import { Dialog } from '../../parts/dialog';
import { ErrorLine } from '../../parts/notes/error';
import { SelectField } from '../../parts/controls/field';
import { Qr } from '../../parts/values/qr';
import { Time } from '../../parts/values/time';
import { count, counted } from '../../text/sizes';

const LIVES = [
  { value: '3600', label: '1 hour' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
] as const;
type Life = (typeof LIVES)[number]['value'];

interface Signed {
  urls: string[];
  ends: string;
}

export function LinkDialog({ records, size: firstSize, onClose }: {
  records: readonly FileRecord[];
  /** A variant that was chosen on the page. */
  size?: { size: VariantSize; fit: 'cover' | 'inside' } | null;
  onClose: () => void;
}) {
  const [life, setLife] = useState<Life>('86400');
  const [size, setSize] = useState<string>(firstSize ? String(firstSize.size) : 'original');
  const [signed, setSigned] = useState<Signed | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const pictures = records.every(hasPicture);

  async function sign(): Promise<void> {
    setBusy(true);
    setError(null);
    try {
      const urls: string[] = [];
      let ends = '';
      for (const { file_id } of records) {
        const variant = size === 'original' ? {} : { size: Number(size) as VariantSize, fit: firstSize?.fit ?? 'inside' as const };
        const { data } = await call('POST', '/files/{file_id}/sign', { path: { file_id }, body: { expires_in_s: Number(life), ...variant } });
        urls.push(server.link(data.url));
        if (ends === '' || data.expires_at < ends) ends = data.expires_at;
      }
      setSigned({ urls, ends });
    } catch (problem) {
      setError(problem);
    } finally {
      setBusy(false);
    }
  }

  const change = <T,>(set: (value: T) => void) => (value: T) => {
    set(value);
    setSigned(null);
  };
  const text = signed?.urls.join('\n') ?? '';
  return (
    <Dialog
      title={records.length === 1 ? 'Share by a link' : `Links to ${counted(records.length, 'file')}`}
      onClose={onClose}
      onSubmit={signed ? onClose : sign}
      actions={signed ? (
        <>
          <Button onClick={onClose}>Done</Button>
          <CopyButton text={text} kind="primary">{records.length === 1 ? 'Copy link' : `Copy ${count(records.length)} links`}</CopyButton>
        </>
      ) : (
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" kind="primary" icon="signature" busy={busy}>Make link</Button>
        </>
      )}
    >
      <p class="dialog-text">Everybody who has the link can read {records.length === 1 ? 'the file' : 'these files'} until it ends, without a key.</p>
      <Radios row legend="Ends after" value={life} choices={LIVES} onChange={change(setLife)} />
      {pictures && (
        <SelectField label="Size" value={size} onChange={change(setSize)}
          choices={[{ value: 'original', label: 'Original' }, ...VARIANT_SIZES.map((one) => ({ value: String(one), label: `${one} pixels` }))]} />
      )}
      {error !== null && <ErrorLine error={error} />}
      {signed && (
        <div class="link-result">
          {records.length === 1 && <Qr text={text} label="QR code of the link" size={148} />}
          <div class="link-text">
            <textarea class="input area mono" readOnly rows={records.length === 1 ? 4 : 6} aria-label="Link" value={text} onFocus={(event) => event.currentTarget.select()} />
            <p class="field-hint">
              Ends <Time at={signed.ends} absolute within />. To end it earlier, delete the file or revoke the signing secret.
              {' '}{signed.urls[0]?.startsWith(location.origin) ? 'The address is the one of this page.' : 'The address is the public one of the server.'}
            </p>
          </div>
        </div>
      )}
    </Dialog>
  );
}
