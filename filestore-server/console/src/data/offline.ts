// While nothing answers: asks again after 1, 2, 4 … 30 s, and goes on with what was interrupted.
import { effect } from '@preact/signals';
import { call, isUnreachable, offlineSince } from '../api/call';
import { me } from '../session';
import { alertNow } from '../shell/live';
import { current } from './current';
import { refreshUsage } from './place';

let timer: ReturnType<typeof setTimeout> | undefined;
let wasOffline = false;

function ask(wait: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    // A reply ends the state of being offline: `server` notes that.
    call('GET', '/health-checks', { attempts: 1 }).catch(() => offlineSince.peek() !== null && ask(Math.min(wait * 2, 30_000)));
  }, wait);
}

effect(() => {
  const isOffline = offlineSince.value !== null;
  if (isOffline === wasOffline) return;
  wasOffline = isOffline;
  if (isOffline) {
    alertNow('No connection. Trying again.');
    ask(1000);
    return;
  }
  clearTimeout(timer);
  if (!me.peek()) return;
  alertNow('Connected again');
  const listing = current.peek();
  if (listing && isUnreachable(listing.error.peek())) listing.retry();
  else if (listing) void listing.refresh();
  refreshUsage();
});
addEventListener('online', () => offlineSince.peek() !== null && ask(0));
