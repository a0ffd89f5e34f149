/** Events in words. */

import type { ComponentChildren } from 'preact';
import type { LogEvent } from '../../api/call';
import { nameOf } from '../../data/activity';
import type { Deed } from '../../data/deeds';
import { organizationName } from '../../data/place';
import { Name } from '../../parts/values/name';
import type { Moment } from '../../parts/timeline';
import { href } from '../../router';
import { counted } from '../../text/sizes';
import { shortId } from '../../text/names';

type Tone = NonNullable<Moment['tone']>;

interface Words {
  /** What happened to a file or several, without the subject: `uploaded`. Or the whole sentence for others. */
  what: string;
  tone?: Tone;
}

const FILE: Record<string, (event: LogEvent) => Words> = {
  'file.uploaded': ({ data }) => ({ what: data.status === 'TEMP' ? 'uploaded, temporary' : 'uploaded' }),
  'file.put_back': () => ({ what: 'put back from a backup', tone: 'ok' }),
  'file.thumbnail': () => ({ what: 'kept for its thumbnails' }),
  'file.ready': () => ({ what: 'made ready' }),
  'file.replaced': ({ data }) => ({ what: data.version ? `replaced, version ${data.version}` : 'replaced' }),
  'file.edited': ({ data }) => ({ what: edited(data.changed ?? []) }),
  'file.deleted': () => ({ what: 'moved to trash' }),
  'file.expired': () => ({ what: 'expired' }),
  'file.restored': () => ({ what: 'restored', tone: 'ok' }),
  'file.purged': () => ({ what: 'purged' }),
  'file.synced': ({ data }) => ({ what: `copied to ${data.to ?? 'its provider'}`, tone: 'ok' }),
  'file.migrated': ({ data }) => ({ what: `moved to ${data.to ?? 'another provider'}`, tone: 'ok' }),
  'file.sync_failed': ({ data }) => ({ what: `not copied, ${counted(data.attempts ?? 0, 'attempt')} failed`, tone: 'bad' }),
  'file.damaged': ({ data }) =>
    data.ok ? { what: 'was damaged and is repaired', tone: 'warn' } : { what: `damaged: ${reason(data.reason)}`, tone: 'bad' },
};

const STORE: Record<string, (event: LogEvent) => Words> = {
  'organization.erased': ({ data }) => ({ what: `Organization ${data.organization_id} erased, ${counted(data.files ?? 0, 'file')}`, tone: 'warn' }),
  'binding.created': ({ data }) => ({ what: `Organization ${data.organization_id} bound to ${data.to}`, tone: 'accent' }),
  'binding.changed': ({ data }) => ({
    what: data.ok === false ? `Binding of organization ${data.organization_id} ended` : `Binding of organization ${data.organization_id} changed, now ${data.to}`,
    tone: 'accent',
  }),
  'key.created': () => ({ what: 'Key made', tone: 'accent' }),
  'key.rotated': () => ({ what: 'Key rotated' }),
  'key.changed': () => ({ what: 'Key changed' }),
  'key.revoked': () => ({ what: 'Key revoked', tone: 'warn' }),
  'webhook.disabled': ({ data }) => ({ what: `Webhook disabled: ${reason(data.reason)}`, tone: data.reason === 'requested' ? 'plain' : 'bad' }),
  'webhook.enabled': () => ({ what: 'Webhook enabled', tone: 'ok' }),
  'fsck.ended': ({ data }) => {
    const name = data.reason === 'scrub' ? 'Scrub' : 'Check';
    return data.ok ? { what: `${name} ended, no findings`, tone: 'ok' } : { what: `${name} ended with findings`, tone: 'bad' };
  },
  'backup.ended': ({ data }) => {
    const name = data.reason ? `Backup to ${data.reason}` : 'Backup';
    return data.ok ? { what: `${name} made`, tone: 'ok' } : { what: `${name} failed`, tone: 'bad' };
  },
  'migration.ended': ({ data }) => ({
    what: `Migration of organization ${data.organization_id} to ${data.to} ended, ${counted(data.files ?? 0, 'file')} moved`,
    tone: data.ok ? 'ok' : 'warn',
  }),
  'log.gap': () => ({ what: 'Events before this are missing: the log was off', tone: 'warn' }),
};

/** Describes an event, or several of one kind, for a timeline. */
export function describe({ event, count, mixed, cut }: Deed, withOrganization: boolean): Omit<Moment, 'at' | 'id'> {
  const { data, type } = event;
  const store = STORE[type]?.(event);
  if (store) {
    // Only keys are counted together.
    const title = count > 1 ? store.what.replace('Key', counted(count, 'key')) : store.what;
    return { title, note: count > 1 ? null : noteOf(event, false, false), tone: store.tone ?? 'plain' };
  }

  const words = FILE[type]?.(event) ?? { what: type };
  const subject = count > 1 ? <strong>{counted(count, 'file')}{cut && ' or more'}</strong> : <FileSubject id={data.file_id ?? null} organization={data.organization_id ?? null} />;
  return {
    title: (
      <>
        {subject} {words.what}
      </>
    ),
    note: noteOf(event, withOrganization, mixed),
    tone: words.tone ?? 'plain',
  };
}

/** A file by its name, with a link. By its id, if the name is not known. */
function FileSubject({ id, organization }: { id: string | null; organization: string | null }): ComponentChildren {
  if (id === null) return 'A file';
  const name = nameOf(id);
  const text = name ? <Name name={name} whole /> : <code>{shortId(id, 8, 6)}</code>;
  if (organization === null || name === null) return <strong>{text}</strong>;
  return (
    <a class="subject" href={href(`org/${organization}/files/${id}`)}>
      {text}
    </a>
  );
}

function noteOf({ type, data }: LogEvent, withOrganization: boolean, mixed: boolean): ComponentChildren {
  const parts: string[] = [];
  if (withOrganization && data.organization_id) parts.push(organizationName(data.organization_id));
  if (data.sub_system && !mixed) parts.push(data.sub_system);
  if (type === 'file.deleted' && data.by) parts.push(`by ${BY[data.by] ?? data.by}`);
  if (type === 'file.migrated' && data.from) parts.push(`from ${data.from}`);
  if (data.key_id) parts.push(shortId(data.key_id, 8, 6));
  if (data.webhook_id) parts.push(shortId(data.webhook_id, 8, 6));
  return parts.length > 0 ? <bdi>{parts.join(', ')}</bdi> : null;
}

const BY: Record<string, string> = {
  key: 'a key',
  open_mode: 'a program without key',
  admin_socket: 'the admin socket',
  library: 'the command line',
  expiry: 'expiry',
  erasure: 'the erasure of the organization',
};

function edited(changed: readonly string[]): string {
  if (changed.length === 1) return { name: 'renamed', type: 'given another type', metadata: 'given other metadata' }[changed[0] ?? ''] ?? 'edited';
  return changed.length === 0 ? 'edited' : `edited: ${changed.join(', ')}`;
}

function reason(word: string | null | undefined): string {
  return (word ?? 'no reason given').replaceAll('_', ' ');
}
