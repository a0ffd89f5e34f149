/** Times as people read them, by the clock of the server. */

import { signal } from '@preact/signals';
import { serverNow } from '../api/call';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** True if the reader chose UTC instead of the local time zone. */
export const utc = signal(readChoice());

/** Switches between local time and UTC, and remembers the choice. */
export function showUtc(on: boolean): void {
  utc.value = on;
  try {
    localStorage.setItem('filestore.utc', on ? '1' : '0');
  } catch {
    // Storage can be switched off. The choice then ends with the tab.
  }
}

function readChoice(): boolean {
  try {
    return localStorage.getItem('filestore.utc') === '1';
  } catch {
    return false;
  }
}

/**
 * Formats an instant, for example `12 s ago`, `Today, 08:40`, `Yesterday, 18:20` or `24 Nov, 09:14`.
 * Instants in the future within an hour read `in 12 min`.
 */
export function when(time: string | number | Date, now = serverNow()): string {
  const instant = new Date(time).getTime();
  if (Number.isNaN(instant)) return String(time);

  const ago = now - instant;
  if (Math.abs(ago) < 2 * SECOND) return 'now';
  if (ago > 0 && ago < HOUR) return `${short(ago)} ago`;
  if (ago < 0 && -ago < HOUR) return `in ${short(-ago)}`;
  return day(instant, now);
}

/** As `when`, for the middle of a sentence: `today, 08:40`. */
export function whenWithin(time: string | number | Date, now = serverNow()): string {
  return when(time, now).replace(/^(Today|Yesterday|Tomorrow)/, (word) => word.toLowerCase());
}

/** Formats an instant as day and minute, without `ago`. */
export function day(time: string | number | Date, now = serverNow()): string {
  const instant = new Date(time).getTime();
  return `${dayName(instant, now)}, ${clock(instant)}`;
}

/** Formats the day of an instant: `Today`, `Yesterday`, `Tomorrow`, `24 Nov` or `24 Nov 2025`. */
export function dayName(time: string | number | Date, now = serverNow()): string {
  const date = parts(new Date(time));
  const today = parts(new Date(now));
  const apart = daysOf(today) - daysOf(date);
  if (apart === 0) return 'Today';
  if (apart === 1) return 'Yesterday';
  if (apart === -1) return 'Tomorrow';
  const text = `${date.day} ${months[date.month]}`;
  return date.year === today.year ? text : `${text} ${date.year}`;
}

/** Formats the time of day to the minute, for example `09:14`. */
export function clock(time: string | number | Date): string {
  const date = parts(new Date(time));
  return `${two(date.hour)}:${two(date.minute)}`;
}

/** Formats the time of day to the second, for example `09:14:02`. */
export function clockSeconds(time: string | number | Date): string {
  const date = new Date(time);
  return `${clock(date)}:${two(date.getUTCSeconds())}`;
}

/** Formats an instant completely, in local time and in UTC, for a tooltip. */
export function fully(time: string | number | Date): string {
  const date = new Date(time);
  if (Number.isNaN(date.getTime())) return String(time);
  const local = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'long' }).format(date);
  return `${local}\n${date.toISOString().replace('T', ' ').replace(/\.\d+Z$/, '')} UTC`;
}

/** Formats a duration with its two largest units, for example `2 h 45 min` or `6 days 23 h`. */
export function duration(ms: number): string {
  const rest = Math.max(0, ms);
  if (rest < MINUTE) return `${Math.floor(rest / SECOND)} s`;
  if (rest < HOUR) return `${Math.floor(rest / MINUTE)} min`;
  if (rest < DAY) return pair(rest, HOUR, 'h', MINUTE, 'min');
  return pair(rest, DAY, Math.floor(rest / DAY) === 1 ? 'day' : 'days', HOUR, 'h');
}

/** Formats a duration with its largest unit only, for example `38 min` or `41 days`. */
export function short(ms: number): string {
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h`;
  return `${Math.floor(ms / DAY)} days`;
}

function pair(ms: number, large: number, largeName: string, small: number, smallName: string): string {
  const whole = Math.floor(ms / large);
  const rest = Math.floor((ms - whole * large) / small);
  return rest === 0 ? `${whole} ${largeName}` : `${whole} ${largeName} ${rest} ${smallName}`;
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

interface Parts {
  year: number;
  month: number;
  day: number;
  hour: number;
  minute: number;
}

function parts(date: Date): Parts {
  return utc.value
    ? {
        year: date.getUTCFullYear(),
        month: date.getUTCMonth(),
        day: date.getUTCDate(),
        hour: date.getUTCHours(),
        minute: date.getUTCMinutes(),
      }
    : {
        year: date.getFullYear(),
        month: date.getMonth(),
        day: date.getDate(),
        hour: date.getHours(),
        minute: date.getMinutes(),
      };
}

/** Days since the epoch of a calendar date, so that days can be counted across changes of the clock. */
function daysOf(date: Parts): number {
  return Math.round(Date.UTC(date.year, date.month, date.day) / DAY);
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** Ticks once a second while somebody looks, so that all relative times share one timer. */
export const tick = signal(0);

setInterval(() => {
  if (document.visibilityState === 'visible') tick.value += 1;
}, SECOND);
