// Where a visitor without an address goes: the one organization, the list of them, or the first file.
import { useEffect } from 'preact/hooks';
import { organizations, organizationsComplete, organizationsError, refreshOrganizations } from '../../data/place';
import { ErrorBox } from '../../parts/notes/error';
import { go } from '../../router';
import { administers, me } from '../../session';
import { Page } from '../../shell/page';
import { StoreFirst } from './first';

export function StartPage() {
  const all = organizations.value;
  const own = me.value?.key?.organizations.filter((id) => id !== '*') ?? [];
  const only = own.length === 1 ? own[0] : all !== null && organizationsComplete.value && all.length === 1 ? all[0]?.organization_id : undefined;
  const many = own.length > 1 || (all !== null && all.length > 1);
  useEffect(() => {
    if (only) go(`org/${only}/files`, { replace: true });
    else if (many) go(administers.value ? 'store/overview' : 'organizations', { replace: true });
  }, [only, many]);
  if (all !== null && all.length === 0 && own.length === 0) return <StoreFirst organization={null} />;
  const error = all === null ? organizationsError.value : null;
  return <Page title="filestore" head={<></>}>{error !== null && <ErrorBox error={error} onRetry={refreshOrganizations} what="Organizations" />}</Page>;
}
