// Which page is shown: by the session first, then by the address.
import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { FilePage } from './pages/file/file';
import { FilesPage } from './pages/files/files';
import { SignIn } from './pages/sign-in/sign-in';
import { StartPage } from './pages/start/start';
import { TrashPage } from './pages/trash/trash';
import { UploadsPage } from './pages/uploads/page';
import { refreshOrganizations } from './data/place';
import { route } from './router';
import { session, start } from './session';
import { MorePage, Shell } from './shell/shell';
import { Page } from './shell/page';
import { ErrorBox } from './parts/error';

const HERE: Record<string, ComponentType> = {
  start: StartPage,
  'sign-in': StartPage,
  'signed-out': StartPage,
  files: FilesPage,
  file: FilePage,
  trash: TrashPage,
  uploads: UploadsPage,
  more: MorePage,
};

/** Pages of the second script, by the name of their route. */
const THERE: Record<string, string> = {
  overview: 'Overview',
  organizations: 'Organizations',
  providers: 'Providers',
  provider: 'Provider',
  work: 'Work',
  checks: 'Checks',
  backups: 'Backups',
  keys: 'Keys',
  webhooks: 'Webhooks',
  webhook: 'Webhook',
  storage: 'Storage',
  activity: 'Activity',
  about: 'About',
};

/** Pages of administration come with a second script, when one of them is opened. */
function Administration({ name }: { name: string }) {
  const [pages, setPages] = useState<Record<string, ComponentType> | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    import('./pages/administration').then((module) => setPages(module as unknown as Record<string, ComponentType>), setError);
  }, []);
  if (error !== null) {
    return <Page title="Not loaded"><ErrorBox error={error} onRetry={() => location.reload()} /></Page>;
  }
  const Shown = pages?.[THERE[name] ?? ''];
  return pages === null || !Shown ? <Page title={pages === null ? 'Loading' : 'No such page'} /> : <Shown />;
}

function Unknown() {
  return (
    <Page title="No such page">
      <p>This address is not one of the console. Choose a page from the navigation.</p>
    </Page>
  );
}

export function App() {
  const state = session.value;
  const { name } = route.value;
  const signedIn = state.kind === 'in';
  useEffect(() => {
    if (signedIn) void refreshOrganizations();
  }, [signedIn]);
  switch (state.kind) {
    case 'starting':
      return <div class="stage-empty" />;
    case 'out':
      return <SignIn reason={state.reason} />;
    case 'failed':
      return (
        <main class="sign-in">
          <ErrorBox error={state.error} onRetry={() => start()} />
        </main>
      );
    case 'in': {
      const Shown = HERE[name];
      if (Shown) return <Shell><Shown /></Shell>;
      return <Shell>{name === 'unknown' ? <Unknown /> : <Administration name={name} />}</Shell>;
    }
  }
}
