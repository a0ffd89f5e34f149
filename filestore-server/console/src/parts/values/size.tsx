import { count, exactBytes, roughCount, size } from '../../text/sizes';

/** A size with a binary unit. The tooltip has the exact bytes. */
export function Size({ bytes }: { bytes: number }) {
  return (
    <data class="number" value={bytes} title={exactBytes(bytes)}>
      {size(bytes)}
    </data>
  );
}

/** An exact number with separators. */
export function Count({ value }: { value: number }) {
  return (
    <data class="number" value={value}>
      {count(value)}
    </data>
  );
}

/** A shortened count for a narrow place. The tooltip has the exact one. */
export function RoughCount({ value }: { value: number }) {
  return (
    <data class="number" value={value} title={count(value)}>
      {roughCount(value)}
    </data>
  );
}
