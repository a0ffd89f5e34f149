/** Providers: state, backlog, who is bound to each, and a check step by step. */

import { useState } from 'preact/hooks';
import { call, type AdminProvider, type BindingReply } from '../../api/call';
import { useLoad } from '../../data/load';
import { AdviceCard } from '../../parts/notes/advice';
import { Button } from '../../parts/controls/button';
import { Empty } from '../../parts/notes/empty';
import { Shown } from '../../parts/notes/loaded';
import { Name } from '../../parts/values/name';
import { Notice } from '../../parts/notes/notice';
import { Aside, Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { Count } from '../../parts/values/size';
import { Table } from '../../parts/table';
import { Tag } from '../../parts/values/tag';
import { Since, Time } from '../../parts/values/time';
import { go, href, route } from '../../router';
import { Page } from '../../shell/page';
import { count, counted } from '../../text/sizes';
import { age, CheckDialog, isDown, ProviderCheck, ProviderState, sinceWords } from './providers-shared';

interface Loaded {
  providers: AdminProvider[];
  /** Active bindings. */
  bindings: BindingReply[];
}

function useProviders() {
  return useLoad<Loaded>(
    'providers',
    async (signal) => {
      const [providers, bindings] = await Promise.all([
        call('GET', '/admin/providers', { signal }),
        call('GET', '/organization-storage-bindings', { signal }),
      ]);
      return { providers: providers.data, bindings: bindings.data.filter((binding) => binding.isActive) };
    },
    5_000,
  );
}

export function Providers() {
  const loaded = useProviders();
  const [checked, setChecked] = useState<string | null>(null);
  return (
    <Page title="Providers" under={loaded.data && count(loaded.data.providers.length)} body={null}>
      <div class="page-scroll">
        <Shown of={loaded} what="Providers">
          {({ providers, bindings }) => (
            <>
              <Table
                label="Providers"
                rows={providers}
                rowKey={(provider) => provider.provider_code}
                rowClass={(provider) => isDown(provider) && 'sick'}
                onRow={(provider) => go(`store/providers/${provider.provider_code}`)}
                columns={[
                  {
                    title: 'Provider',
                    phone: 'title',
                    cell: (provider) => (
                      <>
                        <a class="cell-main" href={href(`store/providers/${provider.provider_code}`)}>
                          {provider.provider_code}
                        </a>
                        <span class="cell-sub">
                          <bdi>{provider.provider_name}</bdi>
                        </span>
                      </>
                    ),
                  },
                  { title: 'State', cell: (provider) => <ProviderState provider={provider} /> },
                  { title: 'Kind', phone: 'hidden', cell: (provider) => <Tag>{provider.scheme}</Tag> },
                  {
                    title: 'Organizations',
                    align: 'end',
                    cell: (provider) => count(boundTo(provider, bindings).length),
                  },
                  { title: 'To copy', align: 'end', phone: 'hidden', cell: (provider) => <Count value={provider.backlog.sync} /> },
                  { title: 'To purge', align: 'end', phone: 'hidden', cell: (provider) => <Count value={provider.backlog.purge} /> },
                  { title: 'To drop', align: 'end', phone: 'hidden', cell: (provider) => <Count value={provider.backlog.dropped} /> },
                  { title: 'Oldest', align: 'end', phone: 'hidden', cell: (provider) => age(provider.backlog.oldest_secs) },
                ]}
                buttons={(provider) =>
                      canCheck(provider) && (
                        <Button size="small" label={`Check ${provider.provider_code}`} onClick={() => setChecked(provider.provider_code)}>
                          Check
                        </Button>
                      )}
              />
              <div class="page-notice">
                <Notice>
                  <p>
                    Providers are part of the configuration of the server. To add one, to pause or to remove it, edit{' '}
                    <code class="code">filestore.toml</code> and reload the server.
                  </p>
                </Notice>
              </div>
            </>
          )}
        </Shown>
      </div>
      {checked !== null && (
        <CheckDialog
          code={checked}
          onClose={() => {
            setChecked(null);
            void loaded.reload();
          }}
        />
      )}
    </Page>
  );
}

function canCheck(provider: AdminProvider): boolean {
  return provider.storage_location === 'CLOUD' && provider.is_configured;
}

function boundTo(provider: AdminProvider, bindings: readonly BindingReply[]): BindingReply[] {
  return bindings.filter((binding) => binding.storageProvider === provider.provider_code);
}

export function Provider() {
  const code = route.value.params['code'] ?? '';
  const loaded = useProviders();
  const [checking, setChecking] = useState(false);
  const provider = loaded.data?.providers.find((one) => one.provider_code === code);

  return (
    <Page
      title={code}
      trail={['Providers']}
      heading={
        <>
          <a class="crumb" href={href('store/providers')}>
            Providers
          </a>{' '}
          <span class="crumb-line">/</span> {code}
        </>
      }
      under={provider && <bdi>{provider.provider_name}</bdi>}
      body={null}
      actions={
        provider &&
        canCheck(provider) &&
        !checking && (
          <Button icon="stethoscope" onClick={() => setChecking(true)}>
            Check
          </Button>
        )
      }
    >
      <div class="sided" tabIndex={0} role="region" aria-label={`Provider ${code}`}>
        <div class="sided-main">
          <Shown of={loaded} what="Provider">
            {({ bindings }) =>
              provider ? (
                <div class="stack">
                  {isDown(provider) && <Down provider={provider} />}
                  {checking && (
                    <Panel title="Check">
                      <ProviderCheck code={code} onResult={() => void loaded.reload()} />
                    </Panel>
                  )}
                  <Bound provider={provider} bindings={boundTo(provider, bindings)} />
                </div>
              ) : (
                <Empty icon="server" title={`No provider ${code}`}>
                  Neither the configuration nor waiting work names it.
                </Empty>
              )
            }
          </Shown>
        </div>
        {provider && (
          <aside class="sided-side" aria-label="Facts">
            <Facts provider={provider} />
          </aside>
        )}
      </div>
    </Page>
  );
}

function Down({ provider }: { provider: AdminProvider }) {
  const { provider_code: code, backlog } = provider;
  if (!provider.is_configured) {
    return (
      <AdviceCard kind="bad" title={`${code} is missing in the configuration, and work waits for it`}>
        Put it back into the configuration, or move its files to another provider.
      </AdviceCard>
    );
  }
  return (
    <AdviceCard
      kind="bad"
      title={
        <>
          {code} is {provider.state === 'half_open' ? 'on trial' : 'down'}
          {provider.state_since !== null && (
            <>
              {' '}
              since {sinceWords(provider.state_since)}, for <Since at={provider.state_since} />
            </>
          )}
        </>
      }
      error={provider.last_error}
    >
      {backlog.sync > 0
        ? `${counted(backlog.sync, 'file')} ${backlog.sync === 1 ? 'waits' : 'wait'} to be copied and ${backlog.sync === 1 ? 'is safe where it is' : 'are safe where they are'} now. `
        : ''}
      The server tries again by itself, and waiting work continues when {code} answers.
    </AdviceCard>
  );
}

function Bound({ provider, bindings }: { provider: AdminProvider; bindings: readonly BindingReply[] }) {
  return (
    <Panel title="Organizations bound to it" note={count(bindings.length)} flush>
      {bindings.length === 0 ? (
        <p class="panel-empty">
          {provider.provider_code === 'LOCAL'
            ? 'No binding names it. Organizations without a binding are stored here too.'
            : 'None. To bind an organization, open its storage.'}
        </p>
      ) : (
        <Table
          label="Bindings"
          rows={bindings}
          rowKey={(binding) => String(binding.id)}
          onRow={(binding) => go(`org/${binding.organizationId}/storage`)}
          columns={[
            {
              title: 'Organization',
              phone: 'title',
              cell: (binding) => (
                <>
                  <a class="cell-main" href={href(`org/${binding.organizationId}/storage`)}>
                    <Name name={binding.organizationName} whole />
                  </a>{' '}
                  <span class="cell-beside">{binding.organizationId}</span>
                </>
              ),
            },
            { title: 'Uploads', cell: (binding) => (binding.syncEnabled ? 'copied in the background' : 'written through') },
            { title: 'Bound', cell: (binding) => <Time at={binding.effectiveFrom} /> },
          ]}
        />
      )}
    </Panel>
  );
}

function Facts({ provider }: { provider: AdminProvider }) {
  const { backlog } = provider;
  return (
    <>
      <Aside title="State">
        <Pairs
          rows={[
            ['State', <ProviderState provider={provider} />],
            ['New files', provider.is_active ? 'accepted' : 'not accepted (inactive)'],
            provider.last_error_at !== null && ['Last error', <Time at={provider.last_error_at} />],
          ]}
        />
        {provider.last_error !== null && !isDown(provider) && (
          <p class="fact-error">
            <Name name={provider.last_error} whole />
          </p>
        )}
      </Aside>
      <Aside title="Waiting work">
        <Pairs
          rows={[
            ['To copy', counted(backlog.sync, 'file')],
            ['To purge', counted(backlog.purge, 'file')],
            ['To drop', counted(backlog.dropped, 'replaced blob')],
            ['Oldest', age(backlog.oldest_secs)],
          ]}
        />
      </Aside>
      <Aside title="Provider">
        <Pairs
          rows={[
            ['Code', <code>{provider.provider_code}</code>],
            ['Kind', provider.scheme],
            ['Serves', provider.storage_location === 'LOCAL' ? 'the server sends the bytes' : 'readers are sent to it, or the server streams'],
            ['Tested', provider.is_tested ? 'by the tests of filestore' : 'not by the tests of filestore'],
          ]}
        />
      </Aside>
    </>
  );
}
