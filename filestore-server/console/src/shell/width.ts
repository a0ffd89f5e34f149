// How wide the page is, in the three steps of the design.
import { signal } from '@preact/signals';

const narrow = matchMedia('(max-width: 719px)');
const phone = signal(narrow.matches);
narrow.addEventListener('change', () => (phone.value = narrow.matches));

/** Whether the page is as narrow as a phone. */
export const usePhone = (): boolean => phone.value;
