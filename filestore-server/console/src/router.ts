// Addresses below `console/`, and which page each of them is.
import { signal } from '@preact/signals';
import { consoleRoot } from './api/call';

export interface Route {
  /** The name of the page, or `unknown`. */
  name: string;
  /** The path below `console/`, without a slash at the start. */
  path: string;
  params: Record<string, string>;
  query: URLSearchParams;
}

const TABLE: [pattern: string, name: string][] = [
  ['', 'start'],
  ['sign-in', 'sign-in'],
  ['signed-out', 'signed-out'],
  ['about', 'about'],
  ['more', 'more'],
  ['organizations', 'organizations'],
  ['org/:org', 'files'],
  ['org/:org/files', 'files'],
  ['org/:org/files/:id', 'file'],
  ['org/:org/trash', 'trash'],
  ['org/:org/storage', 'storage'],
  ['org/:org/activity', 'activity'],
  ['org/:org/uploads', 'uploads'],
  ['store', 'overview'],
  ['store/overview', 'overview'],
  ['store/organizations', 'organizations'],
  ['store/providers', 'providers'],
  ['store/providers/:code', 'provider'],
  ['store/work', 'work'],
  ['store/checks', 'checks'],
  ['store/backups', 'backups'],
  ['store/keys', 'keys'],
  ['store/activity', 'activity'],
  ['store/webhooks', 'webhooks'],
  ['store/webhooks/:webhook', 'webhook'],
];

function fit(pattern: string, parts: string[]): Record<string, string> | null {
  const wanted = pattern.split('/');
  if (wanted.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [at, word] of wanted.entries()) {
    const part = parts[at] ?? '';
    if (word.startsWith(':')) params[word.slice(1)] = part;
    else if (word !== part) return null;
  }
  return params;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function resolve(url: URL): Route {
  const path = url.pathname.startsWith(consoleRoot.pathname) ? url.pathname.slice(consoleRoot.pathname.length) : '';
  const parts = path.replace(/\/$/, '').split('/').map(decode);
  for (const [pattern, name] of TABLE) {
    const params = fit(pattern, parts);
    if (params) return { name, path, params, query: url.searchParams };
  }
  return { name: 'unknown', path, params: {}, query: url.searchParams };
}

export const route = signal<Route>(resolve(new URL(location.href)));

/** The address of a page: `href('org/42/files', { view: 'list' })`. */
export function href(path: string, query?: Record<string, string | undefined>): string {
  const url = new URL(path.split('/').map(encodeURIComponent).join('/'), consoleRoot);
  for (const [name, value] of Object.entries(query ?? {})) if (value) url.searchParams.set(name, value);
  return url.pathname + url.search;
}

/** Goes to a page, given as for `href` or as an address from it. */
export function go(to: string, options: { replace?: boolean; query?: Record<string, string | undefined> } = {}): void {
  const address = to.startsWith('/') ? to : href(to, options.query);
  const url = new URL(address, location.href);
  if (options.replace) history.replaceState(null, '', url);
  else if (url.href !== location.href) history.pushState(null, '', url);
  route.value = resolve(url);
}

/** Follows the links of the page without loading it again. */
export function listen(): void {
  addEventListener('popstate', () => (route.value = resolve(new URL(location.href))));
  document.addEventListener('click', (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest('a') : null;
    if (!link || link.target || link.hasAttribute('download') || !link.href) return;
    const url = new URL(link.href);
    if (url.origin !== location.origin || !url.pathname.startsWith(consoleRoot.pathname)) return;
    if (url.pathname === location.pathname && url.search === location.search && url.hash) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
}
