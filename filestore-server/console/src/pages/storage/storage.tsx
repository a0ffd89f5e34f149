/** Storage of an organization: use against quota, where new files go, the files from before, and sync. */

import { useState } from 'preact/hooks';
import { call, type BindingReply, type MigrateHolding, type ProviderReply, type SubSystemReply, type UsageReply } from '../../api/call';
import { allPages, useLoad } from '../../data/load';
import { isNamed, organizationName } from '../../data/place';
import { StackedBar, type Part } from '../../parts/bar';
import { Button } from '../../parts/controls/button';
import { Command } from '../../parts/values/command';
import { Dialog } from '../../parts/dialog';
import { Shown } from '../../parts/notes/loaded';
import { Aside } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { Meter } from '../../parts/bar';
import { Size } from '../../parts/values/size';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Time } from '../../parts/values/time';
import { href, route } from '../../router';
import { administers } from '../../session';
import { Page } from '../../shell/page';
import { count, counted, size } from '../../text/sizes';
import { BindingPanel } from './binding';
import { MigrationPanel } from './migration';
import { SyncPanel } from './sync';

export interface Stored {
  usage: UsageReply;
  /** Null if the caller may not see them. */
  bindings: BindingReply[] | null;
  providers: ProviderReply[];
  holdings: MigrateHolding[] | null;
}

/** Bindings and migrations take organizations as numbers. */
export function numberOf(organization: string): number | null {
  if (!/^[1-9]\d{0,15}$/.test(organization)) return null;
  const value = Number(organization);
  return Number.isSafeInteger(value) ? value : null;
}

async function load(organization: string, signal: AbortSignal): Promise<Stored> {
  const number = administers.peek() ? numberOf(organization) : null;
  const query = number === null ? null : { organizationId: number };
  const [usage, providers, bindings, status] = await Promise.all([
    call('GET', '/organizations/{organization_id}/usage', { path: { organization_id: organization }, signal }),
    call('GET', '/storage-providers', { signal }),
    query && call('GET', '/organization-storage-bindings', { query, signal }),
    query && call('GET', '/admin/migrate/status', { query, signal }),
  ]);
  return {
    usage: usage.data,
    providers: providers.data,
    bindings: bindings ? bindings.data : null,
    holdings: status ? status.data.holdings : null,
  };
}

export function Storage() {
  const organization = route.value.params['org'] ?? '';
  const stored = useLoad(`storage ${organization}`, (signal) => load(organization, signal), 15_000);
  const [history, setHistory] = useState(false);
  const bindings = stored.data?.bindings;

  return (
    <Page
      title="Storage"
      under={isNamed(organization) ? `of ${organizationName(organization)}, organization ${organization}` : `of organization ${organization}`}
      body={null}
      actions={
        bindings &&
        bindings.length > 0 && (
          <Button icon="history" onClick={() => setHistory(true)}>
            Bindings before
          </Button>
        )
      }
    >
      <div class="sided storage">
        <div class="sided-main">
          <Shown of={stored} rows={6} what="Storage">
            {(data) => (
              <div class="stack">
                <Usage stored={data} />
                {administers.value && (
                  <>
                    <BindingPanel organization={organization} stored={data} reload={stored.reload} />
                    <MigrationPanel organization={organization} stored={data} reload={stored.reload} />
                  </>
                )}
                <SyncPanel organization={organization} stored={data} />
              </div>
            )}
          </Shown>
        </div>
        <aside class="sided-side" aria-label="Details">
          {stored.data && <SubSystems organization={organization} />}
          {stored.data && <Quota usage={stored.data.usage} />}
          {administers.value && <Leave organization={organization} />}
        </aside>
      </div>
      {history && bindings && <History bindings={bindings} onClose={() => setHistory(false)} />}
    </Page>
  );
}

/** Bytes and files at each provider, the active binding's first. */
function places({ usage, holdings }: Stored): { code: string; words: string; files: number; bytes: number }[] {
  const { CLOUD, LOCAL } = usage.by_location;
  if (!holdings) {
    return [
      { code: 'CLOUD', words: 'at providers', ...CLOUD },
      { code: 'LOCAL', words: 'on the server', ...LOCAL },
    ];
  }
  const sums = new Map<string, { files: number; bytes: number }>();
  for (const { provider_code, files, bytes } of holdings) {
    const sum = sums.get(provider_code) ?? { files: 0, bytes: 0 };
    sums.set(provider_code, { files: sum.files + files, bytes: sum.bytes + bytes });
  }
  const live = [...sums]
    .map(([code, sum]) => ({ code, words: code === 'LOCAL' ? 'on the server' : `at ${code}`, ...sum }))
    .sort((a, b) => Number(a.code === 'LOCAL') - Number(b.code === 'LOCAL') || b.bytes - a.bytes);
  // Those are live files. The rest of what is used is in the trash.
  const trash = usage.bytes - live.reduce((sum, { bytes }) => sum + bytes, 0);
  return [...live, { code: 'TRASH', words: 'in the trash', files: usage.deleted.files, bytes: Math.max(0, trash) }];
}

function Usage({ stored }: { stored: Stored }) {
  const { usage } = stored;
  const quota = usage.quota_bytes;
  const tones: Part['tone'][] = ['accent', 'accent-mid', 'ink', 'ok', 'warn'];
  const parts = places(stored).map((place, index) => ({ ...place, tone: place.code === 'LOCAL' ? ('accent-mid' as const) : place.code === 'TRASH' ? ('ink' as const) : (tones[index === 1 ? 2 : index] ?? 'ink') }));
  const sum = parts.reduce((total, part) => total + part.bytes, 0);
  const over = quota !== null && usage.bytes >= quota;
  return (
    <section aria-label="Use">
      <p class="use">
        <span class="figure-l">
          <Size bytes={usage.bytes} />
        </span>{' '}
        <span class="use-note">
          {quota !== null && `of ${size(quota)}, `}
          {count(usage.files)}
          {usage.quota_files !== null ? ` of ${counted(usage.quota_files, 'file')}` : usage.files === 1 ? ' file' : ' files'}
        </span>
      </p>
      <StackedBar
        total={Math.max(quota ?? 0, sum, 1)}
        parts={parts.map((part) => ({ value: part.bytes, tone: part.tone }))}
      />
      <ul class="legend">
        {parts
          .filter((part) => part.files > 0)
          .map((part) => (
            <li key={part.code}>
              <span class={`dot ${part.tone}`} aria-hidden="true" /> {size(part.bytes)} {part.words}
            </li>
          ))}
        {quota !== null && (
          <li>
            <span class="dot rest" aria-hidden="true" /> {over ? <span class="bad-text">no space is left</span> : `${size(quota - usage.bytes)} free`}
          </li>
        )}
        {!stored.holdings && usage.deleted.files > 0 && <li class="legend-end">{size(usage.deleted.bytes)} of it in the trash</li>}
      </ul>
    </section>
  );
}

function SubSystems({ organization }: { organization: string }) {
  const [all, setAll] = useState(false);
  const list = useLoad(`sub-systems ${organization}`, (signal) =>
    allPages<SubSystemReply>(async (cursor) =>
      (
        await call('GET', '/organizations/{organization_id}/sub-systems', {
          path: { organization_id: organization },
          query: { limit: 200, cursor },
          signal,
        })
      ).data,
    ),
  );
  return (
    <Aside title="By sub-system">
      <Shown of={list} rows={4} what="Sub-systems">
        {({ items, complete }) => {
          if (items.length === 0) return <p class="quiet-text">No files yet.</p>;
          const sorted = [...items].sort((a, b) => b.bytes - a.bytes);
          const sum = sorted.reduce((all, one) => all + one.bytes, 0);
          const shown = all ? sorted : sorted.slice(0, 6);
          return (
            <>
              <ul class="subs">
                {shown.map((one) => (
                  <li key={one.sub_system}>
                    <a href={href(`org/${organization}/files`, { sub_system: one.sub_system })}>
                      <bdi>{one.sub_system}</bdi>
                    </a>
                    <span class="subs-size">
                      <Size bytes={one.bytes} />
                    </span>
                    <Meter value={one.bytes} total={sum} />
                    <span class="subs-files">{counted(one.files, 'file')}</span>
                  </li>
                ))}
              </ul>
              {sorted.length > shown.length && (
                <button type="button" class="link" onClick={() => setAll(true)}>
                  {count(sorted.length - shown.length)} more
                </button>
              )}
              {!complete && <p class="quiet-text">The first {count(items.length)} by name.</p>}
            </>
          );
        }}
      </Shown>
    </Aside>
  );
}

function Quota({ usage }: { usage: UsageReply }) {
  return (
    <Aside title="Quota">
      <Pairs
        rows={[
          ['Bytes', usage.quota_bytes === null ? 'no limit' : <Size bytes={usage.quota_bytes} />],
          ['Files', usage.quota_files === null ? 'no limit' : count(usage.quota_files)],
        ]}
      />
      <p class="aside-note">
        Set in the configuration of the server: <code class="code">quota_bytes</code>, <code class="code">quota_files</code>. Temporary and
        deleted files count.
      </p>
    </Aside>
  );
}

function Leave({ organization }: { organization: string }) {
  return (
    <Aside title="Leave or erase">
      <p class="aside-note">To take an organization out, or to erase it with a receipt, use the command line:</p>
      <Command
        label="commands to export and erase"
        commands={[`filestore organization export ${organization} --to DIR`, `filestore organization erase ${organization}`]}
      />
    </Aside>
  );
}

function History({ bindings, onClose }: { bindings: BindingReply[]; onClose: () => void }) {
  return (
    <Dialog
      title="Bindings, newest first"
      wide
      onClose={onClose}
      actions={
        <Button kind="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <div class="bleed">
        <Table
          label="Bindings"
          rows={bindings}
          rowKey={(binding) => String(binding.id)}
          columns={[
            { title: 'Provider', phone: 'title', cell: (binding) => <span class="cell-main">{binding.storageProvider}</span> },
            { title: 'Uploads', cell: (binding) => (binding.syncEnabled ? 'copied in the background' : 'written through') },
            { title: 'From', cell: (binding) => <Time at={binding.effectiveFrom} /> },
            {
              title: 'Until',
              cell: (binding) => (binding.effectiveTo === null ? <State kind="ok">active</State> : <Time at={binding.effectiveTo} />),
            },
          ]}
        />
      </div>
    </Dialog>
  );
}
