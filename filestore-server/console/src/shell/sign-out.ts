// Ends the session of this tab.
import { go } from '../router';
import { endSession } from '../session';
import { forgetUnfinished } from '../upload/unfinished';
import { consoleRoot } from '../api/call';

/**
 * Drops the key, all data, and the names of unfinished uploads. The reply of `signed-out` makes the browser drop what it
 * cached, over HTTPS.
 */
export async function signOut(): Promise<void> {
  endSession(null);
  await forgetUnfinished().catch(() => undefined);
  if (location.protocol === 'https:') location.assign(new URL('signed-out', consoleRoot));
  else go('signed-out', { replace: true });
}
