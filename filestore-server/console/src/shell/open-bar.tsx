import { isOpen, session } from '../session';

/** On an open server: what that means, and the way to close it. Filled by pages/sign-in/first-key. */
export function OpenBar() {
  if (!isOpen.value || session.value.kind !== 'in') return null;
  return null;
}
