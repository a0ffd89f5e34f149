/** Events in order, and those that belong together as one line. */

import type { LogEvent } from '../api/call';

/** One line of activity: an event, or several of one kind at the same time. */
export interface Deed {
  /** The newest event. */
  event: LogEvent;
  /** Number of events in this line. */
  count: number;
  /** Whether they are of several sub-systems. */
  mixed: boolean;
  /** Whether older events may belong to this line. */
  cut: boolean;
}

/** Adds newer events, each once. A stream that starts again can bring older ones, which come with their page. */
export function merge(newer: readonly LogEvent[], older: readonly LogEvent[]): LogEvent[] {
  const known = new Set(older.map((event) => event.id));
  const last = older.at(-1)?.timestamp ?? '';
  const added = newer.filter((event) => !known.has(event.id) && event.timestamp >= last);
  return [...added.toReversed(), ...older].sort((a, b) => (a.timestamp < b.timestamp ? 1 : a.timestamp > b.timestamp ? -1 : 0));
}

const TOGETHER_MS = 60_000;
/** Events of other organizations may come between. */
const NEAR = 4;

/** Puts events of one kind that follow each other within a minute into one line. If more follow, the last may be cut. */
export function gather(events: readonly LogEvent[], more: boolean): Deed[] {
  const deeds: Deed[] = [];
  for (const event of events) {
    const same = deeds.slice(-NEAR).find((deed) => isSame(deed.event, event));
    if (same) {
      same.count += 1;
      same.mixed ||= same.event.data.sub_system !== event.data.sub_system;
    } else deeds.push({ event, count: 1, mixed: false, cut: false });
  }
  const last = deeds.at(-1);
  if (last) last.cut = more;
  return deeds;
}

function isSame(a: LogEvent, b: LogEvent): boolean {
  return (
    /^(file|key)\./.test(a.type) &&
    a.type === b.type &&
    a.data.organization_id === b.data.organization_id &&
    a.data.to === b.data.to &&
    Date.parse(a.timestamp) - Date.parse(b.timestamp) < TOGETHER_MS
  );
}
