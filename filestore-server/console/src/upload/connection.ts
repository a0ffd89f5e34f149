// The connection that sends the bytes of files. It has no lanes of its own, since the queue sends three files at a time,
// and it outlives a session, so that uploads go on after signing in again.
import { Connection, indexedDbStore } from 'filestore-client';
import { Problem, server } from '../api/call';

export const bytes = new Connection({
  url: server.url,
  retry: { attempts: 3, longestRetryAfterS: 30 },
  // Both are known in one place: the session, and the bar that says that nothing answers.
  onUnauthorized: (problem) => void server.report(problem),
  onReachable: (isReachable) => {
    if (isReachable) server.see(null, Date.now());
    else server.report(new Problem({ code: 'unreachable' }));
  },
});

// It has the key of the session at any time: after a reload, after a rotation, and none after the end.
Object.defineProperty(bytes, 'key', { get: () => server.key });

/** Names, sizes and upload URLs of unfinished uploads. No bytes and no key. */
export const store = indexedDbStore('filestore-console-uploads');
