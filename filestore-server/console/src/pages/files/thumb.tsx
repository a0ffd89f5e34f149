// The small picture of a file: blurred placeholder first, then its cell of a contact sheet, else a page with its type.
import { useEffect, useRef, useState } from 'preact/hooks';
import type { FileRecord } from '../../api/call';
import { hasPicture, want } from '../../data/sheets';
import { average, paint } from '../../data/thumbhash';

/** The letters on the page of a file without a picture. */
export function badgeOf(record: Pick<FileRecord, 'ext' | 'mime_type'>): string {
  const word = record.ext || record.mime_type.split('/')[1]?.split(/[+;.-]/)[0] || '';
  return word.slice(0, 4).toUpperCase();
}

function drawHash(canvas: HTMLCanvasElement, hash: string): void {
  const painted = paint(hash);
  if (!painted) return;
  canvas.width = painted.width;
  canvas.height = painted.height;
  canvas.getContext('2d')?.putImageData(new ImageData(painted.rgba, painted.width, painted.height), 0, 0);
}

export function Thumb({ record, small, still }: {
  record: FileRecord;
  /** For a row of a list. */
  small?: boolean;
  /** Only the placeholder: the bytes of deleted files cannot be read. */
  still?: boolean;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [drawn, setDrawn] = useState(false);
  const isPicture = hasPicture(record);
  const shows = isPicture && (!still || record.thumbhash !== null);
  useEffect(() => {
    const element = canvas.current;
    if (!element || !shows) return;
    setDrawn(record.thumbhash !== null);
    if (record.thumbhash !== null) drawHash(element, record.thumbhash);
    if (still) return;
    return want(record, element, () => setDrawn(true));
  }, [record.file_id, record.version, shows, still]);
  const isVideo = record.mime_type.startsWith('video/');
  const colour = shows && record.thumbhash !== null ? average(record.thumbhash) : null;
  return (
    <span class={`thumb ${small ? 'small' : ''} ${shows ? 'picture' : 'page-like'}`} {...(colour ? { style: { backgroundColor: colour } } : {})} aria-hidden="true">
      {!drawn && (shows ? <span class="thumb-waits" /> : <Glyph record={record} small={small === true} />)}
      {shows && <canvas ref={canvas} width={1} height={1} class={drawn ? '' : 'blank'} />}
      {isVideo && shows && !small && <span class="thumb-play"><svg viewBox="0 0 24 24" width="18" height="18"><path d="M8 5v14l11-7z" fill="none" stroke="currentColor" stroke-width="1.7" stroke-linejoin="round" /></svg></span>}
    </span>
  );
}

/** A sheet of paper with the letters of the type. In a row, only the letters. */
export function Glyph({ record, small }: { record: Pick<FileRecord, 'ext' | 'mime_type'>; small: boolean }) {
  const badge = badgeOf(record);
  if (small) return <span class="glyph-word">{badge}</span>;
  return (
    <span class="glyph">
      <span class="glyph-line" /><span class="glyph-line" /><span class="glyph-line short" />
      {badge && <span class="glyph-badge">{badge}</span>}
    </span>
  );
}
