/** Webhooks: which endpoints get events, and how it goes. */

import { useState } from 'preact/hooks';
import { call, type WebhookReply } from '../../api/call';
import { useLoad } from '../../data/load';
import { Button } from '../../parts/controls/button';
import { Empty } from '../../parts/notes/empty';
import { Shown } from '../../parts/notes/loaded';
import { Name } from '../../parts/values/name';
import { SecretNotice } from '../../parts/values/secret';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Tag, Tags } from '../../parts/values/tag';
import { Time } from '../../parts/values/time';
import { go, href } from '../../router';
import { Page } from '../../shell/page';
import { spoken } from '../../text/names';
import { count } from '../../text/sizes';
import { whenWithin } from '../../text/times';
import { freshWebhook } from './fresh';
import { sinceWords } from './providers-shared';
import { WebhookDialog } from './webhook-form';

export function Webhooks() {
  const hooks = useLoad('webhooks', async (signal) => (await call('GET', '/webhooks', { signal })).data, 10_000);
  const [making, setMaking] = useState(false);

  return (
    <Page
      title="Webhooks"
      under={hooks.data && count(hooks.data.length)}
      body={null}
      actions={
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New webhook
        </Button>
      }
    >
      <div class="page-scroll">
        <FreshWebhook />
        <Shown of={hooks} what="Webhooks">
          {(list) =>
            list.length === 0 ? (
              <Empty
                icon="webhook"
                title="No webhooks"
                action={
                  <Button icon="plus" onClick={() => setMaking(true)}>
                    New webhook
                  </Button>
                }
              >
                A webhook sends each event to a URL of your application: uploads, deletions, copies, and what happens to the store.
              </Empty>
            ) : (
              <WebhookTable hooks={list} />
            )
          }
        </Shown>
      </div>
      {making && (
        <WebhookDialog
          onClose={() => setMaking(false)}
          onMade={(hook) => {
            freshWebhook.value = hook;
            setMaking(false);
            void hooks.reload();
          }}
        />
      )}
    </Page>
  );
}

export function FreshWebhook({ only }: { only?: string }) {
  const hook = freshWebhook.value;
  if (!hook || (only !== undefined && only !== hook.id)) return null;
  return (
    <div class="page-notice">
      <SecretNotice
        key={hook.secret}
        secret={hook.secret}
        what={`secret of ${nameOf(hook)}`}
        title={`The secret of ${nameOf(hook)} is shown this once.`}
        onClose={() => (freshWebhook.value = null)}
      >
        <p>
          {hook.former_secret_until !== null
            ? `The secret before signs too until ${whenWithin(hook.former_secret_until)}. Put the new one into the receiver before that.`
            : 'The receiver needs it to verify the signature of each event.'}
        </p>
      </SecretNotice>
    </div>
  );
}

function WebhookTable({ hooks }: { hooks: readonly WebhookReply[] }) {
  return (
    <Table
      label="Webhooks"
      rows={hooks}
      rowKey={(hook) => hook.id}
      rowClass={(hook) => hook.state === 'failing' && 'sick'}
      onRow={(hook) => go(`store/webhooks/${hook.id}`)}
      columns={[
        {
          title: 'Webhook',
          phone: 'title',
          width: 'wide',
          cell: (hook) => (
            <>
              <a class="cell-main" href={href(`store/webhooks/${hook.id}`)}>
                <Name name={hook.name || hostOf(hook.url)} whole />
              </a>
              <span class="cell-sub">
                <bdi>{hook.url}</bdi>
              </span>
            </>
          ),
        },
        { title: 'State', cell: (hook) => <WebhookState hook={hook} /> },
        { title: 'Events', phone: 'hidden', cell: (hook) => <EventTypes types={hook.types} /> },
        {
          title: 'Organization',
          phone: 'hidden',
          cell: (hook) => (hook.organization_id === null ? <Tag kind="accent">all organizations</Tag> : <Tag>{hook.organization_id}</Tag>),
        },
        {
          title: 'Last accepted',
          cell: (hook) => (hook.last_success_at === null ? <span class="quiet-text">never</span> : <Time at={hook.last_success_at} />),
        },
      ]}
    />
  );
}

export function EventTypes({ types }: { types: readonly string[] }) {
  if (types.length === 0) return <Tag kind="accent">all events</Tag>;
  return (
    <Tags>
      {types.slice(0, 4).map((type) => (
        <Tag key={type}>{type}</Tag>
      ))}
      {types.length > 4 && <Tag title={types.slice(4).join(', ')}>{`${types.length - 4} more`}</Tag>}
    </Tags>
  );
}

export function WebhookState({ hook }: { hook: WebhookReply }) {
  if (hook.state === 'disabled') {
    return (
      <State kind="off" note={hook.disabled_at !== null && <Time at={hook.disabled_at} />}>
        Disabled
      </State>
    );
  }
  if (hook.state === 'failing') {
    return (
      <State kind="bad" note={hook.failing_since !== null && <>since {sinceWords(hook.failing_since)}</>}>
        Failing
      </State>
    );
  }
  return hook.last_success_at === null ? <State kind="wait">Nothing sent yet</State> : <State kind="ok">Accepts</State>;
}

/** Why an attempt failed, in words. */
export function answerInWords(status: number | null, error: string | null): string {
  if (error !== null) return ERRORS[error] ?? error;
  return status === null ? 'none yet' : `${status}`;
}

const ERRORS: Record<string, string> = {
  dns: 'the name of the host cannot be resolved',
  address_refused: 'the address is not allowed: it is not public',
  url_refused: 'the URL is not allowed',
  connect: 'no connection',
  timeout: 'no answer in time',
  broken: 'the answer was cut off',
};

export const DISABLED: Record<string, string> = {
  requested: 'It was disabled by request.',
  gone: 'The endpoint answered 410 Gone, so the server stopped.',
  no_success: 'The endpoint accepted no event for days, so the server stopped.',
  copied: 'This store is a restored copy. Enable the webhook if the copy takes the place of the original.',
};

/** The name of a webhook for a sentence, with hidden characters in words. */
export function nameOf(hook: Pick<WebhookReply, 'name' | 'url'>): string {
  return spoken(hook.name) || hostOf(hook.url);
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}
