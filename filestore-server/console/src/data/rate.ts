/** The speed of something that grows, from its last readings. */

import { useRef } from 'preact/hooks';

const WINDOW_MS = 20_000;

/** Returns units per second over the last 20 s, or null until it is known. Call it with each new reading. */
export function useRate(value: number | null): number | null {
  const readings = useRef<{ at: number; value: number }[]>([]);
  const now = performance.now();
  const list = readings.current;
  if (value === null) {
    list.length = 0;
    return null;
  }
  const last = list.at(-1);
  if (last && value < last.value) list.length = 0;
  if (!last || value !== last.value || now - last.at > 900) list.push({ at: now, value });
  while (list.length > 2 && now - (list[0]?.at ?? now) > WINDOW_MS) list.shift();

  const first = list[0];
  if (!first || now - first.at < 2_000) return null;
  return ((value - first.value) / (now - first.at)) * 1000;
}
