// The frame of one page: its head with the one `h1`, and its title in the tab.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { organization, organizationName } from '../data/place';
import { route } from '../router';

let focused: string | null = null;

export interface PageProps {
  /** The heading, and the start of the tab's title. */
  title: string;
  /** The heading as it is drawn, if it is more than the title. */
  heading?: ComponentChildren;
  /** A short fact beside the heading, for example a count. */
  under?: ComponentChildren;
  actions?: ComponentChildren;
  /** Replaces the head. It must contain an `h1` with the given reference. */
  head?: ComponentChildren;
  /** More words of the tab's title, from near to far. */
  trail?: string[];
  /** Class of the part below the head (default: `page-body`). */
  body?: string | null;
  children?: ComponentChildren;
  class?: string;
}

export function Page({ title, heading, under, actions, head, trail, body = 'page-body', children, class: extra }: PageProps) {
  const top = useRef<HTMLHeadingElement>(null);
  const frame = useRef<HTMLDivElement>(null);
  const path = route.value.path;
  const org = organization.value;
  const rest = trail ?? (route.value.params['org'] && org !== null ? [organizationName(org)] : []);
  useEffect(() => {
    document.title = [title, ...rest].join(', ') + ' · filestore';
  }, [title, rest.join()]);
  useEffect(() => {
    // The first page leaves the focus where the browser has it, and a new secret keeps it: without it, it is masked.
    if (focused !== null && focused !== path && !document.activeElement?.closest('.secret')) {
      const heading = top.current ?? frame.current?.querySelector('h1');
      heading?.focus({ preventScroll: true });
    }
    focused = path;
  }, [path]);
  return (
    <div class={`page ${extra ?? ''}`} ref={frame}>
      {head ?? (
        <header class="page-head">
          <h1 class="page-title" tabIndex={-1} ref={top}>{heading ?? title}</h1>
          {under !== undefined && <div class="page-under">{under}</div>}
          {actions !== undefined && <div class="page-actions">{actions}</div>}
        </header>
      )}
      {body === null ? children : <div class={body}>{children}</div>}
    </div>
  );
}
