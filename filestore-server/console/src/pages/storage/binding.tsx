/** The binding of an organization: a drawing of where bytes go, and the dialogs that change it. */

import { useState } from 'preact/hooks';
import { call, type BindingReply, type ProviderCheckReport } from '../../api/call';
import { isNamed, organizationName, refreshOrganizations } from '../../data/place';
import { Button } from '../../parts/controls/button';
import { Radios } from '../../parts/controls/checkbox';
import { ask, FormDialog } from '../../parts/dialog';
import { SelectField, TextField } from '../../parts/controls/field';
import { MenuButton } from '../../parts/controls/menu';
import { Notice } from '../../parts/notes/notice';
import { Panel } from '../../parts/panel';
import { Time } from '../../parts/values/time';
import { say } from '../../parts/notes/toast';
import { ProviderCheck } from '../store/providers-shared';
import { Drawing } from './drawing';
import { numberOf, type Stored } from './storage';

export function BindingPanel({ organization, stored, reload }: { organization: string; stored: Stored; reload: () => Promise<void> }) {
  const [open, setOpen] = useState(false);
  const number = numberOf(organization);
  const active = stored.bindings?.find((binding) => binding.isActive);
  const ended = stored.bindings?.find((binding) => !binding.isActive);
  const provider = active?.storageProvider ?? 'LOCAL';

  return (
    <Panel
      title="Where new files go"
      action={
        number !== null && (
          <>
            {!active && ended && (
              <Button size="small" onClick={() => resume(number, ended, reload)}>
                Resume the binding
              </Button>
            )}
            <Button size="small" kind={active ? 'plain' : 'primary'} onClick={() => setOpen(true)}>
              {active ? 'Change' : 'Bind to a provider'}
            </Button>
            {active && (
              <MenuButton
                name="More actions for the binding"
                entries={() => [{ label: 'End the binding…', icon: 'circle-x', danger: true, act: () => terminate(active, reload) }]}
              />
            )}
          </>
        )
      }
    >
      <Drawing way={{ provider, name: nameOf(stored, provider), sync: active?.syncEnabled ?? true }} />
      <p class="drawing-words">
        {active ? (
          <>
            Bound to <strong>{active.storageProvider}</strong> {active.storageProvider === 'LOCAL' ? '' : active.syncEnabled ? 'with sync ' : 'and written through '}
            since <Time at={active.effectiveFrom} absolute within />.{' '}
            {active.storageProvider === 'LOCAL' || active.syncEnabled
              ? 'The server acknowledges an upload once it is in its own storage.'
              : `The server acknowledges an upload once it is at ${active.storageProvider}. While ${active.storageProvider} does not answer, uploads get 502.`}
          </>
        ) : (
          'The organization has no binding. The server stores its files itself.'
        )}
      </p>
      {number === null && (
        <Notice>
          <p>
            This organization cannot be bound to a provider, because a binding needs a number as organization id, and <bdi>{organization}</bdi> is
            none.
          </p>
        </Notice>
      )}
      {open && number !== null && (
        <BindDialog number={number} stored={stored} active={active} onClose={() => setOpen(false)} onBound={reload} />
      )}
    </Panel>
  );
}

function nameOf(stored: Stored, code: string): string {
  const name = stored.providers.find((provider) => provider.providerCode === code)?.providerName;
  return name ?? (code === 'LOCAL' ? "server's own storage" : code);
}

function BindDialog({
  number,
  stored,
  active,
  onClose,
  onBound,
}: {
  number: number;
  stored: Stored;
  active: BindingReply | undefined;
  onClose: () => void;
  onBound: () => Promise<void>;
}) {
  const id = String(number);
  const choices = stored.providers.map(({ providerCode, providerName }) => ({
    value: providerCode,
    label: providerName === providerCode ? providerCode : `${providerCode}: ${providerName}`,
  }));
  const [provider, setProvider] = useState(active?.storageProvider ?? choices.find((choice) => choice.value !== 'LOCAL')?.value ?? 'LOCAL');
  const [sync, setSync] = useState<'sync' | 'through'>(active?.syncEnabled === false ? 'through' : 'sync');
  const before = stored.bindings?.[0]?.organizationName;
  const [name, setName] = useState(before ?? (isNamed(id) ? organizationName(id) : ''));
  const [checking, setChecking] = useState<string | null>(null);
  const [checked, setChecked] = useState<ProviderCheckReport | null>(null);
  const [tried, setTried] = useState(false);
  const isLocal = provider === 'LOCAL';
  const serves = isLocal || (checked?.provider_code === provider ? checked.can_serve : null);

  const save = async () => {
    setTried(true);
    if (name.trim() === '') return;
    const fields = { organizationId: number, organizationName: name.trim(), storageProvider: provider, syncEnabled: sync === 'sync' };
    if (active) await call('PUT', '/organization-storage-bindings/update', { body: fields });
    else await call('POST', '/organization-storage-bindings/create', { body: fields });
    say(active ? 'The binding was changed' : `Bound to ${provider}`);
    onClose();
    void refreshOrganizations();
    await onBound();
  };

  return (
    <FormDialog title={active ? 'Change the binding' : 'Bind to a provider'} verb={active ? 'Change' : 'Bind'} wide onClose={onClose} act={save}>
      <div class="fields two">
        <SelectField
          label="Provider"
          value={provider}
          choices={choices}
          onChange={(code) => {
            setProvider(code);
            setChecking(null);
            setChecked(null);
          }}
          hint={choices.length < 2 ? 'The configuration of the server has no other provider.' : undefined}
        />
        <TextField
          label="Name of the organization"
          value={name}
          onInput={setName}
          maxLength={255}
          autoComplete="off"
          error={tried && name.trim() === '' ? 'Enter a name for people.' : undefined}
        />
      </div>
      {!isLocal && (
        <Radios
          legend="Uploads"
          value={sync}
          onChange={setSync}
          choices={[
            { value: 'sync', label: 'Copied in the background', hint: 'The reply comes once the server has the file. If the provider fails, uploads continue.' },
            { value: 'through', label: 'Written through', hint: 'The reply comes once the provider has the file. If the provider fails, uploads get 502.' },
          ]}
        />
      )}
      <Drawing way={{ provider, name: nameOf(stored, provider), sync: sync === 'sync' }} />
      {!isLocal &&
        (checking === provider ? (
          <ProviderCheck code={provider} onResult={setChecked} />
        ) : (
          <div class="row">
            <Button icon="stethoscope" onClick={() => setChecking(provider)}>
              Check {provider} first
            </Button>
            <span class="quiet-text">Writes, reads and deletes two small objects.</span>
          </div>
        ))}
      {serves === false && (
        <Notice kind="warn">
          <p>{provider} cannot serve now. If you bind the organization anyway, its files wait or uploads fail until it can.</p>
        </Notice>
      )}
      <p class="dialog-text">Only new files follow the binding. Existing files stay where they are until you move them.</p>
    </FormDialog>
  );
}

async function terminate(binding: BindingReply, reload: () => Promise<void>): Promise<void> {
  const done = await ask({
    title: `End the binding to ${binding.storageProvider}?`,
    text: `The server stores new files itself from then on. Files at ${binding.storageProvider} stay there and are served from there until you move them.`,
    verb: 'End the binding',
    danger: true,
    act: () => call('PUT', '/organization-storage-bindings/update', { body: { organizationId: binding.organizationId, isActive: false } }),
  });
  if (!done) return;
  say(`The binding to ${binding.storageProvider} has ended`);
  void refreshOrganizations();
  await reload();
}

async function resume(number: number, binding: BindingReply, reload: () => Promise<void>): Promise<void> {
  const done = await ask({
    title: `Bind to ${binding.storageProvider} again?`,
    text: `New files go to ${binding.storageProvider} again, ${binding.syncEnabled ? 'copied in the background' : 'written through'}.`,
    verb: 'Bind again',
    act: () => call('PUT', '/organization-storage-bindings/update', { body: { organizationId: number, isActive: true } }),
  });
  if (!done) return;
  say(`Bound to ${binding.storageProvider} again`);
  void refreshOrganizations();
  await reload();
}
