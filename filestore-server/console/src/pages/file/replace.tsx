// New bytes for a file: old and new beside each other, and only if nobody replaced it meanwhile.
import { useEffect, useState } from 'preact/hooks';
import { replace } from 'filestore-client';
import { call, Problem, type FileRecord } from '../../api/call';
import { bytes } from '../../upload/connection';
import { TwoToneBar } from '../../parts/bar';
import { Button } from '../../parts/controls/button';
import { Checkbox } from '../../parts/controls/checkbox';
import { Dialog } from '../../parts/dialog';
import { ErrorLine } from '../../parts/notes/error';
import { Name } from '../../parts/values/name';
import { Notice } from '../../parts/notes/notice';
import { Size } from '../../parts/values/size';
import { Time } from '../../parts/values/time';
import { say } from '../../parts/notes/toast';
import { me } from '../../session';
import { size } from '../../text/sizes';
import { Thumb } from '../files/thumb';

export function ReplaceDialog({ record: now, file, onClose, onDone }: { record: FileRecord; file: File; onClose: () => void; onDone: (record: FileRecord) => void }) {
  const [record] = useState(now);
  const [sent, setSent] = useState({ stored: 0, sent: 0 });
  const [error, setError] = useState<unknown>(null);
  const [newer, setNewer] = useState<FileRecord | null>(null);
  const [running, setRunning] = useState<AbortController | null>(null);
  const [keepName, setKeepName] = useState(true);
  const [url, setUrl] = useState<string | null>(null);
  const limit = me.value?.limits.max_resumable_size ?? Infinity;
  const tooLarge = file.size > limit;
  useEffect(() => {
    if (!/^image\/(jpeg|png|gif|webp|bmp)$/.test(file.type)) return;
    const made = URL.createObjectURL(file);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);

  async function act(): Promise<void> {
    const end = new AbortController();
    setRunning(end);
    setError(null);
    const seen = newer ?? record;
    try {
      await replace(bytes, record.file_id, file, {
        ifMatch: `"${seen.sha256}"`,
        original_name: keepName ? record.original_name : file.name,
        signal: end.signal,
        onProgress: (progress) => setSent({ stored: progress.stored, sent: progress.sent }),
      });
      // From here on it is replaced, also if the record does not come. Then the page gets it with the event.
      const now = await read().catch(() => null);
      if (now) onDone(now);
      onClose();
      say(now ? `Replaced, version ${now.version}` : 'Replaced');
    } catch (problem) {
      if (end.signal.aborted) return;
      if (problem instanceof Problem && problem.status === 412) await read().then(setNewer, setError);
      else setError(problem);
    } finally {
      setRunning(null);
    }
  }

  const read = async () => (await call('GET', '/files/{file_id}/info', { path: { file_id: record.file_id } })).data;

  const leave = () => {
    running?.abort();
    onClose();
  };
  return (
    <Dialog title="Replace the bytes" onClose={leave} onSubmit={act}
      actions={<><Button onClick={leave}>Cancel</Button><Button type="submit" kind="primary" busy={running !== null} disabled={tooLarge}>{newer ? 'Replace the newer one' : 'Replace'}</Button></>}>
      <div class="replace-pair">
        <figure>
          <div class="replace-picture"><Thumb record={newer ?? record} /></div>
          <figcaption><strong>Now, version {(newer ?? record).version}</strong><Size bytes={(newer ?? record).file_size} /></figcaption>
        </figure>
        <figure>
          <div class="replace-picture">{url ? <img src={url} alt="" /> : <span class="glyph-word">{file.name.split('.').pop()?.slice(0, 4).toUpperCase()}</span>}</div>
          <figcaption><strong>New: <Name name={file.name} /></strong><Size bytes={file.size} /></figcaption>
        </figure>
      </div>
      <Checkbox label={<>Keep the name <Name name={record.original_name} /></>} checked={keepName} onChange={setKeepName} />
      <p class="field-hint">The version before is removed after a grace period. It cannot be brought back here.</p>
      {tooLarge && <p class="field-error" role="alert">{size(file.size)} is over the limit of {size(limit)} for one file.</p>}
      {newer && <Notice kind="warn" title="Somebody replaced it meanwhile"><p>Version {newer.version} came <Time at={newer.updated_at} />, {size(newer.file_size)}. Nothing was overwritten.</p></Notice>}
      {running && <TwoToneBar label="Replace" text={`${size(sent.stored)} of ${size(file.size)} safe`} done={sent.stored} sent={sent.sent} total={file.size || 1} />}
      {error !== null && <ErrorLine error={error} />}
    </Dialog>
  );
}
