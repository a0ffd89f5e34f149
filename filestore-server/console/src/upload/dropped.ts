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

/**
 * Yields the files in portions, so that ten thousand of them do not stop the page. The paths of files and folders that
 * cannot be read go to `unread`.
 */
export async function* filesOf(dropped: Dropped, unread: string[]): AsyncGenerator<File[]> {
  for (let at = 0; at < dropped.files.length; at += PORTION) {
    if (at > 0) await new Promise((resolve) => setTimeout(resolve, 0));
    yield dropped.files.slice(at, at + PORTION);
  }
  const folders: FileSystemDirectoryEntry[] = [];
  yield* portion(dropped.entries, folders, unread);
  for (let folder = folders.pop(); folder; folder = folders.pop()) {
    const reader = folder.createReader();
    for (;;) {
      // A reader gives some 100 entries at a time, and an empty list at the end.
      const entries = await read<FileSystemEntry[]>((good, bad) => reader.readEntries(good, bad)).catch(() => null);
      if (entries === null) unread.push(pathOf(folder));
      if (!entries?.length) break;
      yield* portion(entries, folders, unread);
    }
  }
}

async function* portion(
  entries: FileSystemEntry[],
  folders: FileSystemDirectoryEntry[],
  unread: string[],
): AsyncGenerator<File[]> {
  const found = entries.map(async (entry) => {
    if (entry.isDirectory) {
      folders.push(entry as FileSystemDirectoryEntry);
      return [];
    }
    const file = await read<File>((good, bad) => (entry as FileSystemFileEntry).file(good, bad)).catch(() => null);
    if (!file) unread.push(pathOf(entry));
    return file ? [placed(file, entry)] : [];
  });
  const files = (await Promise.all(found)).flat();
  if (files.length > 0) yield files;
}

const pathOf = (entry: FileSystemEntry): string => entry.fullPath.replace(/^\//, '');

/** Gives a file of a dropped folder the path that a file of a chosen folder has, which tells it from its namesakes. */
function placed(file: File, entry: FileSystemEntry): File {
  const path = pathOf(entry);
  if (path.includes('/') && !file.webkitRelativePath) Object.defineProperty(file, 'webkitRelativePath', { value: path });
  return file;
}

const read = <T>(ask: (good: (value: T) => void, bad: (error: unknown) => void) => void): Promise<T> =>
  new Promise((resolve, reject) => ask(resolve, reject));
