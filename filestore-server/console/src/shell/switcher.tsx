// Which organization the pages are about, and the way to another one.
import type { ComponentChildren } from 'preact';
import { isNamed, organization, organizationName, organizations, organizationsComplete } from '../data/place';
import { Icon } from '../parts/icon';
import { openMenu, type MenuEntry } from '../parts/controls/menu';
import { go, href, route } from '../router';
import { me } from '../session';
import { initials } from '../text/names';
import { count, counted } from '../text/sizes';

/** So many fit into a menu that is read at one glance. */
const SHOWN = 12;

function choose(at: HTMLElement): void {
  const id = organization.peek();
  const all = organizations.peek() ?? [];
  const page = ['files', 'trash', 'storage', 'activity'].includes(route.peek().name) ? route.peek().name : 'files';
  const shown = [...all].sort((a, b) => Number(b.organization_id === id) - Number(a.organization_id === id)).slice(0, SHOWN);
  const entries: MenuEntry[] = shown.map((one) => ({
    label: organizationName(one.organization_id),
    hint: counted(one.files, 'file'),
    checked: one.organization_id === id,
    act: () => go(`org/${one.organization_id}/${page}`),
  }));
  if (all.length > SHOWN || !organizationsComplete.peek()) entries.push('line', { label: 'All organizations', icon: 'building-2', act: () => go('organizations') });
  openMenu(at, 'Organization', entries);
}

export function Switcher({ under }: { under?: ComponentChildren } = {}) {
  const id = organization.value;
  if (id === null && organizations.value?.length) {
    return (
      <button type="button" class="switcher" aria-haspopup="menu" onClick={(event) => choose(event.currentTarget)}>
        <span class="switcher-mark none"><Icon name="building-2" /></span>
        <span class="switcher-text">
          <span class="switcher-name">Organizations</span>
          <span class="switcher-under">Choose one of {organizationsComplete.value ? '' : 'more than '}{count(organizations.value.length)}</span>
        </span>
        <Icon name="chevrons-up-down" class="chevrons" />
      </button>
    );
  }
  if (id === null) {
    return (
      <a class="switcher" href={href('')}>
        <span class="switcher-mark none"><Icon name="plus" /></span>
        <span class="switcher-text">
          <span class="switcher-name">No organization yet</span>
          <span class="switcher-under">filestore {me.value?.store.version}</span>
        </span>
      </a>
    );
  }
  const name = organizationName(id);
  const named = isNamed(id);
  return (
    <button type="button" class="switcher" aria-haspopup="menu" onClick={(event) => choose(event.currentTarget)}>
      {!named && /^\d{4,}$/.test(id)
        ? <span class="switcher-mark none"><Icon name="building-2" /></span>
        : <span class="switcher-mark" aria-hidden="true">{initials(named ? name : id)}</span>}
      <span class="switcher-text">
        <span class="switcher-name"><bdi>{name}</bdi></span>
        {(under ?? named) && <span class="switcher-under">{under ?? `Organization ${id}`}</span>}
      </span>
      <span class="unseen">Choose an organization</span>
      <Icon name="chevrons-up-down" class="chevrons" />
    </button>
  );
}
