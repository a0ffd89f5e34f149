// What a screen reader hears: results politely, at most one in 5 s, and losses at once.
import { signal } from '@preact/signals';

export const polite = signal('');
const urgent = signal('');
let waiting: string[] = [];
let spokenAt = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Says a result when there is a pause. What comes within 5 s is said together. */
export function announce(text: string): void {
  clearTimeout(timer);
  waiting = [...waiting.filter((one) => one !== text), text].slice(-3);
  timer = setTimeout(() => {
    spokenAt = Date.now();
    // The same sentence twice has to change to be said twice.
    const all = waiting.join('. ');
    waiting = [];
    polite.value = polite.peek() === all ? `${all}\u00a0` : all;
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
