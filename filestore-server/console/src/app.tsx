// Which page is shown: by the session first, then by the address.
import { signal } from '@preact/signals';
import type { ComponentType } from 'preact';
import { useEffect } from 'preact/hooks';
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
import { ErrorBox } from './parts/notes/error';

const HERE: Record<string, ComponentType> = {
  start: StartPage,
  'sign-in': StartPage,
  'signed-out': StartPage,
  files: FilesPage,
  trash: TrashPage,
  uploads: UploadsPage,
  more: MorePage,
};

/** Pages of the second script, by the name of their route. */
const THERE: Record<string, string> = {
  file: 'FilePage',
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

type Pages = Record<string, ComponentType>;

/** The second script, once it is here. */
const script = signal<{ pages?: Pages; error?: unknown }>({});

function fetchScript(): void {
  const { pages, error } = script.peek();
  if (pages || error !== undefined) return;
  import('./pages/administration').then(
    (module) => (script.value = { pages: module as unknown as Pages }),
    (error: unknown) => (script.value = { error }),
  );
}

/** A page that comes with the second script. */
function Later({ name }: { name: string }) {
  const { pages, error } = script.value;
  useEffect(fetchScript, []);
  if (!pages && error !== undefined) {
    return <Page title="Not loaded"><ErrorBox error={error} onRetry={() => location.reload()} /></Page>;
  }
  const Shown = pages?.[THERE[name] ?? ''];
  return Shown ? <Shown /> : <Page title={pages ? 'No such page' : 'Loading'} />;
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
    if (!signedIn) return;
    void refreshOrganizations();
    // The page of one file is the likely next step, so the script comes while nothing else does.
    const timer = setTimeout(fetchScript, 1500);
    return () => clearTimeout(timer);
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
      return <Shell>{name === 'unknown' ? <Unknown /> : <Later name={name} />}</Shell>;
    }
  }
}
