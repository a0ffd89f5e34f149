/** All organizations with their files, bytes, quota and binding, by cursor to the end. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { call, isAbort, type OrganizationReply } from '../../api/call';
import { Meter } from '../../parts/bar';
import { Button } from '../../parts/controls/button';
import { Empty } from '../../parts/notes/empty';
import { ErrorBox } from '../../parts/notes/error';
import { SearchField } from '../../parts/controls/field';
import { Blocks } from '../../parts/notes/loading';
import { Name } from '../../parts/values/name';
import { Notice } from '../../parts/notes/notice';
import { Size } from '../../parts/values/size';
import { Table } from '../../parts/table';
import { Tag } from '../../parts/values/tag';
import { go, href } from '../../router';
import { administers } from '../../session';
import { Page } from '../../shell/page';
import { count, counted, size } from '../../text/sizes';

const LIMIT = 200;
/** The list continues by itself up to this many rows, then a button does. */
const BY_ITSELF = 2000;

export function Organizations() {
  const { items, next, error, loading, more, again } = useOrganizations();
  const [id, setId] = useState('');
  const end = useRef<HTMLDivElement>(null);

  useEffect(() => {
    if (!end.current || next === null || items.length >= BY_ITSELF) return;
    const observer = new IntersectionObserver((entries) => entries.some((entry) => entry.isIntersecting) && void more());
    observer.observe(end.current);
    return () => observer.disconnect();
  }, [next, items.length]);

  return (
    <Page
      title="Organizations"
      under={items.length > 0 && (next === null ? count(items.length) : `first ${count(items.length)}`)}
      body={null}
      actions={
        <SearchField
          label="Open an organization by its id"
          placeholder="Id of an organization"
          value={id}
          onInput={setId}
          onSubmit={(value) => value.trim() && go(`org/${value.trim()}/files`)}
        />
      }
    >
      <div class="page-scroll">
        {items.length > 0 ? (
          <OrganizationTable rows={items} />
        ) : error !== null ? (
          <div class="page-notice">
            <ErrorBox error={error} what="Organizations" onRetry={again} />
          </div>
        ) : loading ? (
          <Blocks rows={8} />
        ) : (
          <Empty icon="building-2" title="No organizations yet">
            You do not create an organization first. The first upload with its id makes it.
          </Empty>
        )}
        {items.length > 0 && (
          <div ref={end} class="list-end">
            {error !== null ? (
              <ErrorBox error={error} onRetry={more} />
            ) : next !== null ? (
              <Button size="small" onClick={more}>
                Show more
              </Button>
            ) : (
              items.length > 1 && <span class="quiet-text">These are all {counted(items.length, 'organization')}.</span>
            )}
          </div>
        )}
        {administers.value && items.length > 0 && (
          <div class="page-notice">
            <Notice icon="terminal">
              <p>
                To take an organization out or to erase it, use <code class="code">filestore organization export ID --to DIR</code> and{' '}
                <code class="code">filestore organization erase ID</code>. Both print a report for your records.
              </p>
            </Notice>
          </div>
        )}
      </div>
    </Page>
  );
}

function useOrganizations() {
  const [state, setState] = useState<{ items: OrganizationReply[]; next: string | null; error: unknown; loading: boolean }>({
    items: [],
    next: null,
    error: null,
    loading: true,
  });
  const running = useRef<AbortController | null>(null);

  const load = async (cursor: string | null) => {
    if (running.current) return;
    const controller = new AbortController();
    running.current = controller;
    setState((before) => ({ ...before, loading: true, error: null }));
    try {
      const query = { limit: LIMIT, ...(cursor !== null && { cursor }) };
      const { data } = await call('GET', '/organizations', { query, signal: controller.signal });
      setState((before) => ({
        items: cursor === null ? data.items : [...before.items, ...data.items],
        next: data.next_cursor,
        error: null,
        loading: false,
      }));
    } catch (error) {
      if (!isAbort(error)) setState((before) => ({ ...before, error, loading: false }));
    } finally {
      running.current = null;
    }
  };

  useEffect(() => {
    void load(null);
    return () => running.current?.abort();
  }, []);
  const { next } = state;
  return { ...state, more: () => (next === null ? Promise.resolve() : load(next)), again: () => load(null) };
}

function OrganizationTable({ rows }: { rows: readonly OrganizationReply[] }) {
  return (
    <Table
      label="Organizations"
      rows={rows}
      rowKey={(row) => row.organization_id}
      onRow={(row) => go(`org/${row.organization_id}/files`)}
      columns={[
        {
          title: 'Organization',
          phone: 'title',
          width: 'wide',
          cell: (row) => (
            <>
              <a class="cell-main" href={href(`org/${row.organization_id}/files`)}>
                <Name name={row.binding?.organization_name ?? row.organization_id} whole />
              </a>
              {row.binding && <span class="cell-sub">{row.organization_id}</span>}
            </>
          ),
        },
        { title: 'Files', align: 'end', cell: (row) => count(row.files) },
        { title: 'Stored', align: 'end', cell: (row) => <Size bytes={row.bytes} /> },
        { title: 'Of its quota', phone: 'hidden', cell: (row) => <Quota row={row} /> },
        {
          title: 'New files go to',
          phone: 'hidden',
          cell: (row) =>
            row.binding ? (
              <>
                <Tag kind={row.binding.storage_provider === 'LOCAL' ? 'plain' : 'accent'}>{row.binding.storage_provider}</Tag>{' '}
                {row.binding.storage_provider !== 'LOCAL' && (
                  <span class="quiet-text">{row.binding.sync_enabled ? 'with sync' : 'written through'}</span>
                )}
              </>
            ) : (
              <span class="quiet-text">the server</span>
            ),
        },
      ]}
      buttons={(row) => (
            <a class="button plain small" href={href(`org/${row.organization_id}/storage`)} aria-label={`Storage of ${row.organization_id}`}>
              Storage
            </a>
          )}
    />
  );
}

function Quota({ row }: { row: OrganizationReply }) {
  const shares = [
    row.quota_bytes === null ? null : { used: row.bytes, of: row.quota_bytes, words: size(row.quota_bytes) },
    row.quota_files === null ? null : { used: row.files, of: row.quota_files, words: counted(row.quota_files, 'file') },
  ].filter((share) => share !== null);
  // The limit that is reached first counts.
  const most = shares.sort((a, b) => b.used / b.of - a.used / a.of)[0];
  if (!most) return <span class="quiet-text">no limit</span>;
  const share = most.used / most.of;
  return (
    <span class="quota">
      <Meter value={most.used} total={most.of} tone={share >= 1 ? 'bad' : share > 0.9 ? 'warn' : 'ink'} />
      <span class={share > 0.9 ? (share >= 1 ? 'bad-text' : 'warn-text') : 'quiet-text'}>
        {share > 0 && share < 0.01 ? 'below 1' : Math.floor(share * 100)} % of {most.words}
      </span>
    </span>
  );
}
