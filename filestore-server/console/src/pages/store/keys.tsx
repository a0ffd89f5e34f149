/** Keys: who may call, with which scopes, until when. Make, rotate, revoke. Secrets are shown once. */

import { useState } from 'preact/hooks';
import { call, serverNow, type KeyReply } from '../../api/call';
import { useLoad } from '../../data/load';
import { Button } from '../../parts/controls/button';
import { ask } from '../../parts/dialog';
import { Empty } from '../../parts/notes/empty';
import { Shown } from '../../parts/notes/loaded';
import { Name } from '../../parts/values/name';
import { RowActions } from '../../parts/controls/row-actions';
import { SecretNotice } from '../../parts/values/secret';
import { Segmented } from '../../parts/controls/segmented';
import { Table, type Column } from '../../parts/table';
import { Tag, Tags } from '../../parts/values/tag';
import { Time } from '../../parts/values/time';
import { say } from '../../parts/notes/toast';
import { me } from '../../session';
import { Page } from '../../shell/page';
import { spoken } from '../../text/names';
import { count } from '../../text/sizes';
import { short, when, whenWithin } from '../../text/times';
import { freshKey } from './fresh';
import { NewKeyDialog } from './new-key';
import { RotateDialog } from './rotate';
import { SigningSecrets } from './signing';

const DAY = 86_400_000;

type View = 'used' | 'ended';

export function Keys() {
  const keys = useLoad('keys', async (signal) => (await call('GET', '/admin/keys', { signal })).data, 60_000);
  const [view, setView] = useState<View>('used');
  const [dialog, setDialog] = useState<'new' | KeyReply | null>(null);
  const used = keys.data?.filter((key) => !hasEnded(key));
  const ended = keys.data?.filter(hasEnded);

  const show = () => {
    setDialog(null);
    setView('used');
    void keys.reload();
  };

  return (
    <Page
      title="Keys"
      under={used && `${count(used.length)} in use`}
      body={null}
      actions={
        <>
          <Segmented
            label="Which keys"
            value={view}
            onChange={setView}
            segments={[
              { value: 'used', label: 'In use' },
              { value: 'ended', label: 'Ended', ...(ended && { count: count(ended.length) }) },
            ]}
          />
          <Button kind="primary" icon="plus" onClick={() => setDialog('new')}>
            New key
          </Button>
        </>
      }
    >
      <div class="page-scroll">
        <FreshKey />
        <Shown of={keys} what="Keys">
          {() => <KeyTable keys={(view === 'used' ? used : ended) ?? []} view={view} onRotate={setDialog} reload={keys.reload} />}
        </Shown>
        <SigningSecrets />
      </div>
      {dialog === 'new' && <NewKeyDialog onClose={() => setDialog(null)} onMade={show} />}
      {dialog !== null && dialog !== 'new' && (
        <RotateDialog target={dialog} onClose={() => setDialog(null)} onRotated={show} />
      )}
    </Page>
  );
}

function FreshKey() {
  const made = freshKey.value;
  if (!made) return null;
  const { key, rotated } = made;
  return (
    <div class="page-notice">
      <SecretNotice
        key={key.key}
        secret={key.key}
        what={`key ${spoken(key.name)}`}
        title={
          rotated ? `${spoken(key.name)} has a new secret. It is shown this once.` : `The key ${spoken(key.name)} was made. It is shown this once.`
        }
        onClose={() => (freshKey.value = null)}
      >
        <p>
          {rotated && key.old_valid_until !== null ? (
            <>
              The secret before is accepted until {whenWithin(key.old_valid_until)}. Put the new one where it is used before that.
            </>
          ) : rotated ? (
            'The secret before is refused from now on.'
          ) : (
            'Programs send it in the header Authorization: Bearer. Copy it now to where it is used.'
          )}
        </p>
      </SecretNotice>
    </div>
  );
}

function KeyTable({
  keys,
  view,
  onRotate,
  reload,
}: {
  keys: readonly KeyReply[];
  view: View;
  onRotate: (key: KeyReply) => void;
  reload: () => Promise<void>;
}) {
  if (keys.length === 0) {
    return view === 'used' ? (
      <Empty icon="key-round" title="No keys">
        A key lets one program into some organizations, with some scopes.
      </Empty>
    ) : (
      <Empty icon="key-round" title="No key has ended">
        Revoked and expired keys are listed here.
      </Empty>
    );
  }
  return (
    <Table
      label={view === 'used' ? 'Keys in use' : 'Ended keys'}
      columns={columns(view)}
      rows={keys}
      rowKey={(key) => key.id}
      {...(view === 'used' && {
        buttons: (key: KeyReply) => (
          <RowActions
            of={spoken(key.name)}
            actions={[
              { label: 'Rotate', icon: 'rotate-cw', act: () => onRotate(key) },
              { label: 'Revoke', icon: 'x', danger: true, act: () => revoke(key, reload) },
            ]}
          />
        ),
      })}
    />
  );
}

function columns(view: View): Column<KeyReply>[] {
  return [
    { title: 'Key', phone: 'title', width: 'wide', cell: (key) => <KeyName of={key} /> },
    { title: 'Organizations', phone: 'shown', cell: (key) => <Organizations ids={key.organizations} /> },
    { title: 'Scopes', phone: 'shown', cell: (key) => <Scopes scopes={key.scopes} /> },
    { title: 'Last used', phone: 'hidden', cell: (key) => <LastUsed of={key} /> },
    { title: view === 'used' ? 'Ends' : 'Ended', phone: 'hidden', cell: (key) => <Ends of={key} /> },
  ];
}

function KeyName({ of: key }: { of: KeyReply }) {
  return (
    <>
      <span class="row">
        <Name name={key.name} whole class="cell-main" />
        {me.value?.key?.id === key.id && <Tag>this session</Tag>}
      </span>
      <span class="cell-sub mono">{key.id}</span>
      {key.old_valid_until !== null && Date.parse(key.old_valid_until) > serverNow() && (
        <span class="cell-sub warn-text">secret before accepted until {whenWithin(key.old_valid_until)}</span>
      )}
    </>
  );
}

function Organizations({ ids }: { ids: readonly string[] }) {
  if (ids.includes('*')) return <Tag kind="accent">all organizations</Tag>;
  const shown = ids.slice(0, 6);
  return (
    <Tags>
      {shown.map((id) => (
        <Tag key={id}>{id}</Tag>
      ))}
      {ids.length > shown.length && <Tag title={ids.slice(6).join(', ')}>{`${ids.length - shown.length} more`}</Tag>}
    </Tags>
  );
}

function Scopes({ scopes }: { scopes: readonly string[] }) {
  return (
    <Tags>
      {scopes.map((scope) => (
        <Tag key={scope} kind={scope === 'admin' ? 'warn' : 'plain'}>
          {scope}
        </Tag>
      ))}
    </Tags>
  );
}

function LastUsed({ of: key }: { of: KeyReply }) {
  if (key.last_used_at !== null) return <Time at={key.last_used_at} />;
  const age = serverNow() - Date.parse(key.created_at);
  if (age < 2 * DAY) return <span class="quiet-text">never</span>;
  return <span class={age > 30 * DAY ? 'warn-text' : 'quiet-text'}>never, in {short(age)}</span>;
}

function Ends({ of: key }: { of: KeyReply }) {
  if (key.revoked_at !== null) {
    return (
      <>
        revoked <Time at={key.revoked_at} within />
      </>
    );
  }
  if (key.expires_at === null) return <span class="quiet-text">never</span>;
  const left = Date.parse(key.expires_at) - serverNow();
  if (left <= 0 || left > 60 * DAY) return <Time at={key.expires_at} />;
  return (
    <time dateTime={key.expires_at} class={left < 7 * DAY ? 'warn-text' : undefined} title={when(key.expires_at)}>
      in {short(left)}
    </time>
  );
}

function hasEnded(key: KeyReply): boolean {
  return key.revoked_at !== null || (key.expires_at !== null && Date.parse(key.expires_at) <= serverNow());
}

async function revoke(key: KeyReply, reload: () => Promise<void>): Promise<void> {
  const own = me.peek()?.key?.id === key.id;
  const done = await ask({
    title: `Revoke ${spoken(key.name)}?`,
    text: (
      <>
        <p>
          The server refuses the key with its next request. Uploads that are running end. A revoked key cannot be used again.
        </p>
        {own ? (
          <p>
            <strong>This is the key of this session.</strong> You will be signed out.
          </p>
        ) : (
          key.last_used_at !== null && (
            <p>
              Last used <Time at={key.last_used_at} within />.
            </p>
          )
        )}
      </>
    ),
    verb: 'Revoke',
    danger: true,
    ...(own && { typed: spoken(key.name) }),
    act: () => call('POST', '/admin/keys/{key_id}/revoke', { path: { key_id: key.id }, body: {} }),
  });
  if (!done) return;
  say(`${spoken(key.name)} was revoked`);
  await reload();
}
