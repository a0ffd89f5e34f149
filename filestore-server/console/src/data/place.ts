// Where the visitor is: the organization of the address, its name, its usage and its sub-systems.
import { batch, computed, effect, signal } from '@preact/signals';
import { call, isAbort, Problem, type OrganizationReply, type SubSystemReply, type UsageReply } from '../api/call';
import { route } from '../router';
import { me, may, onEnd } from '../session';

/** The organization that was visited last, so that pages of the store keep it in the switcher. */
const last = signal<string | null>(null);

/** The sub-system of the filter, if there is one. */
export const subSystem = computed<string | null>(() => route.value.query.get('sub_system'));

/** Organizations that this key may see, as far as they were asked for. */
export const organizations = signal<OrganizationReply[] | null>(null);
/** Whether `organizations` has all of them. */
export const organizationsComplete = signal(false);
/** Why they could not be read. */
export const organizationsError = signal<unknown>(null);

/** The organization of the address, of the last address that had one, or the only one. */
export const organization = computed<string | null>(() => {
  const only = organizationsComplete.value && organizations.value?.length === 1 ? organizations.value[0]?.organization_id : null;
  return route.value.params['org'] ?? last.value ?? only ?? null;
});
/** The name that a binding gives to the organization, else its id. */
export function organizationName(id: string): string {
  const binding = organizations.value?.find((one) => one.organization_id === id)?.binding;
  return binding?.organization_name || (/^\d+$/.test(id) ? `Organization ${id}` : id);
}
/** Whether the organization has a name of its own. */
export const isNamed = (id: string): boolean => organizationName(id) !== id && !organizationName(id).startsWith('Organization ');

export const usage = signal<UsageReply | null>(null);
export const usageError = signal<unknown>(null);
export const subSystems = signal<SubSystemReply[] | null>(null);

let asked: AbortController | null = null;
let soon: ReturnType<typeof setTimeout> | undefined;

/** Asks for usage and sub-systems again. Many calls at once make one request. */
export function refreshUsage(delay = 0): void {
  if (soon !== undefined) return;
  soon = setTimeout(() => {
    soon = undefined;
    void askUsage();
  }, delay);
}

async function askUsage(): Promise<void> {
  const id = organization.peek();
  if (id === null || !me.peek() || !may('read')) return;
  asked?.abort();
  const mine = (asked = new AbortController());
  const path = { organization_id: id };
  try {
    const [used, parts] = await Promise.all([
      call('GET', '/organizations/{organization_id}/usage', { path, signal: mine.signal }),
      call('GET', '/organizations/{organization_id}/sub-systems', { path, query: { limit: 200 }, signal: mine.signal }),
    ]);
    if (organization.peek() !== id) return;
    batch(() => {
      usage.value = used.data;
      subSystems.value = [...parts.data.items].sort((a, b) => b.files - a.files);
      usageError.value = null;
    });
  } catch (error) {
    if (!isAbort(error)) usageError.value = error;
  }
}

/** Asks for the organizations: the first 200 by one request, which is enough for the switcher. */
export async function refreshOrganizations(): Promise<void> {
  try {
    const { data } = await call('GET', '/organizations', { query: { limit: 200 } });
    batch(() => {
      organizations.value = data.items;
      organizationsError.value = null;
      organizationsComplete.value = data.next_cursor === null;
    });
  } catch (error) {
    if (isAbort(error)) return;
    if (!(error instanceof Problem) || error.status !== 403) {
      organizationsError.value = error;
      return;
    }
    // A key without the right to list them still names its own.
    const own = me.peek()?.key?.organizations.filter((id) => id !== '*') ?? [];
    batch(() => {
      organizations.value = own.map((id) => ({
        organization_id: id, binding: null, bytes: 0, files: 0, quota_bytes: null, quota_files: null,
      }));
      organizationsComplete.value = true;
    });
  }
}

effect(() => {
  const id = organization.value;
  if (id !== null && last.peek() !== id) last.value = id;
});

let shown: string | null = null;
effect(() => {
  const id = organization.value;
  const signedIn = me.value !== null;
  if (!signedIn || id === null || id === shown) return;
  shown = id;
  batch(() => {
    usage.value = null;
    subSystems.value = null;
    usageError.value = null;
  });
  refreshUsage();
});

onEnd(() => {
  asked?.abort();
  shown = null;
  batch(() => {
    usage.value = null;
    subSystems.value = null;
    organizations.value = null;
    organizationsComplete.value = false;
    organizationsError.value = null;
    last.value = null;
  });
});
