// The seven sizes of a picture beside each other, with their true bytes and addresses.
import { useEffect, useState } from 'preact/hooks';
import { VARIANT_SIZES, variantUrl, type VariantSize } from 'filestore-client';
import { Problem, server, type FileRecord } from '../../api/call';
import { Button } from '../../parts/controls/button';
import { CopyButton } from '../../parts/values/copy';
import { Segmented } from '../../parts/controls/segmented';
import { Size } from '../../parts/values/size';
import { detailOf } from '../../text/words';
import { count, size as sizeWords } from '../../text/sizes';
import { useBytes, variant, type FitName, type Picture } from './blob';
import { LinkDialog } from './link';

/** How large each variant is drawn: true to each other. */
const SCALE = 0.118;

export function Variants({ record }: { record: FileRecord }) {
  const [fit, setFit] = useState<FitName>('cover');
  const [chosen, setChosen] = useState<VariantSize>(400);
  const [known, setKnown] = useState<Partial<Record<VariantSize, Picture>>>({});
  const [error, setError] = useState<unknown>(null);
  const [link, setLink] = useState(false);
  const key = `${record.file_id}@${record.version} ${fit}`;
  useEffect(() => {
    setKnown({});
    setError(null);
  }, [key]);
  // A picture that no variant can be made of has no panel: the preview has said why.
  if (error instanceof Problem && error.status === 422) return null;
  const ratio = record.width && record.height ? record.width / record.height : 1;
  const picture = known[chosen];
  const longest = Math.max(record.width ?? 0, record.height ?? 0);
  const passes = longest > 0 && longest <= chosen;
  const [width, height] = fit === 'cover'
    ? [Math.min(chosen, record.width ?? chosen, record.height ?? chosen), Math.min(chosen, record.width ?? chosen, record.height ?? chosen)]
    : ratio > 1 ? [chosen, Math.max(1, Math.round(chosen / ratio))] : [Math.max(1, Math.round(chosen * ratio)), chosen];
  const times = picture && picture.bytes > 0 ? record.file_size / picture.bytes : 0;
  return (
    <section class="variants" aria-label="Variants">
      <header class="variants-head">
        <h2>Variants</h2>
        <p class="quiet-text only-wide">WebP, upright, in sRGB</p>
        <Segmented label="Part of the picture" value={fit} onChange={setFit} size="small" segments={[
          { value: 'cover', label: 'Square' },
          { value: 'inside', label: 'Whole picture' },
        ]} />
      </header>
      <div class="variants-row">
        <div class="variants-list" role="radiogroup" aria-label="Size">
          {VARIANT_SIZES.map((size) => (
            <One key={`${key} ${size}`} record={record} size={size} fit={fit} ratio={ratio} chosen={size === chosen} onChoose={() => setChosen(size)}
              onLoad={(loaded) => setKnown((before) => ({ ...before, [size]: loaded }))} onFail={setError} />
          ))}
        </div>
        <div class="variants-facts">
          <p class="variants-title number">{passes ? `${record.width} × ${record.height}` : `${width} × ${height}`}</p>
          <p class="quiet-text">
            {picture
              ? passes || picture.bytes === record.file_size
                ? `${sizeWords(picture.bytes)}, the original: it is no larger`
                : `${sizeWords(picture.bytes)}, ${times >= 2 ? `${count(Math.round(times))} times smaller than the original` : 'about as large as the original'}`
              : error !== null ? detailOf(error) : '…'}
          </p>
          <div class="variants-actions">
            <CopyButton size="small" text={variantUrl(server, record, chosen, { fit })}>Copy URL</CopyButton>
            <Button size="small" icon="signature" onClick={() => setLink(true)}>Share</Button>
          </div>
        </div>
      </div>
      {link && <LinkDialog records={[record]} size={{ size: chosen, fit }} onClose={() => setLink(false)} />}
    </section>
  );
}

function One({ record, size, fit, ratio, chosen, onChoose, onLoad, onFail }: {
  record: FileRecord;
  size: VariantSize;
  fit: FitName;
  ratio: number;
  chosen: boolean;
  onChoose: () => void;
  onLoad: (picture: Picture) => void;
  onFail: (error: unknown) => void;
}) {
  const { picture, error } = useBytes(`${record.file_id}@${record.version} ${size} ${fit}`, variant(record, size, fit));
  useEffect(() => {
    if (picture) onLoad(picture);
    if (error !== null) onFail(error);
  }, [picture, error]);
  const side = Math.round(size * SCALE) + 5;
  const [width, height] = fit === 'cover' ? [side, side] : ratio > 1 ? [side, side / ratio] : [side * ratio, side];
  return (
    <label class={`variant ${chosen ? 'chosen' : ''}`}>
      <input type="radio" name="variant" class="unseen" checked={chosen} onChange={onChoose} aria-label={`${size} pixels`} />
      <span class="variant-picture" style={{ width: `${width}px`, height: `${height}px` }}>
        {picture && <img src={picture.url} alt="" />}
      </span>
      <span class="variant-size number">{size}</span>
      <span class="variant-bytes">{picture ? <Size bytes={picture.bytes} /> : error !== null ? 'failed' : '…'}</span>
    </label>
  );
}
