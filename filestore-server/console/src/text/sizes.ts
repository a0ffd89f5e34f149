/** Sizes and counts, written as the command line writes them. */

const units = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'] as const;

/** Formats bytes with a binary unit and one decimal, for example `1.2 MiB`. Never `1024.0 KiB`. */
export function size(bytes: number): string {
  if (bytes < 1024) return `${Math.trunc(bytes)} B`;

  let power = 1;
  let tenths = tenthsOf(bytes, power);
  while (tenths >= 10_240 && power < units.length) {
    power += 1;
    tenths = tenthsOf(bytes, power);
  }
  return `${Math.trunc(tenths / 10)}.${tenths % 10} ${units[power - 1]}`;
}

function tenthsOf(bytes: number, power: number): number {
  return Math.floor((bytes * 10) / 1024 ** power + 0.5);
}

/** Formats the exact number of bytes, for example `1,234,567 bytes`. */
export function exactBytes(bytes: number): string {
  return counted(bytes, 'byte');
}

const grouping = new Intl.NumberFormat('en-GB');

/** Formats a whole number with thousands separators. Exact, never `1.2 M`. */
export function count(value: number): string {
  return grouping.format(value);
}

/** Formats a number with its noun, for example `1 file`, `2 files` and `2 replies`. */
export function counted(value: number, noun: string): string {
  if (value === 1) return `1 ${noun}`;
  const plural = /[^aeiou]y$/.test(noun) ? `${noun.slice(0, -1)}ies` : `${noun}s`;
  return `${count(value)} ${plural}`;
}

/** Shortens a large count for a narrow place, for example `1.1 M`. The exact count belongs into the tooltip. */
export function roughCount(value: number): string {
  if (value < 10_000) return count(value);
  if (value < 999_500) return `${Math.round(value / 1000)} k`;
  return `${(Math.round(value / 100_000) / 10).toFixed(1)} M`;
}
