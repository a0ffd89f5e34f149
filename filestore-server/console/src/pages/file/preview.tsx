// What can be seen of a file without opening it. Nothing is framed, and nothing runs.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { isAbort, Problem, type FileRecord } from '../../api/call';
import { hasPicture } from '../../data/sheets';
import { paint } from '../../data/thumbhash';
import { Button } from '../../parts/controls/button';
import { ErrorBox } from '../../parts/notes/error';
import { spoken } from '../../text/names';
import { size } from '../../text/sizes';
import { sayError } from '../../parts/notes/toast';
import { ownUrl } from '../files/actions';
import { Glyph } from '../files/thumb';
import { original, useBytes, variant } from './blob';

const TEXT_BYTES = 64 * 1024;
const ORIGINAL_LIMIT = 20 * 1024 * 1024;

function isText(record: FileRecord): boolean {
  const type = record.mime_type.split(';')[0]?.trim() ?? '';
  return type.startsWith('text/') || /[/+](json|xml|yaml|toml|javascript|x-sh|sql)$/.test(type) || ['md', 'txt', 'csv', 'log'].includes(record.ext);
}

export async function openInTab(record: FileRecord): Promise<void> {
  try {
    const url = await ownUrl(record, { expires_in_s: 300, disposition: 'inline' });
    const link = document.createElement('a');
    link.href = url;
    link.target = '_blank';
    link.rel = 'noopener noreferrer';
    link.click();
  } catch (error) {
    sayError('Not opened', error);
  }
}

export function Preview({ record }: { record: FileRecord }) {
  const kind = record.mime_type.split('/')[0];
  if (record.purge_status !== null) return <Deleted record={record} />;
  if (kind === 'video' || kind === 'audio') return <Player record={record} kind={kind} />;
  if (hasPicture(record)) return <PictureView record={record} />;
  if (isText(record)) return <TextView record={record} />;
  return <NoView record={record}>There is no preview for {record.mime_type}.</NoView>;
}

/** The space of the picture, filled by its placeholder at once. */
function Frame({ record, children }: { record: FileRecord; children: ComponentChildren }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const element = canvas.current;
    const painted = record.thumbhash === null ? null : paint(record.thumbhash, 64);
    if (!element || !painted) return;
    element.width = painted.width;
    element.height = painted.height;
    element.getContext('2d')?.putImageData(new ImageData(painted.rgba, painted.width, painted.height), 0, 0);
  }, [record.thumbhash]);
  const [width, height] = [record.width ?? 4, record.height ?? 3];
  const shown = Math.min(1, 1000 / Math.max(width, height));
  return (
    <div class="preview-fit" style={{ '--ratio': String(width / height), '--most': `${Math.round(width * shown)}px` }}>
      <div class="preview-picture">
        {record.thumbhash !== null && <canvas ref={canvas} width={1} height={1} aria-hidden="true" />}
        {children}
      </div>
    </div>
  );
}

function PictureView({ record }: { record: FileRecord }) {
  const [whole, setWhole] = useState(false);
  const key = `${record.file_id}@${record.version}`;
  useEffect(() => setWhole(false), [key]);
  const reduced = useBytes(key, variant(record, 1000, 'inside'));
  const full = useBytes(whole ? `${key} original` : null, original(record));
  const canBeMore = Math.max(record.width ?? 0, record.height ?? 0) > 1000 && record.file_size <= ORIGINAL_LIMIT && /^image\/(jpeg|png|gif|webp|bmp)$/.test(record.mime_type);
  const url = full.picture?.url ?? reduced.picture?.url;
  if (reduced.error !== null) {
    return (
      <div class="preview-place">
        <NoView record={record}><ErrorBox error={reduced.error} what="Preview" /></NoView>
      </div>
    );
  }
  return (
    <div class="preview-place">
      <Frame record={record}>
        {url && <img src={url} alt={spoken(record.original_name)} decoding="async" />}
      </Frame>
      {canBeMore && !full.picture && (
        <div class="preview-more">
          <Button size="small" busy={whole && full.error === null} onClick={() => setWhole(true)}>Show original, {size(record.file_size)}</Button>
        </div>
      )}
      {full.error !== null && <div class="preview-more"><ErrorBox error={full.error} what="Original" /></div>}
    </div>
  );
}

function TextView({ record }: { record: FileRecord }) {
  const [text, setText] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const end = new AbortController();
    setText(null);
    setError(null);
    if (record.file_size === 0) {
      setText('');
      return;
    }
    original(record, `bytes=0-${TEXT_BYTES - 1}`)(end.signal)
      .then((response) => response.arrayBuffer())
      .then((bytes) => setText(new TextDecoder().decode(bytes.slice(0, TEXT_BYTES), { stream: true })))
      .catch((problem: unknown) => !isAbort(problem) && setError(problem));
    return () => end.abort(new DOMException('another file is shown', 'AbortError'));
  }, [record.file_id, record.version]);
  if (error !== null) return <div class="preview-place"><NoView record={record}><ErrorBox error={error} what="Preview" /></NoView></div>;
  return (
    <div class="preview-text">
      <pre tabIndex={0} aria-label="Text of the file">{text}</pre>
      {text !== null && record.file_size > TEXT_BYTES && <p class="preview-cut">The first {size(TEXT_BYTES)} of {size(record.file_size)}</p>}
    </div>
  );
}

function Player({ record, kind }: { record: FileRecord; kind: 'video' | 'audio' }) {
  const [url, setUrl] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [cannot, setCannot] = useState(false);
  const [signings, setSignings] = useState(0);
  /** Where the player was when its address broke. It is signed again once, because it ends after two hours. */
  const broke = useRef<number | null>(null);
  const version = `${record.file_id}@${record.version}`;
  useEffect(() => {
    broke.current = null;
    setCannot(false);
  }, [version]);
  useEffect(() => {
    setUrl(null);
    setError(null);
    let gone = false;
    ownUrl(record, { expires_in_s: 7200, disposition: 'inline' }).then((signed) => !gone && setUrl(signed), (problem: unknown) => !gone && setError(problem));
    return () => {
      gone = true;
    };
  }, [version, signings]);
  const events = {
    onError: ({ currentTarget: media }: { currentTarget: HTMLMediaElement }) => {
      const code = media.error?.code;
      // A refusal of the server has the code of an unknown format.
      const isLoss = code === MediaError.MEDIA_ERR_NETWORK;
      if (broke.current === null && (isLoss || code === MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED)) {
        broke.current = media.currentTime;
        setSignings(signings + 1);
      } else if (isLoss) setError(new Problem({ code: 'unreachable' }));
      else setCannot(true);
    },
    onLoadedMetadata: ({ currentTarget: media }: { currentTarget: HTMLMediaElement }) => {
      if (broke.current) media.currentTime = broke.current;
    },
    onPlaying: () => (broke.current = null),
  };
  if (error !== null) return <NoView record={record}><ErrorBox error={error} what="Preview" /></NoView>;
  if (cannot) return <NoView record={record}>This browser cannot play {record.mime_type}.</NoView>;
  return (
    <div class="preview-place">
      {url !== null && (kind === 'video'
        ? <video class="preview-video" src={url} controls preload="metadata" {...events} aria-label={record.original_name} />
        : <audio class="preview-audio" src={url} controls preload="metadata" {...events} aria-label={record.original_name} />)}
    </div>
  );
}

function NoView({ record, children }: { record: FileRecord; children: ComponentChildren }) {
  return (
    <div class="preview-none">
      <Glyph record={record} small={false} />
      <div class="preview-none-text">{children}</div>
      <Button icon="external-link" onClick={() => openInTab(record)}>Open in a new tab</Button>
    </div>
  );
}

function Deleted({ record }: { record: FileRecord }) {
  return (
    <div class="preview-place">
      {record.width ? <Frame record={record}>{null}</Frame> : <div class="preview-none"><Glyph record={record} small={false} /></div>}
      <p class="preview-cut">The bytes of deleted files cannot be read.{record.thumbhash ? ' This is their placeholder.' : ''}</p>
    </div>
  );
}

export const isGone = (error: unknown): boolean => error instanceof Problem && error.status === 404;
