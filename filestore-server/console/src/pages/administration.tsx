// The second script: the page of one file, and the pages of administration. `app.tsx` loads it when one of them is opened.
import type { ComponentType } from 'preact';
import { Empty } from '../parts/notes/empty';
import { administers, isOpen } from '../session';
import { Page } from '../shell/page';
import { Backups as BackupsPage } from './store/backups';
import { Checks as ChecksPage } from './store/checks';
import { Keys as KeysPage } from './store/keys';
import { Overview as OverviewPage } from './store/overview';
import { Provider as ProviderPage, Providers as ProvidersPage } from './store/providers';
import { Webhook as WebhookPage } from './store/webhook';
import { Webhooks as WebhooksPage } from './store/webhooks';
import { Work as WorkPage } from './store/work';

export { About } from './about/about';
export { Activity } from './activity/activity';
export { FilePage } from './file/file';
export { Organizations } from './store/organizations';
export { Storage } from './storage/storage';

/** A page of the store, for keys that administer it. Others learn which key they need, and no request is sent. */
function ofStore(title: string, Inner: ComponentType): ComponentType {
  return () =>
    administers.value || isOpen.value ? (
      <Inner />
    ) : (
      <Page title={title}>
        <Empty icon="lock" title="Your key may not see this page">
          It needs a key with the scope <strong>admin</strong> for all organizations. Ask the person who gave you your key.
        </Empty>
      </Page>
    );
}

export const Backups = ofStore('Backups', BackupsPage);
export const Checks = ofStore('Checks', ChecksPage);
export const Keys = ofStore('Keys', KeysPage);
export const Overview = ofStore('Overview', OverviewPage);
export const Provider = ofStore('Provider', ProviderPage);
export const Providers = ofStore('Providers', ProvidersPage);
export const Webhook = ofStore('Webhook', WebhookPage);
export const Webhooks = ofStore('Webhooks', WebhooksPage);
export const Work = ofStore('Work', WorkPage);
export { NewKeyDialog } from './store/new-key';
