// Which organization the pages are about.
import type { ComponentChildren } from 'preact';
import { organization, isNamed, organizationName } from '../data/place';
import { Icon } from '../parts/icon';
import { href } from '../router';
import { me } from '../session';
import { initials } from '../text/names';

export function Switcher({ under }: { under?: ComponentChildren } = {}) {
  const id = organization.value;
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
  return (
    <a class="switcher" href={href('organizations')} aria-label={`${name}, choose an organization`}>
      <span class="switcher-mark" aria-hidden="true">{initials(isNamed(id) ? name : id)}</span>
      <span class="switcher-text">
        <span class="switcher-name"><bdi>{name}</bdi></span>
        {(under ?? isNamed(id)) && <span class="switcher-under">{under ?? `Organization ${id}`}</span>}
      </span>
      <Icon name="chevrons-up-down" class="chevrons" />
    </a>
  );
}
