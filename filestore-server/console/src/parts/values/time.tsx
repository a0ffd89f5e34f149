import { day as dayAndMinute, duration, fully, short, tick, utc, when } from '../../text/times';
import { serverNow } from '../../api/call';

/** An instant: relative below an hour, else day and minute. The tooltip has local time and UTC. */
export function Time({ at, absolute, within }: { at: string | number | Date; absolute?: boolean; /** Within a sentence: `today`, not `Today`. */ within?: boolean }) {
  const instant = new Date(at);
  if (Number.isNaN(instant.getTime())) return <span>{String(at)}</span>;
  const near = Math.abs(serverNow() - instant.getTime()) < 3_700_000;
  if (near && !absolute) void tick.value;
  void utc.value;
  return (
    <time dateTime={instant.toISOString()} title={fully(instant)}>
      {within ? lower(absolute ? dayAndMinute(instant) : when(instant)) : absolute ? dayAndMinute(instant) : when(instant)}
    </time>
  );
}

/** How long since an instant, for example `38 min`. */
export function Since({ at }: { at: string | number | Date }) {
  void tick.value;
  const instant = new Date(at);
  return (
    <time dateTime={instant.toISOString()} title={fully(instant)}>
      {short(Math.max(0, serverNow() - instant.getTime()))}
    </time>
  );
}

/** How long until an instant, for example `6 days 23 h`. */
export function Until({ at }: { at: string | number | Date }) {
  void tick.value;
  const instant = new Date(at);
  return (
    <time dateTime={instant.toISOString()} title={fully(instant)}>
      {duration(Math.max(0, instant.getTime() - serverNow()))}
    </time>
  );
}

function lower(text: string): string {
  return text.replace(/^(Today|Yesterday|Tomorrow)/, (word) => word.toLowerCase());
}
