/** About: the server, what it can do, the reader's key, and the licences of what the page is made of. */

import { apiRoot, consoleRoot } from '../../api/call';
import { Checkbox } from '../../parts/controls/checkbox';
import { Id } from '../../parts/values/copy';
import { Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { Size } from '../../parts/values/size';
import { Tag, Tags } from '../../parts/values/tag';
import { Time } from '../../parts/values/time';
import { administers, me } from '../../session';
import { Page } from '../../shell/page';
import { count, counted } from '../../text/sizes';
import { duration, showUtc, utc } from '../../text/times';

export function About() {
  const reply = me.value;
  if (!reply) return <Page title="About" />;
  const { store, key, limits, features, mode } = reply;
  return (
    <Page title="About" under={`filestore ${store.version}`} body={null}>
      <div class="page-scroll">
        <div class="page-block narrow stack">
          <Panel title="Server">
            <Pairs
              rows={[
                ['Version', store.version],
                ['Store', <Id value={store.id} what="store id" full />],
                ['Access', mode === 'open' ? 'open: no key is needed' : 'with keys'],
                ['API', <bdi>{apiRoot.href}</bdi>],
                [
                  'Description',
                  <a class="link" href={new URL('docs', apiRoot).href} target="_blank" rel="noopener">
                    the API as a web page
                  </a>,
                ],
              ]}
            />
          </Panel>
          {key && (
            <Panel title="Your key">
              <Pairs
                rows={[
                  ['Name', <bdi>{key.name}</bdi>],
                  ['Id', <Id value={key.id} what="key id" full />],
                  ['Organizations', key.organizations.includes('*') ? 'all' : <Tags>{key.organizations.map((id) => <Tag key={id}>{id}</Tag>)}</Tags>],
                  ['Scopes', <Tags>{key.scopes.map((scope) => <Tag key={scope}>{scope}</Tag>)}</Tags>],
                  ['Ends', key.expires_at === null ? 'never' : <Time at={key.expires_at} />],
                ]}
              />
              {!administers.value && (
                <p class="aside-note">Pages of the store need a key with the scope admin for all organizations. Ask the person who gave you this one.</p>
              )}
            </Panel>
          )}
          <Panel title="Limits">
            <Pairs
              rows={[
                ['One file', <Size bytes={limits.max_file_size} />],
                features.resumable && ['One file, in parts', <Size bytes={limits.max_resumable_size} />],
                ['A batch', `${counted(limits.max_batch_items, 'file')} together`],
                ['Trash', limits.purge_grace_secs === 0 ? 'deleted files are removed at once' : `${duration(limits.purge_grace_secs * 1000)} until deleted files are removed`],
                ['Temporary files', `${duration(limits.temp_ttl_secs * 1000)} until they expire`],
                ['Quota', limits.quota_bytes === null ? 'no limit of bytes' : <Size bytes={limits.quota_bytes} />],
                ['', limits.quota_files === null ? 'no limit of files' : `${count(limits.quota_files)} files for each organization`],
                features.converted_types.length > 0 && ['Previews of', <Tags>{features.converted_types.map((type) => <Tag key={type}>{type}</Tag>)}</Tags>],
              ]}
            />
          </Panel>
          <Panel title="This page">
            <div class="stack tight">
              <Checkbox label="Show times in UTC" hint="Otherwise times are those of this computer." checked={utc.value} onChange={showUtc} />
              <p class="quiet-text">
                The console asks only this server, keeps your key in this tab, and stores nothing else but these choices. It is made with Preact,
                Inter, JetBrains Mono and Lucide:{' '}
                <a class="link" href={new URL('licences.txt', consoleRoot).href} target="_blank" rel="noopener">
                  licences
                </a>
                .
              </p>
            </div>
          </Panel>
        </div>
      </div>
    </Page>
  );
}
