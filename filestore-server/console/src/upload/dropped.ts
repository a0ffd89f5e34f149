// The files of a drop or a paste, also those inside of folders.

/** The number of files after which the page may do something else. */
const PORTION = 250;

/** True if something that is dragged has files. */
export const hasFiles = (transfer: DataTransfer | null): boolean => transfer?.types.includes('Files') ?? false;

/** The files and folders of a transfer. They must be taken within the event, because they are gone after it. */
export interface Dropped {
  entries: FileSystemEntry[];
  files: File[];
}

export function take(transfer: DataTransfer): Dropped {
  const entries: FileSystemEntry[] = [];
  const files: File[] = [];
  for (const item of transfer.items) {
    if (item.kind !== 'file') continue;
    const entry = item.webkitGetAsEntry();
    if (entry) entries.push(entry);
    else {
      const file = item.getAsFile();
      if (file) files.push(file);
    }
  }
  return { entries, files };
}

/** Yields the files in portions, so that ten thousand of them do not stop the page. Leaves out what cannot be read. */
export async function* filesOf(dropped: Dropped): AsyncGenerator<File[]> {
  for (let at = 0; at < dropped.files.length; at += PORTION) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve, 0));
    yield dropped.files.slice(at, at + PORTION);
  }
  const folders: FileSystemDirectoryEntry[] = [];
  yield* portion(dropped.entries, folders);
  for (let folder = folders.pop(); folder; folder = folders.pop()) {
    const reader = folder.createReader();
    for (;;) {
      // A reader gives some 100 entries at a time, and an empty list at the end.
      const entries = await read<FileSystemEntry[]>((good, bad) => reader.readEntries(good, bad)).catch(() => []);
      if (entries.length === 0) break;
      yield* portion(entries, folders);
    }
  }
}

async function* portion(entries: FileSystemEntry[], folders: FileSystemDirectoryEntry[]): AsyncGenerator<File[]> {
  const found = entries.map(async (entry) => {
    if (entry.isDirectory) {
      folders.push(entry as FileSystemDirectoryEntry);
      return [];
    }
    const file = await read<File>((good, bad) => (entry as FileSystemFileEntry).file(good, bad)).catch(() => null);
    return file ? [file] : [];
  });
  const files = (await Promise.all(found)).flat();
  if (files.length > 0) yield files;
}

const read = <T>(ask: (good: (value: T) => void, bad: (error: unknown) => void) => void): Promise<T> =>
  new Promise((resolve, reject) => ask(resolve, reject));
