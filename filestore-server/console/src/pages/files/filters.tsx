// The filters of the address: read, written, shown as chips, changed in a dialog.
import { useState } from 'preact/hooks';
import type { Filter } from '../../data/listing';
import { Button } from '../../parts/controls/button';
import { Chip } from '../../parts/controls/chip';
import { Dialog } from '../../parts/dialog';
import { SelectField, TextField } from '../../parts/controls/field';
import { go, href, route } from '../../router';

const PLAIN = ['sub_system', 'mime_type', 'name_contains', 'created_after', 'created_before', 'sync_status'] as const;

export function filterOf(organization: string, query: URLSearchParams): Filter {
  const filter: Filter = { organization, metadata: [] };
  for (const name of PLAIN) {
    const value = query.get(name);
    if (value) filter[name] = value;
  }
  for (const [name, value] of query) if (name.startsWith('metadata.') && name.length > 9) filter.metadata.push([name.slice(9), value]);
  return filter;
}

/** Goes to the same page with other filters. Null takes a filter away. */
export function setFilters(changes: Record<string, string | null>, replace = false): void {
  const query = new URLSearchParams(route.peek().query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  const text = query.toString();
  go(href(route.peek().path) + (text && `?${text}`), { replace });
}

export const hasFilters = (filter: Filter): boolean => PLAIN.some((name) => filter[name] !== undefined) || filter.metadata.length > 0;
/** Filters besides the sub-system. */
export const hasMore = (filter: Filter): boolean => PLAIN.some((name) => name !== 'sub_system' && filter[name] !== undefined) || filter.metadata.length > 0;

const NO_FILTERS: Record<string, null> = Object.fromEntries(PLAIN.map((name) => [name, null]));
export function clearFilters(filter: Filter): void {
  setFilters({ ...NO_FILTERS, ...Object.fromEntries(filter.metadata.map(([key]) => [`metadata.${key}`, null])) });
}

const dayWords = (time: string): string => {
  const date = new Date(/^\d{4}-\d\d-\d\d$/.test(time) ? `${time}T00:00:00Z` : time);
  if (Number.isNaN(date.getTime())) return time;
  return new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric', ...(time.length === 10 ? { timeZone: 'UTC' } : {}) }).format(date);
};

const STATES: Record<string, string> = { PENDING: 'waits for its copy', SYNCING: 'copying', SYNCED: 'copied', FAILED: 'copy failed', NONE: 'needs no copy' };

export function Chips({ filter, onEdit }: { filter: Filter; onEdit: () => void }) {
  return (
    <>
      {filter.mime_type && <Chip label="Type" onEdit={onEdit} onRemove={() => setFilters({ mime_type: null })}>{filter.mime_type}</Chip>}
      {filter.created_after && <Chip label="Added after" onEdit={onEdit} onRemove={() => setFilters({ created_after: null })}>{dayWords(filter.created_after)}</Chip>}
      {filter.created_before && <Chip label="Added before" onEdit={onEdit} onRemove={() => setFilters({ created_before: null })}>{dayWords(filter.created_before)}</Chip>}
      {filter.sync_status && <Chip label="Copy" onEdit={onEdit} onRemove={() => setFilters({ sync_status: null })}>{STATES[filter.sync_status] ?? filter.sync_status}</Chip>}
      {filter.metadata.map(([key, value]) => (
        <Chip key={key} label={key} onEdit={onEdit} onRemove={() => setFilters({ [`metadata.${key}`]: null })}>{value}</Chip>
      ))}
    </>
  );
}

const TYPES = [
  'image/jpeg', 'image/png', 'image/webp', 'image/gif', 'image/tiff', 'image/svg+xml', 'application/pdf', 'video/mp4', 'audio/mpeg',
  'text/plain', 'text/csv', 'application/json', 'application/zip', 'application/octet-stream',
];

const dateOf = (time: string | undefined): string => time?.slice(0, 10) ?? '';

export function FilterDialog({ filter, onClose }: { filter: Filter; onClose: () => void }) {
  const [type, setType] = useState(filter.mime_type ?? '');
  const [after, setAfter] = useState(dateOf(filter.created_after));
  const [before, setBefore] = useState(dateOf(filter.created_before));
  const [copy, setCopy] = useState(filter.sync_status ?? '');
  const [key, setKey] = useState(filter.metadata[0]?.[0] ?? '');
  const [value, setValue] = useState(filter.metadata[0]?.[1] ?? '');
  const apply = () => {
    const changes: Record<string, string | null> = {
      mime_type: type.trim() || null,
      created_after: after || null,
      created_before: before || null,
      sync_status: copy || null,
    };
    const old = filter.metadata[0]?.[0];
    if (old && old !== key) changes[`metadata.${old}`] = null;
    if (key.trim()) changes[`metadata.${key.trim()}`] = value || null;
    onClose();
    setFilters(changes);
  };
  return (
    <Dialog title="Filter" onClose={onClose} onSubmit={apply} actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary">Show</Button></>}>
      <TextField label="Type" value={type} onInput={setType} list={TYPES} placeholder="image/jpeg" optional autofocus autoComplete="off" />
      <div class="field-pair">
        <TextField label="Added on or after" type="date" value={after} onInput={setAfter} optional />
        <TextField label="Added before" type="date" value={before} onInput={setBefore} optional />
      </div>
      <SelectField label="Copy to the provider" value={copy} onChange={setCopy}
        choices={[{ value: '', label: 'Any' }, ...Object.entries(STATES).map(([state, words]) => ({ value: state, label: words }))]} />
      <div class="field-pair">
        <TextField label="Metadata key" value={key} onInput={setKey} placeholder="campaign" optional mono autoComplete="off" />
        <TextField label="Value" value={value} onInput={setValue} placeholder="winter-27" mono autoComplete="off" />
      </div>
      <p class="field-hint">Days begin at midnight UTC. Metadata is compared exactly.</p>
    </Dialog>
  );
}

export function DateDialog({ onClose }: { onClose: () => void }) {
  const [day, setDay] = useState(route.peek().query.get('created_before')?.slice(0, 10) ?? '');
  const show = () => {
    if (!day) return;
    // The files of the day itself are to be shown, so the listing begins at its end.
    const end = new Date(Date.parse(`${day}T00:00:00Z`) + 86_400_000).toISOString().slice(0, 10);
    onClose();
    setFilters({ created_before: end });
  };
  return (
    <Dialog title="Go to date" onClose={onClose} onSubmit={show} actions={<><Button onClick={onClose}>Cancel</Button><Button type="submit" kind="primary" disabled={!day}>Go</Button></>}>
      <TextField label="Day" type="date" value={day} onInput={setDay} autofocus hint="Shows the files of this day (UTC) first, and older ones below." />
    </Dialog>
  );
}
