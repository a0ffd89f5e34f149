// The frame around the pages: navigation, who is signed in, bars, and what floats above.
import type { ComponentChildren } from 'preact';
import { offlineSince, serverNow } from '../api/call';
import { organization, organizations, organizationsComplete, usage } from '../data/place';
import { Icon, type IconName } from '../parts/icon';
import { IconButton } from '../parts/controls/button';
import { Dock, SideProgress } from '../pages/uploads/dock';
import { Refused } from '../pages/files/bar';
import { chooseFiles } from '../pages/uploads/choose';
import { href, route } from '../router';
import { administers, isOpen, locksSoon, may, me } from '../session';
import { clock, tick } from '../text/times';
import { useEffect } from 'preact/hooks';
import { listenToKeys } from './keys';
import { KeysDialog } from './keys-dialog';
import { alertNow, LiveRegions } from './live';
import { OpenBar } from './open-bar';
import { Switcher } from './switcher';
import { QuestionHost } from '../parts/dialog';
import { MenuHost } from '../parts/controls/menu';
import { ToastHost } from '../parts/notes/toast';
import { count } from '../text/sizes';
import { looksDark, setTheme, theme } from './theme';
import { signOut } from './sign-out';

interface Entry {
  page: string;
  word: string;
  icon: IconName;
  to: string;
  count?: number | undefined;
  /** Other pages that are below this one. */
  also?: string[];
}

function organizationEntries(org: string): Entry[] {
  const deleted = usage.value?.deleted.files;
  const of = (page: string) => `org/${org}/${page}`;
  return [
    { page: 'files', word: 'Files', icon: 'images', to: of('files'), also: ['file'] },
    ...(may('read') ? [{ page: 'trash', word: 'Trash', icon: 'trash-2' as const, to: of('trash'), count: deleted || undefined }] : []),
    { page: 'storage', word: 'Storage', icon: 'hard-drive', to: of('storage') },
    { page: 'activity', word: 'Activity', icon: 'activity', to: of('activity') },
  ];
}

const STORE: Entry[] = [
  { page: 'overview', word: 'Overview', icon: 'gauge', to: 'store/overview' },
  { page: 'organizations', word: 'Organizations', icon: 'building-2', to: 'store/organizations' },
  { page: 'providers', word: 'Providers', icon: 'server', to: 'store/providers', also: ['provider'] },
  { page: 'work', word: 'Work', icon: 'refresh-cw', to: 'store/work' },
  { page: 'checks', word: 'Checks', icon: 'shield-check', to: 'store/checks' },
  { page: 'backups', word: 'Backups', icon: 'archive', to: 'store/backups' },
  { page: 'keys', word: 'Keys', icon: 'key-round', to: 'store/keys' },
  { page: 'webhooks', word: 'Webhooks', icon: 'webhook', to: 'store/webhooks', also: ['webhook'] },
];

const storeEntries = (): Entry[] => STORE.map((entry) =>
  entry.page === 'organizations' && organizationsComplete.value ? { ...entry, count: organizations.value?.length || undefined } : entry);

function Entries({ entries }: { entries: Entry[] }) {
  const now = route.value.name;
  return (
    <ul class="side-list">
      {entries.map((entry) => (
        <li key={entry.page}>
          <a
            class="side-link"
            href={href(entry.to)}
            title={entry.word}
            aria-current={now === entry.page || entry.also?.includes(now) ? 'page' : undefined}
          >
            <Icon name={entry.icon} />
            <span>{entry.word}</span>
            {entry.count !== undefined && <span class="side-count">{count(entry.count)}</span>}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Side() {
  const org = organization.value;
  const who = me.value;
  const key = who?.key;
  const scopes = key ? `${key.scopes.includes('admin') ? 'admin' : key.scopes.join(', ')}, ${key.organizations.includes('*') ? 'all organizations' : key.organizations.join(', ')}` : '';
  return (
    <header class="side">
      <Switcher />
      <nav class="side-scroll" aria-label="Pages">
        {org !== null && <Entries entries={organizationEntries(org)} />}
        {administers.value && (
          <>
            <h2 class="side-group">Store</h2>
            <Entries entries={storeEntries()} />
          </>
        )}
      </nav>
      <SideProgress />
      <div class="side-foot">
        <a class="side-who" href={href('about')} title={key ? `${key.name}: ${scopes}` : 'About this server'}>
          <Icon name={isOpen.value ? 'lock-open' : 'key-round'} class={isOpen.value ? 'open' : ''} />
          <span class="side-who-text">
            <span class="side-who-name">{key ? key.name || 'unnamed key' : 'Open server'}</span>
            <span class="side-who-under">{key ? scopes : 'no key needed here'}</span>
          </span>
        </a>
        <ThemeButton />
        {key && <IconButton name="Sign out" icon="log-out" onClick={() => signOut()} />}
      </div>
    </header>
  );
}

export function ThemeButton() {
  const dark = (theme.value, looksDark());
  return (
    <IconButton
      name={dark ? 'Use light colours' : 'Use dark colours'}
      icon={dark ? 'moon' : 'sun'}
      onClick={() => setTheme(dark ? 'light' : 'dark')}
    />
  );
}

function Tabs() {
  const org = organization.value;
  const now = route.value.name;
  const tab = (to: string, word: string, icon: IconName, pages: string[]) => (
    <a class="tab" href={href(to)} aria-current={pages.includes(now) ? 'page' : undefined}>
      <Icon name={icon} size={22} />
      {word}
    </a>
  );
  return (
    <nav class="tabs-bottom" aria-label="Main pages">
      {org !== null && tab(`org/${org}/files`, 'Files', 'images', ['files', 'file'])}
      {org !== null && tab(`org/${org}/trash`, 'Trash', 'trash-2', ['trash'])}
      {org !== null && may('write') && (
        <button type="button" class="tab-add" aria-label="Upload files" onClick={() => chooseFiles()}>
          <Icon name="plus" size={22} />
        </button>
      )}
      {administers.value && tab('store/overview', 'Store', 'gauge', ['overview'])}
      {tab('more', 'More', 'ellipsis', ['more'])}
    </nav>
  );
}

/** The navigation as a page, for phones. */
export function MorePage() {
  const org = organization.value;
  const key = me.value?.key;
  return (
    <div class="page">
      <header class="page-head">
        <h1 class="page-title" tabIndex={-1}>More</h1>
        <div class="page-actions">
          <ThemeButton />
          {key && <IconButton name="Sign out" icon="log-out" onClick={() => signOut()} />}
        </div>
      </header>
      <div class="page-body more-page">
        <Switcher />
        {org !== null && <Entries entries={organizationEntries(org)} />}
        {administers.value && <Entries entries={storeEntries()} />}
        <Entries entries={[{ page: 'about', word: 'About this server', icon: 'info', to: 'about' }]} />
      </div>
    </div>
  );
}

/** Says since when nothing answers. What is loaded stays. */
function OfflineBar() {
  const since = offlineSince.value;
  if (since === null) return null;
  tick.value;
  const skew = serverNow() - Date.now();
  return (
    <div class="top-bar lost" role="status">
      <Icon name="wifi-off" />
      <p class="top-bar-text">
        No connection since {clock(since + skew)}. What is loaded stays. Trying again.
      </p>
    </div>
  );
}

/** Warns before the page locks itself. Any key or click keeps the session. */
function LockBar() {
  const soon = locksSoon.value;
  useEffect(() => {
    if (soon) alertNow('You will be signed out in two minutes. Press any key to stay.');
  }, [soon]);
  return soon ? (
    <div class="top-bar lost">
      <Icon name="key-round" />
      <p class="top-bar-text">You will be signed out in two minutes. Press any key or click to stay.</p>
    </div>
  ) : null;
}

export function Shell({ children }: { children: ComponentChildren }) {
  useEffect(() => listenToKeys(), []);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById('main')?.focus();
      }}>
        {organization.value ? 'Skip to the files' : 'Skip to the page'}
      </a>
      <div class="frame">
        <Side />
        <main class="stage" id="main" tabIndex={-1}>
          <OfflineBar />
          <LockBar />
          <OpenBar />
          {children}
          <MenuHost />
        </main>
        <Tabs />
      </div>
      <Dock />
      <QuestionHost />
      <Refused />
      <KeysDialog />
      <ToastHost />
      <LiveRegions />
    </>
  );
}
