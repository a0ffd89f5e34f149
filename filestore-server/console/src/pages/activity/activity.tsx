/** Events, live: of one organization, or of the whole store. */

import { useEffect, useState } from 'preact/hooks';
import type { LogEvent } from '../../api/call';
import { askNames, useActivity } from '../../data/activity';
import { gather } from '../../data/deeds';
import { silentBecause } from '../../data/events';
import { isNamed, organizationName } from '../../data/place';
import { Button } from '../../parts/controls/button';
import { CopyButton } from '../../parts/values/copy';
import { Empty } from '../../parts/notes/empty';
import { ErrorBox } from '../../parts/notes/error';
import { SelectField } from '../../parts/controls/field';
import { Blocks } from '../../parts/notes/loading';
import { Notice } from '../../parts/notes/notice';
import { Timeline, type Moment } from '../../parts/timeline';
import { sayError } from '../../parts/notes/toast';
import { go, route } from '../../router';
import { Page } from '../../shell/page';
import { clockSeconds, dayName, fully, utc } from '../../text/times';
import { describe } from './describe';
import { Live } from './live';

const KINDS = [
  { value: '', label: 'All events' },
  { value: 'file.uploaded,file.put_back', label: 'Uploads' },
  { value: 'file.replaced,file.edited,file.ready,file.thumbnail', label: 'Changes' },
  { value: 'file.deleted,file.expired,file.restored,file.purged', label: 'Deleted and restored' },
  { value: 'file.synced,file.migrated,file.sync_failed', label: 'Copies' },
  { value: 'file.damaged', label: 'Damage' },
] as const;

const OF_STORE = [
  { value: 'key.*', label: 'Keys' },
  { value: 'binding.*,migration.*,organization.*', label: 'Organizations' },
  { value: 'webhook.*', label: 'Webhooks' },
  { value: 'fsck.*,backup.*', label: 'Checks and backups' },
] as const;

export function Activity() {
  const { params, query, path } = route.value;
  const organization = params['org'] ?? null;
  const types = query.get('types') ?? '';
  const activity = useActivity(organization, 100, types || undefined);
  const choices = organization === null ? [...KINDS, ...OF_STORE] : KINDS;
  const events = activity.events ?? [];

  return (
    <Page
      title="Activity"
      under={organization === null ? 'of the store' : isNamed(organization) ? `of ${organizationName(organization)}` : `of organization ${organization}`}
      body={null}
      actions={
        <>
          <Live />
          <div class="kinds">
            <SelectField
              label="Kinds of events"
              hideLabel
              value={types}
              choices={choices}
              onChange={(value) => go(path, { replace: true, query: { types: value || undefined } })}
            />
          </div>
          {events.length > 0 && (
            <CopyButton icon="braces" text={() => JSON.stringify(events, null, 2)}>
              Copy as JSON
            </CopyButton>
          )}
        </>
      }
    >
      <div class="page-scroll" tabIndex={0} role="region" aria-label="Events">
        <div class="page-block narrow">
          <Gone />
          {activity.error !== null ? (
            <ErrorBox error={activity.error} what="Events" onRetry={activity.reload} />
          ) : activity.events === undefined ? (
            <Blocks rows={8} />
          ) : events.length === 0 && !activity.more ? (
            <Empty
              icon="activity"
              title={types ? 'No such events' : 'No events yet'}
              action={
                types ? (
                  <Button onClick={() => go(path, { replace: true })}>Show all events</Button>
                ) : undefined
              }
            >
              {types ? 'The log has none of this kind.' : 'Each upload, change and deletion appears here at once.'}
            </Empty>
          ) : (
            <Days events={events} more={activity.more} withOrganization={organization === null} />
          )}
          {activity.events !== undefined && activity.error === null && events.length > 0 && (
            <Older more={activity.more} load={activity.loadOlder} />
          )}
        </div>
      </div>
    </Page>
  );
}

function Gone() {
  if (silentBecause.value?.code !== 'events_off') return null;
  return (
    <Notice kind="warn" title="Events are switched off">
      <p>
        The server writes no events (<code class="code">[events] enabled = false</code>). What happens now does not appear here.
      </p>
    </Notice>
  );
}

/** Lines below the day that they belong to. */
function Days({ events, more, withOrganization }: { events: readonly LogEvent[]; more: boolean; withOrganization: boolean }) {
  const deeds = gather(events, more);
  const wanted = deeds
    .filter((deed) => deed.count === 1)
    .flatMap((deed) => deed.event.data.file_id ?? [])
    .slice(0, 300);
  useEffect(() => askNames(wanted), [wanted.join()]);
  void utc.value;

  const days: { name: string; moments: Moment[] }[] = [];
  for (const deed of deeds) {
    const name = dayName(deed.event.timestamp);
    if (days.at(-1)?.name !== name) days.push({ name, moments: [] });
    days.at(-1)?.moments.push({
      id: deed.event.id,
      ...describe(deed, withOrganization),
      at: (
        <time dateTime={deed.event.timestamp} title={fully(deed.event.timestamp)}>
          {clockSeconds(deed.event.timestamp)}
        </time>
      ),
    });
  }
  return (
    <>
      {days.map((day) => (
        <section key={day.name} class="day" aria-label={day.name}>
          <h2 class="day-name">{day.name}</h2>
          <Timeline label={`Events of ${day.name}`} moments={day.moments} />
        </section>
      ))}
    </>
  );
}

function Older({ more, load }: { more: boolean; load: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  if (!more) return <p class="list-end quiet-text">This is the first event that the log still has.</p>;
  const next = async () => {
    setBusy(true);
    try {
      await load();
    } catch (reason) {
      sayError('Older events could not be loaded', reason);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div class="list-end">
      <Button size="small" busy={busy} onClick={next}>
        Show older events
      </Button>
    </div>
  );
}
