// Changes of a record: name, type and metadata. Nothing that somebody else changed meanwhile is overwritten.
import { useState } from 'preact/hooks';
import { call, Problem, type FileRecord } from '../../api/call';
import { noteRecord } from '../../data/current';
import { Button, IconButton } from '../../parts/controls/button';
import { Dialog } from '../../parts/dialog';
import { ErrorLine } from '../../parts/notes/error';
import { TextField } from '../../parts/controls/field';
import { Notice } from '../../parts/notes/notice';
import { say } from '../../parts/notes/toast';
import { hasHidden } from '../../text/names';
import { Name } from '../../parts/values/name';

type Patch = { original_name?: string | null; mime_type?: string | null; metadata?: Record<string, unknown> };

/** The field changed on the server while it was edited here. */
class Changed extends Error {
  readonly now: FileRecord;
  constructor(now: FileRecord) {
    super('changed meanwhile');
    this.now = now;
  }
}

/**
 * Sends an edit. An edit keeps the ETag, so `If-Match` only tells of new bytes: whether somebody edited the same fields
 * is asked right before.
 */
export async function edit(seen: FileRecord, patch: Patch, force = false): Promise<FileRecord> {
  const path = { file_id: seen.file_id };
  const { data: now } = await call('GET', '/files/{file_id}/info', { path });
  if (!force) {
    const differs = (Object.keys(patch) as (keyof Patch)[]).some((key) => JSON.stringify(now[key]) !== JSON.stringify(seen[key]));
    if (differs) throw new Changed(now);
  }
  const { data } = await call('PATCH', '/files/{file_id}', {
    path, body: patch,
    headers: { 'If-Match': `"${now.sha256}"`, 'Content-Type': 'application/merge-patch+json' },
  });
  const record = 'original_name' in data ? data : (await call('GET', '/files/{file_id}/info', { path })).data;
  noteRecord(record);
  return record;
}

export function EditDialog({ record: now, onClose, onDone }: { record: FileRecord; onClose: () => void; onDone: (record: FileRecord) => void }) {
  // What the visitor saw when the dialog opened. Events may bring a newer record meanwhile.
  const [record] = useState(now);
  const [name, setName] = useState(record.original_name);
  const [type, setType] = useState(record.mime_type);
  const [error, setError] = useState<unknown>(null);
  const [other, setOther] = useState<FileRecord | null>(null);
  const [busy, setBusy] = useState(false);

  async function save(force = false): Promise<void> {
    const patch: Patch = {};
    if (name !== record.original_name) patch.original_name = name;
    if (type.trim() !== record.mime_type) patch.mime_type = type.trim() || null;
    if (Object.keys(patch).length === 0) return onClose();
    if (name === '') return setError(new Problem({ detail: 'A file needs a name.' }));
    setBusy(true);
    setError(null);
    try {
      const next = await edit(record, patch, force);
      onDone(next);
      onClose();
      // Back to what was there right before, which may be the edit of somebody else.
      const { original_name, mime_type } = other ?? record;
      const back: Patch = { ...(patch.original_name !== undefined && { original_name }), ...(patch.mime_type !== undefined && { mime_type }) };
      say(patch.original_name !== undefined ? 'Renamed' : 'Type changed', async () => onDone(await edit(next, back)));
    } catch (problem) {
      if (problem instanceof Changed) setOther(problem.now);
      else setError(problem);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Dialog title="Name and type" onClose={onClose} onSubmit={() => save(other !== null)}
      actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" busy={busy}>{other ? 'Save mine' : 'Save'}</Button></>}>
      <TextField label="Name" value={name} onInput={setName} maxLength={255} autofocus autoComplete="off"
        hint={hasHidden(name) ? <>The name has hidden characters: <Name name={name} whole /></> : undefined} />
      <TextField label="Type" value={type} onInput={setType} mono autoComplete="off" hint="Empty: the server detects it from the bytes." />
      {other && (
        <Notice kind="warn" title="Somebody changed it meanwhile">
          <p>Now: <Name name={other.original_name} whole />, {other.mime_type}. Yours: <Name name={name} whole />, {type}.</p>
        </Notice>
      )}
      {error !== null && <ErrorLine error={error} />}
    </Dialog>
  );
}

type Kind = 'text' | 'other';
interface Row {
  key: string;
  kind: Kind;
  value: string;
}

const rowsOf = (metadata: Record<string, unknown>): Row[] =>
  Object.entries(metadata).map(([key, value]) => typeof value === 'string' ? { key, kind: 'text', value } : { key, kind: 'other', value: JSON.stringify(value) });

export function MetadataDialog({ record: now, onClose, onDone }: { record: FileRecord; onClose: () => void; onDone: (record: FileRecord) => void }) {
  const [record] = useState(now);
  const [rows, setRows] = useState<Row[]>(() => {
    const now = rowsOf(record.metadata);
    return now.length > 0 ? now : [{ key: '', kind: 'text', value: '' }];
  });
  const [error, setError] = useState<unknown>(null);
  const [wrong, setWrong] = useState<string | null>(null);
  const [other, setOther] = useState<FileRecord | null>(null);
  const [busy, setBusy] = useState(false);
  const set = (at: number, change: Partial<Row>) => setRows(rows.map((row, index) => (index === at ? { ...row, ...change } : row)));

  function wanted(): Record<string, unknown> | null {
    const result: Record<string, unknown> = {};
    for (const { key, kind, value } of rows) {
      if (key === '' && value === '') continue;
      if (key === '') return setWrong('A value has no key.'), null;
      if (key in result) return setWrong(`The key ${key} is there twice.`), null;
      if (kind === 'text') {
        result[key] = value;
        continue;
      }
      try {
        result[key] = JSON.parse(value);
      } catch {
        return setWrong(`The value of ${key} is no JSON. Write it as a number, true, false, or choose Text.`), null;
      }
      if (result[key] === null) return setWrong(`The value of ${key} cannot be null: that removes the key.`), null;
    }
    return result;
  }

  async function save(): Promise<void> {
    setWrong(null);
    setError(null);
    const next = wanted();
    if (!next) return;
    setBusy(true);
    try {
      const done = await edit(record, { metadata: difference(record.metadata, next) }, other !== null);
      onDone(done);
      onClose();
      say('Metadata changed', async () => onDone(await edit(done, { metadata: difference(done.metadata, (other ?? record).metadata) })));
    } catch (problem) {
      if (problem instanceof Changed) setOther(problem.now);
      else setError(problem);
    } finally {
      setBusy(false);
    }
  }

  return (
    <Dialog title="Metadata" wide onClose={onClose} onSubmit={save}
      actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" busy={busy}>{other ? 'Save mine' : 'Save'}</Button></>}>
      <div class="metadata-rows">
        {rows.map((row, at) => (
          <div class="metadata-row" key={at}>
            <TextField label={`Key ${at + 1}`} hideLabel value={row.key} onInput={(key) => set(at, { key })} placeholder="key" mono autoComplete="off" autofocus={at === 0} />
            <select class="input" aria-label={`Kind of ${row.key || `value ${at + 1}`}`} value={row.kind} onChange={(event) => set(at, { kind: event.currentTarget.value as Kind })}>
              <option value="text">Text</option>
              <option value="other">Number, true, JSON</option>
            </select>
            <TextField label={`Value of ${row.key || `row ${at + 1}`}`} hideLabel value={row.value} onInput={(value) => set(at, { value })} placeholder="value" mono={row.kind === 'other'} autoComplete="off" />
            <IconButton name={`Remove ${row.key || 'row'}`} icon="x" onClick={() => setRows(rows.filter((_, index) => index !== at))} />
          </div>
        ))}
      </div>
      <Button size="small" icon="plus" onClick={() => setRows([...rows, { key: '', kind: 'text', value: '' }])}>Add</Button>
      {other && <Notice kind="warn" title="Somebody changed the metadata meanwhile"><p>“Save mine” sets your values. Keys that you did not touch stay as they are now.</p></Notice>}
      {wrong !== null && <p class="field-error" role="alert">{wrong}</p>}
      {error !== null && <ErrorLine error={error} />}
    </Dialog>
  );
}

/** The merge patch from one object to another: changed and new members, and null for those that go. */
export function difference(from: Record<string, unknown>, to: Record<string, unknown>): Record<string, unknown> {
  const patch: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(to)) {
    const before = from[key];
    if (JSON.stringify(before) === JSON.stringify(value)) continue;
    patch[key] = isObject(before) && isObject(value) ? difference(before, value) : value;
  }
  for (const key of Object.keys(from)) if (!(key in to)) patch[key] = null;
  return patch;
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
