// Pauses, and the decision to send a failed call again.
import type { Problem } from './problem.js';

/** How often a failed call is sent again, and the pauses between the attempts. */
export interface RetryPolicy {
  /** Maximum attempts (default 4). 1 means no retries. */
  attempts: number;
  /** Upper limit of the first random pause (default 200). The limit doubles with every retry. */
  baseMs: number;
  /** Upper limit of every random pause (default 10,000). */
  capMs: number;
  /** Longest `Retry-After` to wait for (default 60). If the server asks for more, the call fails at once. */
  longestRetryAfterS: number;
}

export const DEFAULT_RETRY: RetryPolicy = { attempts: 4, baseMs: 200, capMs: 10_000, longestRetryAfterS: 60 };

/** Returns the pause before retry number `failures`: random, plus the time that the server asks for. */
export function pauseMs(policy: RetryPolicy, failures: number, problem?: Problem): number {
  const ceiling = Math.min(policy.capMs, policy.baseMs * 2 ** (failures - 1));
  return Math.random() * ceiling + (problem?.retryAfter ?? 0) * 1000;
}

/**
 * Returns true if the call can be sent again after `failures` attempts.
 *
 * A repeatable call has the same effect twice as once: it reads, deletes, or has an idempotency key. Any other call is
 * sent again only if the server says that it did nothing.
 */
export function isWorthRetry(policy: RetryPolicy, failures: number, problem: Problem, isRepeatable: boolean): boolean {
  if (failures >= policy.attempts) return false;
  if ((problem.retryAfter ?? 0) > policy.longestRetryAfterS) return false;
  return isRepeatable ? problem.isTemporary : problem.didNothing;
}

/** Waits, and fails with the signal's reason if the signal is aborted. Ends early if the machine is online again. */
export function pause(ms: number, signal?: AbortSignal | null): Promise<void> {
  return new Promise((resolve, reject) => {
    const target = globalThis as Partial<Pick<Window, 'addEventListener' | 'removeEventListener'>>;
    const end = (settle: () => void) => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      target.removeEventListener?.('online', wake);
      settle();
    };
    const abort = () => end(() => reject(signal?.reason));
    const wake = () => end(resolve);
    const timer = setTimeout(wake, ms);
    if (signal?.aborted) return abort();
    signal?.addEventListener('abort', abort);
    target.addEventListener?.('online', wake);
  });
}
