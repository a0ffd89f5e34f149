/** The dialog that makes a key. The page of keys shows its secret, so the first key of a server leads there. */

import { useState } from 'preact/hooks';
import { call } from '../../api/call';
import { organizations } from '../../data/place';
import { Checkbox, Radios } from '../../parts/controls/checkbox';
import { FormDialog } from '../../parts/dialog';
import { SelectField, TextField } from '../../parts/controls/field';
import { Notice } from '../../parts/notes/notice';
import { go } from '../../router';
import { isOpen, refreshMe, renewKey, start } from '../../session';
import { freshKey } from './fresh';

const SCOPES = ['read', 'write', 'delete', 'admin'] as const;
type Scope = (typeof SCOPES)[number];

const MEANING: Record<Scope, string> = {
  read: 'Download files, list records, read usage and events.',
  write: 'Upload, replace, edit and restore files.',
  delete: 'Delete files.',
  admin: 'Everything for the organizations of the key. With all organizations: the whole store.',
};

const LIVES = [
  { value: '', label: 'Does not end' },
  { value: '86400', label: '1 day' },
  { value: '604800', label: '7 days' },
  { value: '2592000', label: '30 days' },
  { value: '7776000', label: '90 days' },
  { value: '31536000', label: '1 year' },
] as const;

export function NewKeyDialog({ onClose, onMade }: { onClose: () => void; onMade: () => void }) {
  const first = isOpen.value;
  const [name, setName] = useState(first ? 'admin' : '');
  const [reach, setReach] = useState<'some' | 'all'>(first ? 'all' : 'some');
  const [ids, setIds] = useState('');
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set(first ? ['admin'] : ['read']));
  const [life, setLife] = useState<string>('');
  const [understood, setUnderstood] = useState(false);
  const [tried, setTried] = useState(false);

  const organizationIds = ids.split(/[\s,;]+/).filter(Boolean);
  const problems = {
    name: name.trim() === '' ? 'Give the key a name, for example of the program that uses it.' : undefined,
    ids: reach === 'some' ? wrongIds(organizationIds) : undefined,
    scopes: scopes.size === 0 ? 'Choose at least one scope.' : undefined,
    understood: first && !understood ? 'Confirm that every program needs a key from now on.' : undefined,
  };
  const ready = Object.values(problems).every((problem) => problem === undefined);

  const make = async () => {
    setTried(true);
    if (!ready) return;
    const ask = async () => {
      const { data } = await call('POST', '/admin/keys', {
        body: {
          name: name.trim(),
          organizations: reach === 'all' ? ['*'] : organizationIds,
          scopes: SCOPES.filter((scope) => scopes.has(scope)),
          ...(life && { expires_in_s: Number(life) }),
        },
      });
      freshKey.value = { key: data, rotated: false };
      return data;
    };
    if (first) {
      await renewKey(ask);
      // The key is here, and is shown as soon as the server answers again.
      await refreshMe().catch(start);
      go('store/keys');
    } else await ask();
    onMade();
  };

  const toggle = (scope: Scope, on: boolean) => {
    const next = new Set(scopes);
    if (on) next.add(scope);
    else next.delete(scope);
    setScopes(next);
  };

  return (
    <FormDialog title={first ? 'Make the first key' : 'New key'} verb="Make key" onClose={onClose} act={make}>
      {first && (
        <Notice kind="warn" icon="lock">
          <p>
            The first key closes the server for good. It must be an <strong>admin</strong> key for all organizations, because only
            such a key can make further keys.
          </p>
        </Notice>
      )}
      <TextField
        label="Name"
        value={name}
        onInput={setName}
        placeholder="web-frontend"
        maxLength={255}
        autoComplete="off"
        autofocus
        error={tried ? problems.name : undefined}
      />
      {!first && (
        <>
          <Radios
            legend="Organizations"
            value={reach}
            onChange={setReach}
            choices={[
              { value: 'some', label: 'Only some', hint: 'Files of other organizations do not exist for the key.' },
              { value: 'all', label: 'All organizations', hint: 'Also those that come later.' },
            ]}
          />
          {reach === 'some' && (
            <TextField
              label="Organization ids"
              value={ids}
              onInput={setIds}
              mono
              placeholder="42, 9"
              autoComplete="off"
              hint="Up to 100, separated by commas or spaces. An organization needs not exist yet."
              list={(organizations.value ?? []).slice(0, 200).map((one) => one.organization_id)}
              error={tried ? problems.ids : undefined}
            />
          )}
          <fieldset class="scopes">
            <legend class="field-label">Scopes</legend>
            {SCOPES.map((scope) => (
              <Checkbox
                key={scope}
                label={<strong>{scope}</strong>}
                hint={MEANING[scope]}
                checked={scopes.has(scope)}
                onChange={(on) => toggle(scope, on)}
              />
            ))}
            {tried && problems.scopes && <p class="field-error">{problems.scopes}</p>}
          </fieldset>
          {scopes.has('admin') && reach === 'all' && (
            <Notice kind="warn">
              <p>This key can do everything in this store, also make and revoke keys.</p>
            </Notice>
          )}
        </>
      )}
      <SelectField label="Ends after" value={life} choices={LIVES} onChange={setLife} />
      {first && (
        <div>
          <Checkbox
            label="From now on every program needs a key"
            hint="Programs that use the server without a key get 401. You can make keys for them afterwards."
            checked={understood}
            onChange={setUnderstood}
          />
          {tried && problems.understood && <p class="field-error">{problems.understood}</p>}
        </div>
      )}
    </FormDialog>
  );
}

function wrongIds(ids: readonly string[]): string | undefined {
  if (ids.length === 0) return 'Name at least one organization.';
  if (ids.length > 100) return `A key can have 100 organizations. These are ${ids.length}.`;
  const wrong = ids.find((id) => !/^[A-Za-z0-9_-]{1,64}$/.test(id));
  return wrong === undefined ? undefined : `${wrong} is no organization id. Use letters, digits, _ and -.`;
}

