/** The dialog that makes or edits a webhook. */

import { useState } from 'preact/hooks';
import { call, type NewWebhookReply, type WebhookReply } from '../../api/call';
import { organizations } from '../../data/place';
import { Checkbox, Radios } from '../../parts/controls/checkbox';
import { FormDialog } from '../../parts/dialog';
import { TextField } from '../../parts/controls/field';

const GROUPS = [
  { type: 'file.*', label: 'Files', hint: 'uploaded, replaced, edited, deleted, restored, purged, copied, damaged' },
  { type: 'organization.*', label: 'Organizations', hint: 'erased' },
  { type: 'binding.*', label: 'Bindings', hint: 'created, changed' },
  { type: 'key.*', label: 'Keys', hint: 'created, rotated, revoked' },
  { type: 'webhook.*', label: 'Webhooks', hint: 'disabled, enabled' },
  { type: 'migration.*', label: 'Migrations', hint: 'ended' },
  { type: 'fsck.*', label: 'Checks', hint: 'ended' },
  { type: 'backup.*', label: 'Backups', hint: 'ended' },
] as const;

export function WebhookDialog({
  edited,
  onClose,
  onMade,
  onEdited,
}: {
  edited?: WebhookReply;
  onClose: () => void;
  onMade?: (hook: NewWebhookReply) => void;
  onEdited?: (hook: WebhookReply) => void;
}) {
  const [url, setUrl] = useState(edited?.url ?? '');
  const [name, setName] = useState(edited?.name ?? '');
  const [reach, setReach] = useState<'all' | 'one'>('all');
  const [organization, setOrganization] = useState('');
  const [which, setWhich] = useState<'all' | 'some'>(edited && edited.types.length > 0 ? 'some' : 'all');
  const [types, setTypes] = useState<ReadonlySet<string>>(new Set(edited?.types.length ? edited.types : ['file.*']));
  const [from, setFrom] = useState<'end' | 'start'>('end');
  const [tried, setTried] = useState(false);

  const problems = {
    url: wrongUrl(url),
    organization: !edited && reach === 'one' && organization.trim() === '' ? 'Name the organization.' : undefined,
    types: which === 'some' && types.size === 0 ? 'Choose at least one kind of event.' : undefined,
  };
  const own = [...types].filter((type) => !GROUPS.some((group) => group.type === type));

  const save = async () => {
    setTried(true);
    if (Object.values(problems).some((problem) => problem !== undefined)) return;
    const chosen = which === 'all' ? [] : [...types];
    const shared = { url: url.trim(), name: name.trim() };
    if (edited) {
      const body = { ...shared, types: chosen };
      onEdited?.((await call('PATCH', '/webhooks/{webhook_id}', { path: { webhook_id: edited.id }, body })).data);
    } else {
      const body = {
        ...shared,
        from,
        ...(chosen.length > 0 && { types: chosen }),
        ...(reach === 'one' && { organization_id: organization.trim() }),
      };
      onMade?.((await call('POST', '/webhooks', { body })).data);
    }
  };

  const toggle = (type: string, on: boolean) => {
    const next = new Set(types);
    if (on) next.add(type);
    else next.delete(type);
    setTypes(next);
  };

  return (
    <FormDialog title={edited ? 'Edit the webhook' : 'New webhook'} verb={edited ? 'Save' : 'Make webhook'} onClose={onClose} act={save}>
      <TextField
        label="URL"
        type="url"
        value={url}
        onInput={setUrl}
        placeholder="https://app.example.org/hook"
        autoComplete="off"
        autofocus
        error={tried ? problems.url : undefined}
        hint="By default, only https and public addresses are allowed."
      />
      <TextField label="Name" value={name} onInput={setName} optional maxLength={200} autoComplete="off" placeholder="search index" />
      {!edited && (
        <>
          <Radios
            legend="Whose events"
            value={reach}
            onChange={setReach}
            choices={[
              { value: 'all', label: 'All organizations, and the store' },
              { value: 'one', label: 'One organization' },
            ]}
          />
          {reach === 'one' && (
            <TextField
              label="Organization"
              value={organization}
              onInput={setOrganization}
              mono
              autoComplete="off"
              list={(organizations.value ?? []).slice(0, 200).map((one) => one.organization_id)}
              error={tried ? problems.organization : undefined}
            />
          )}
        </>
      )}
      <Radios
        legend="Which events"
        value={which}
        onChange={setWhich}
        choices={[
          { value: 'all', label: 'All events' },
          { value: 'some', label: 'Only some' },
        ]}
      />
      {which === 'some' && (
        <fieldset class="scopes two">
          <legend class="unseen">Kinds of events</legend>
          {GROUPS.map((group) => (
            <Checkbox
              key={group.type}
              label={group.label}
              hint={group.hint}
              checked={types.has(group.type)}
              onChange={(on) => toggle(group.type, on)}
            />
          ))}
          {own.map((type) => (
            <Checkbox key={type} label={<code>{type}</code>} checked onChange={(on) => toggle(type, on)} />
          ))}
          {tried && problems.types && <p class="field-error">{problems.types}</p>}
        </fieldset>
      )}
      {!edited && (
        <Radios
          legend="Begin with"
          value={from}
          onChange={setFrom}
          choices={[
            { value: 'end', label: 'Events from now on' },
            { value: 'start', label: 'Everything that the log still has' },
          ]}
        />
      )}
    </FormDialog>
  );
}

function wrongUrl(url: string): string | undefined {
  if (url.trim() === '') return 'Enter the URL that gets the events.';
  try {
    const { protocol } = new URL(url.trim());
    return protocol === 'https:' || protocol === 'http:' ? undefined : 'The URL must begin with https://.';
  } catch {
    return 'This is not a URL. For example: https://app.example.org/hook';
  }
}
