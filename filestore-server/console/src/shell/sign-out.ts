// Ends the session of this tab.
import { go } from '../router';
import { endSession } from '../session';
import { consoleRoot } from '../api/call';

/** Drops the key and all data. The reply of `signed-out` makes the browser drop what it cached, over HTTPS. */
export function signOut(): void {
  endSession(null);
  if (location.protocol === 'https:') location.assign(new URL('signed-out', consoleRoot));
  else go('signed-out', { replace: true });
}
