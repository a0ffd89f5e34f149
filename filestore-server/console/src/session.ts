// Who is signed in. The key lives in memory and in this tab's sessionStorage, and nowhere else.
import { computed, signal } from '@preact/signals';
import { call, onRefused, Problem, server, useKey, type MeReply } from './api/call';

export type Me = MeReply;
export type State =
  | { kind: 'starting' }
  | { kind: 'out'; reason: string | null }
  | { kind: 'failed'; error: unknown }
  | { kind: 'in'; me: Me };

const SLOT = 'filestore-key';
const IDLE_MS = 30 * 60_000;

export const session = signal<State>({ kind: 'starting' });
export const me = computed<Me | null>(() => (session.value.kind === 'in' ? session.value.me : null));
export const isOpen = computed(() => me.value?.mode === 'open');

/** Whether the key has the scope. A key with `admin` may do everything; an open server asks for none. */
export function may(scope: 'read' | 'write' | 'delete' | 'admin'): boolean {
  const key = me.value?.key;
  if (!me.value) return false;
  return !key || key.scopes.includes('admin') || key.scopes.includes(scope);
}

/** Whether the caller sees the whole store: `admin` for `*`, or an open server. */
export const administers = computed(
  () => me.value !== null && (!me.value.key || (me.value.key.scopes.includes('admin') && me.value.key.organizations.includes('*'))),
);

/** Called when a session ends: everything that holds data lets it go. */
const forgetters = new Set<() => void>();
export function onEnd(forget: () => void): void {
  forgetters.add(forget);
}

function forgetAll(): void {
  sessionStorage.removeItem(SLOT);
  useKey(null);
  for (const forget of forgetters) forget();
}

/** Signs in with a key, or with none (an open server). Throws what the server says: then the key is that of before. */
export async function signIn(key: string | null): Promise<void> {
  const before = server.key ?? null;
  useKey(key);
  try {
    const { data } = await call('GET', '/me');
    if (key !== null) sessionStorage.setItem(SLOT, key);
    session.value = { kind: 'in', me: data };
  } catch (error) {
    useKey(before);
    throw error;
  }
}

/** Time within which a call that was sent with the old secret has its reply. The server answers within 60 s. */
const OLD_CALLS_MS = 60_000;
/** Until this time, a 401 does not end the session, because it can be the reply to a call with the old secret. */
let trustedUntil = 0;

/**
 * Makes a new secret for this session, and continues with it. Calls under way are not aborted, because the server has
 * accepted them. `make` must show the secret, which exists only here.
 */
export async function renewKey<T extends { key: string }>(make: () => Promise<T>): Promise<T> {
  trustedUntil = Infinity;
  try {
    const made = await make();
    server.key = made.key;
    sessionStorage.setItem(SLOT, made.key);
    return made;
  } finally {
    trustedUntil = Date.now() + OLD_CALLS_MS;
  }
}

export function endSession(reason: string | null): void {
  forgetAll();
  session.value = { kind: 'out', reason };
}

/** Asks again what the key may do, for example after the first key was made. */
export async function refreshMe(): Promise<void> {
  const { data } = await call('GET', '/me');
  session.value = { kind: 'in', me: data };
}

export async function start(): Promise<void> {
  session.value = { kind: 'starting' };
  const kept = sessionStorage.getItem(SLOT);
  onRefused((problem) => {
    if (session.value.kind === 'in' && Date.now() >= trustedUntil) endSession(ended(problem));
  });
  try {
    await signIn(kept);
  } catch (error) {
    if (error instanceof Problem && error.status === 401) {
      forgetAll();
      session.value = { kind: 'out', reason: kept === null ? null : ended(error) };
    } else {
      session.value = { kind: 'failed', error };
      // The key stays for the next attempt.
      if (kept !== null) sessionStorage.setItem(SLOT, kept);
    }
  }
}

const ended = (problem: Problem): string =>
  problem.status === 401 ? 'You were signed out: the key was revoked or has ended.' : problem.detail;

// A page that nobody uses locks itself.
let used = Date.now();
for (const kind of ['pointerdown', 'keydown', 'wheel', 'touchstart'] as const) {
  addEventListener(kind, () => (used = Date.now()), { passive: true, capture: true });
}
/** Whether something runs that the lock must not end, for example uploads. */
export const keepAwake = signal(0);
/** Set within the last two minutes before the lock. Any use of the page takes it back. */
export const locksSoon = signal(false);
setInterval(() => {
  const plays = [...document.querySelectorAll<HTMLMediaElement>('video, audio')].some((player) => !player.paused);
  if (keepAwake.peek() > 0 || plays) used = Date.now();
  const state = session.peek();
  const left = state.kind === 'in' && state.me.key ? used + IDLE_MS - Date.now() : IDLE_MS;
  locksSoon.value = left < 120_000;
  if (left < 0) endSession('You were signed out after 30 minutes without use.');
}, 5_000);

/** Whether the text is a complete key: its last 8 digits are the start of the SHA-256 of the rest. */
export async function keyIsWhole(text: string): Promise<boolean | null> {
  if (!/^fsk_[0-9a-f]{72}$/.test(text)) return false;
  // Browsers have no WebCrypto on plain HTTP, except on localhost.
  if (!globalThis.crypto?.subtle) return null;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text.slice(0, 68)));
  const hex = [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, '0')).join('');
  return hex.startsWith(text.slice(68));
}
