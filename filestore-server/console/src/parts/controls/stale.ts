import { createContext } from 'preact';

/** True around data that is shown while nothing answers. Buttons in it change nothing. */
export const Stale = createContext(false);
