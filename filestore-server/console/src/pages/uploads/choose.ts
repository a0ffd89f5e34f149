import { signal } from '@preact/signals';

/** Where uploads go, if the page itself says so (the first run). Else: the organization and sub-system of the address. */
export const uploadTarget = signal<{ organization: string; subSystem: string } | null>(null);

/** Asks the browser for files, and uploads them. */
export function chooseFiles(): void {}
