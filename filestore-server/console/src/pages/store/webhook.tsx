/** One webhook: how deliveries go, what failed, and what to do about it. */

import { useState } from 'preact/hooks';
import { call, type WebhookFailure, type WebhookPingReply, type WebhookReply } from '../../api/call';
import { useLoad, type Loaded } from '../../data/load';
import { AdviceCard } from '../../parts/notes/advice';
import { Button } from '../../parts/controls/button';
import { Radios } from '../../parts/controls/checkbox';
import { Id } from '../../parts/values/copy';
import { ask, FormDialog } from '../../parts/dialog';
import { ErrorLine } from '../../parts/notes/error';
import { Shown } from '../../parts/notes/loaded';
import { MenuButton } from '../../parts/controls/menu';
import { Aside, Panel } from '../../parts/panel';
import { Pairs } from '../../parts/pairs';
import { State } from '../../parts/notes/state';
import { Table } from '../../parts/table';
import { Tag } from '../../parts/values/tag';
import { Since, Time } from '../../parts/values/time';
import { say, sayError } from '../../parts/notes/toast';
import { Segmented } from '../../parts/controls/segmented';
import { go, href, route } from '../../router';
import { Page } from '../../shell/page';
import { counted } from '../../text/sizes';
import { whenWithin } from '../../text/times';
import { freshWebhook } from './fresh';
import { sinceWords } from './providers-shared';
import { OVERLAPS, type Overlap } from './rotate';
import { answerInWords, DISABLED, EventTypes, FreshWebhook, nameOf, WebhookState } from './webhooks';
import { WebhookDialog } from './webhook-form';

export function Webhook() {
  const id = route.value.params['webhook'] ?? '';
  const hook = useLoad(
    `webhook ${id}`,
    async (signal) => (await call('GET', '/webhooks/{webhook_id}', { path: { webhook_id: id }, signal })).data,
    5_000,
  );
  const [dialog, setDialog] = useState<'edit' | 'rotate' | 'enable' | null>(null);
  const name = hook.data ? nameOf(hook.data) : 'Webhook';

  return (
    <Page
      title={name}
      trail={['Webhooks']}
      heading={
        <>
          <a class="crumb" href={href('store/webhooks')}>
            Webhooks
          </a>{' '}
          <span class="crumb-line">/</span> <bdi>{name}</bdi>
        </>
      }
      body={null}
      actions={hook.data && <Actions hook={hook.data} loaded={hook} open={setDialog} />}
    >
      <div class="sided">
        <div class="sided-main stack">
          <FreshWebhook only={id} />
          <Shown of={hook} what="Webhook">
            {(data) => (
              <div class="stack">
                <Advice hook={data} onEnable={() => setDialog('enable')} />
                <Ping hook={data} />
                <Failures hook={data} />
              </div>
            )}
          </Shown>
        </div>
        {hook.data && (
          <aside class="sided-side" aria-label="Facts">
            <Facts hook={hook.data} />
          </aside>
        )}
      </div>
      {hook.data && dialog === 'edit' && (
        <WebhookDialog
          edited={hook.data}
          onClose={() => setDialog(null)}
          onEdited={(data) => {
            hook.set({ ...data, oldest_waiting_at: hook.data?.oldest_waiting_at ?? null });
            setDialog(null);
            say('The webhook was changed');
          }}
        />
      )}
      {hook.data && dialog === 'rotate' && <RotateWebhook hook={hook.data} onClose={() => setDialog(null)} reload={hook.reload} />}
      {hook.data && dialog === 'enable' && <EnableDialog hook={hook.data} onClose={() => setDialog(null)} loaded={hook} />}
    </Page>
  );
}

function Actions({
  hook,
  loaded,
  open,
}: {
  hook: WebhookReply;
  loaded: Loaded<WebhookReply>;
  open: (dialog: 'edit' | 'rotate' | 'enable') => void;
}) {
  return (
    <>
      {hook.state === 'disabled' ? (
        <Button kind="primary" icon="power" onClick={() => open('enable')}>
          Enable
        </Button>
      ) : (
        <Button icon="power" onClick={() => disable(hook, loaded)}>
          Disable
        </Button>
      )}
      <MenuButton
        name="More actions"
        entries={() => [
          { label: 'Edit…', icon: 'pencil', act: () => open('edit') },
          { label: 'Rotate the secret…', icon: 'rotate-cw', act: () => open('rotate') },
          'line',
          { label: 'Delete…', icon: 'trash-2', danger: true, act: () => remove(hook) },
        ]}
      />
    </>
  );
}

function Advice({ hook, onEnable }: { hook: WebhookReply; onEnable: () => void }) {
  if (hook.state === 'disabled') {
    return (
      <AdviceCard
        kind="warn"
        title="No events are sent"
        action={
          <Button icon="power" onClick={onEnable}>
            Enable
          </Button>
        }
      >
        {DISABLED[hook.disabled_reason ?? ''] ?? 'The webhook is disabled.'} Events stay in the log, so that it can continue where it stood.
      </AdviceCard>
    );
  }
  if (hook.state !== 'failing') return null;
  return (
    <AdviceCard
      kind="bad"
      title={
        hook.failing_since === null ? (
          'The endpoint accepts no event'
        ) : (
          <>
            The endpoint has accepted no event since {sinceWords(hook.failing_since)}, for <Since at={hook.failing_since} />
          </>
        )
      }
      error={`last answer: ${answerInWords(hook.last_status, hook.last_error)}`}
    >
      <p>
        Events wait and are not lost.
        {hook.paused_until !== null && (
          <>
            {' '}
            Next attempt <Time at={hook.paused_until} />.
          </>
        )}{' '}
        After days without success the server disables the webhook.
      </p>
    </AdviceCard>
  );
}

function Ping({ hook }: { hook: WebhookReply }) {
  const [result, setResult] = useState<WebhookPingReply | null>(null);
  const [error, setError] = useState<unknown>(null);
  const ping = async () => {
    setError(null);
    setResult(null);
    try {
      setResult((await call('POST', '/webhooks/{webhook_id}/ping', { path: { webhook_id: hook.id }, body: {} })).data);
    } catch (reason) {
      setError(reason);
    }
  };
  return (
    <Panel
      title="Test"
      action={
        <Button size="small" icon="send" onClick={ping} disabled={hook.state === 'disabled'}>
          Send a test event
        </Button>
      }
    >
      {error !== null ? (
        <ErrorLine error={error} />
      ) : result === null ? (
        <p class="quiet-text">
          {hook.state === 'disabled'
            ? 'Enable the webhook to test it.'
            : 'Sends an event of the type webhook.ping, signed like every event, and waits for the answer.'}
        </p>
      ) : (
        <div role="status">
          <State kind={result.delivered ? 'ok' : 'bad'}>
            {result.delivered
              ? `The endpoint answered ${result.status} in ${result.took_ms} ms`
              : `Not accepted: ${result.status === null ? answerInWords(null, result.error) : `the endpoint answered ${result.status}`}, after ${result.took_ms} ms`}
          </State>
        </div>
      )}
    </Panel>
  );
}

type Which = 'all' | 'waiting' | 'held' | 'failed';

function Failures({ hook }: { hook: WebhookReply }) {
  const [which, setWhich] = useState<Which>('all');
  const [older, setOlder] = useState<WebhookFailure[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const load = async (signal: AbortSignal | undefined, after?: string) =>
    (
      await call('GET', '/webhooks/{webhook_id}/failures', {
        path: { webhook_id: hook.id },
        query: { limit: 100, ...(which !== 'all' && { state: which }), ...(after && { after }) },
        signal,
      })
    ).data;
  const failures = useLoad(
    `failures ${hook.id} ${which}`,
    async (signal) => {
      const page = await load(signal);
      setOlder([]);
      setNext(page.next);
      return page.failures;
    },
    older.length > 0 ? undefined : 10_000,
  );
  const more = async () => {
    if (next === null) return;
    try {
      const page = await load(undefined, next);
      setOlder([...older, ...page.failures]);
      setNext(page.next);
    } catch (reason) {
      sayError('The next failures could not be loaded', reason);
    }
  };
  const rows = [...(failures.data ?? []), ...older];
  const anyFailed = rows.some((row) => row.state === 'failed');

  return (
    <Panel
      title="Events that were not accepted at once"
      flush
      action={
        <>
          <Segmented
            label="Which failures"
            size="small"
            value={which}
            onChange={setWhich}
            segments={[
              { value: 'all', label: 'All' },
              { value: 'waiting', label: 'Waiting' },
              { value: 'held', label: 'Held' },
              { value: 'failed', label: 'Failed' },
            ]}
          />
          {anyFailed && hook.state !== 'disabled' && (
            <Button size="small" icon="send" onClick={() => redeliverAll(hook, failures)}>
              Send all failed again
            </Button>
          )}
        </>
      }
    >
      <Shown of={failures} rows={3} what="Failures">
        {() =>
          rows.length === 0 ? (
            <p class="panel-empty">
              {which === 'all' ? 'None. Every event was accepted at the first attempt, or has not come yet.' : `None in the state ${which}.`}
            </p>
          ) : (
            <>
              <Table
                label="Failures"
                rows={rows}
                rowKey={(row) => row.event_id}
                columns={[
                  {
                    title: 'Event',
                    phone: 'title',
                    cell: (row) => (
                      <>
                        <span class="cell-main">{row.type}</span>
                        <span class="cell-sub mono">{row.file_id ?? row.event_id}</span>
                      </>
                    ),
                  },
                  { title: 'State', cell: (row) => <FailureState row={row} /> },
                  { title: 'Attempts', align: 'end', phone: 'hidden', cell: (row) => row.attempts },
                  { title: 'Last answer', align: 'end', cell: (row) => row.last_status ?? 'none' },
                  { title: 'When', cell: (row) => <Time at={row.at} /> },
                ]}
                buttons={(row) =>
                      row.state === 'failed' &&
                      hook.state !== 'disabled' && (
                        <Button size="small" label={`Send ${row.type} of ${row.event_id} again`} onClick={() => redeliver(hook, row, failures)}>
                          Send again
                        </Button>
                      )}
              />
              {next !== null && (
                <div class="panel-more">
                  <Button size="small" onClick={more}>
                    Show more
                  </Button>
                </div>
              )}
            </>
          )
        }
      </Shown>
    </Panel>
  );
}

function FailureState({ row }: { row: WebhookFailure }) {
  if (row.state === 'failed') return <State kind="bad">Failed</State>;
  if (row.state === 'held') return <State kind="wait">Held behind an earlier event</State>;
  return <State kind="wait">Waits for its next attempt</State>;
}

function Facts({ hook }: { hook: WebhookReply }) {
  return (
    <>
      <Aside title="Delivery">
        <Pairs
          rows={[
            ['State', <WebhookState hook={hook} />],
            ['Last accepted', hook.last_success_at === null ? 'never' : <Time at={hook.last_success_at} />],
            ['Last attempt', hook.last_attempt_at === null ? 'none' : <Time at={hook.last_attempt_at} />],
            ['Last answer', answerInWords(hook.last_status, hook.last_error)],
            hook.oldest_waiting_at !== null && ['Waits since', <Time at={hook.oldest_waiting_at} />],
            hook.gaps > 0 && ['Gaps', `${counted(hook.gaps, 'time')}: the log had forgotten events before they were sent`],
          ]}
        />
      </Aside>
      <Aside title="Webhook">
        <Pairs
          rows={[
            ['Id', <Id value={hook.id} />],
            ['URL', <bdi>{hook.url}</bdi>],
            ['Events', <EventTypes types={hook.types} />],
            ['Organization', hook.organization_id === null ? <Tag kind="accent">all</Tag> : <Tag>{hook.organization_id}</Tag>],
            ['Made', <Time at={hook.created_at} />],
            hook.changed_at !== hook.created_at && ['Changed', <Time at={hook.changed_at} />],
            hook.former_secret_until !== null && ['Secret before', <>signs too until {whenWithin(hook.former_secret_until)}</>],
          ]}
        />
      </Aside>
    </>
  );
}

function RotateWebhook({ hook, onClose, reload }: { hook: WebhookReply; onClose: () => void; reload: () => Promise<void> }) {
  const overlaps = hook.former_secret_until !== null;
  const [overlap, setOverlap] = useState<Overlap>(overlaps ? '0' : '86400');
  const rotate = async () => {
    const { data } = await call('POST', '/webhooks/{webhook_id}/rotate', {
      path: { webhook_id: hook.id },
      body: { overlap_s: Number(overlap) },
    });
    freshWebhook.value = data;
    onClose();
    await reload();
  };
  return (
    <FormDialog title="Rotate the secret" verb="Rotate" danger={overlap === '0'} onClose={onClose} act={rotate}>
      <Radios
        legend="The secret before signs too for"
        value={overlap}
        onChange={setOverlap}
        row
        choices={OVERLAPS.map((one) => ({ ...one, disabled: overlaps && one.value !== '0' }))}
      />
      <p class="dialog-text">
        {overlaps && hook.former_secret_until !== null
          ? `A rotation is under way until ${whenWithin(hook.former_secret_until)}. Until then only a rotation without overlap is possible. It ends all earlier secrets at once.`
          : overlap === '0'
            ? 'The receiver cannot verify events until it has the new secret.'
            : 'Each event carries both signatures during this time, so you can change the receiver at any moment.'}
      </p>
    </FormDialog>
  );
}

function EnableDialog({ hook, onClose, loaded }: { hook: WebhookReply; onClose: () => void; loaded: Loaded<WebhookReply> }) {
  const [from, setFrom] = useState<'here' | 'end' | 'start'>('here');
  const enable = async () => {
    const body = from === 'here' ? {} : { from };
    loaded.set((await call('POST', '/webhooks/{webhook_id}/enable', { path: { webhook_id: hook.id }, body })).data);
    onClose();
    say('The webhook sends events again');
  };
  return (
    <FormDialog title="Send events again" verb="Enable" onClose={onClose} act={enable}>
      <Radios
        legend="Begin"
        value={from}
        onChange={setFrom}
        choices={[
          { value: 'here', label: 'Where it stood', hint: 'Events that came meanwhile are sent, if the log still has them.' },
          { value: 'end', label: 'With events from now on', hint: 'Events that came meanwhile are left out.' },
          { value: 'start', label: 'With everything that the log has', hint: 'The endpoint gets events again that it has had.' },
        ]}
      />
    </FormDialog>
  );
}

async function disable(hook: WebhookReply, loaded: Loaded<WebhookReply>): Promise<void> {
  try {
    const path = { webhook_id: hook.id };
    loaded.set((await call('POST', '/webhooks/{webhook_id}/disable', { path, body: {} })).data);
    say('The webhook was disabled', async () => {
      loaded.set((await call('POST', '/webhooks/{webhook_id}/enable', { path, body: {} })).data);
    });
  } catch (reason) {
    sayError('The webhook could not be disabled', reason);
  }
}

async function remove(hook: WebhookReply): Promise<void> {
  const done = await ask({
    title: `Delete the webhook ${nameOf(hook)}?`,
    text: 'Its secret and its list of failures are deleted too. Events that wait for it are not sent.',
    verb: 'Delete',
    danger: true,
    act: () => call('DELETE', '/webhooks/{webhook_id}', { path: { webhook_id: hook.id } }),
  });
  if (!done) return;
  say('The webhook was deleted');
  go('store/webhooks');
}

async function redeliver(hook: WebhookReply, row: WebhookFailure, failures: Loaded<WebhookFailure[]>): Promise<void> {
  try {
    await call('POST', '/webhooks/{webhook_id}/redeliver', { path: { webhook_id: hook.id }, body: { event_id: row.event_id } });
    say(`${row.type} is sent again`);
    await failures.reload();
  } catch (reason) {
    sayError('The event could not be sent again', reason);
  }
}

async function redeliverAll(hook: WebhookReply, failures: Loaded<WebhookFailure[]>): Promise<void> {
  try {
    const { data } = await call('POST', '/webhooks/{webhook_id}/redeliver', { path: { webhook_id: hook.id }, body: { failed: true } });
    say(`${counted(data.queued, 'event')} will be sent again`);
    await failures.reload();
  } catch (reason) {
    sayError('The events could not be sent again', reason);
  }
}
