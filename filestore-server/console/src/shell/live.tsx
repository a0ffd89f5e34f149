// What a screen reader hears: results politely, at most one in 5 s, and losses at once.
import { signal } from '@preact/signals';

const polite = signal('');
const urgent = signal('');
let spokenAt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says a result when there is a pause. Of several within 5 s, the last is said. */
export function announce(text: string): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    spokenAt = Date.now();
    // The same sentence twice has to change to be said twice.
    polite.value = polite.peek() === text ? `${text}\u00a0` : text;
  }, Math.max(50, spokenAt + 5000 - Date.now()));
}

/** Says at once what must not be missed. */
export function alertNow(text: string): void {
  urgent.value = text;
}

export function LiveRegions() {
  return (
    <>
      <div class="unseen" role="status" aria-live="polite">{polite}</div>
      <div class="unseen" role="alert" aria-live="assertive">{urgent}</div>
    </>
  );
}
