// The unfinished uploads, so that an upload continues after a reload. No bytes and no key.

/** An unfinished upload. `upload` is a secret: with a key for the organization, it can continue the upload. */
export interface StoredUpload {
  /** Identifies file, server and place. The same file continues the upload. */
  fingerprint: string;
  /** Address of the server. */
  server: string;
  /** The last part of the upload's URL: its id, a dot and a secret. */
  upload: string;
  name: string;
  size: number;
  /** Time of the file's last change, in milliseconds since 1970. */
  lastModified: number;
  organization_id: string;
  sub_system: string;
  /** Number of bytes that the server had stored when the entry was written. */
  stored: number;
  /** Time at which the upload began, in milliseconds since 1970. */
  startedAt: number;
}

/** Keeps unfinished uploads. If a call fails, the upload goes on without it. */
export interface UploadStore {
  get(fingerprint: string): Promise<StoredUpload | undefined>;
  put(upload: StoredUpload): Promise<void>;
  delete(fingerprint: string): Promise<void>;
  list(): Promise<StoredUpload[]>;
}

/** Keeps unfinished uploads as long as the program runs. */
export function memoryStore(): UploadStore {
  const uploads = new Map<string, StoredUpload>();
  return {
    get: async (fingerprint) => uploads.get(fingerprint),
    put: async (upload) => void uploads.set(upload.fingerprint, upload),
    delete: async (fingerprint) => void uploads.delete(fingerprint),
    list: async () => [...uploads.values()],
  };
}

/** Keeps unfinished uploads in the database `name` of the browser, for this origin. They survive a reload. */
export function indexedDbStore(name = 'filestore-uploads'): UploadStore {
  const TABLE = 'uploads';
  let opened: Promise<IDBDatabase> | undefined;

  function open(): Promise<IDBDatabase> {
    opened ??= new Promise((resolve, reject) => {
      const request = indexedDB.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(TABLE, { keyPath: 'fingerprint' });
      request.onsuccess = () => {
        // Another tab may delete or upgrade the database.
        request.result.onversionchange = () => {
          request.result.close();
          opened = undefined;
        };
        resolve(request.result);
      };
      request.onerror = () => reject(request.error);
    });
    opened.catch(() => (opened = undefined));
    return opened;
  }

  async function run<T>(mode: IDBTransactionMode, act: (table: IDBObjectStore) => IDBRequest<T>): Promise<T> {
    const database = await open();
    return new Promise((resolve, reject) => {
      const transaction = database.transaction(TABLE, mode);
      const request = act(transaction.objectStore(TABLE));
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  }

  return {
    get: (fingerprint) => run('readonly', (table) => table.get(fingerprint)),
    put: async (upload) => void (await run('readwrite', (table) => table.put(upload))),
    delete: (fingerprint) => run('readwrite', (table) => table.delete(fingerprint)),
    list: () => run('readonly', (table) => table.getAll()),
  };
}
