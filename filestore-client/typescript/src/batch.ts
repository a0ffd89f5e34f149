// Several files in one request: all or none.
import { blobOf, nameOf, type Source } from './bytes.js';
import type { Connection } from './call.js';
import type { FileRecord } from './schema.js';
import { sendRepeatable, type SendOptions } from './upload.js';

/** A file of a batch, with its description. */
export interface BatchItem {
  file: Source;
  original_name?: string | undefined;
  mime_type?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
}

export interface BatchOptions
  extends Pick<SendOptions, 'signal' | 'onProgress' | 'patienceMs' | 'idempotencyKey'> {
  organization_id: string;
  sub_system: string;
}

/**
 * Uploads several files in one request. The server stores all of them, or none. Returns the records in the same order.
 *
 * If the server refuses a file, the problem's `item` is the index of this file.
 */
export async function uploadBatch(
  server: Connection,
  files: readonly (Source | BatchItem)[],
  options: BatchOptions,
): Promise<FileRecord[]> {
  const form = new FormData();
  form.append('organization_id', options.organization_id);
  form.append('sub_system', options.sub_system);
  let total = 0;
  files.forEach((entry, index) => {
    const item = 'file' in entry ? entry : { file: entry };
    const file = blobOf(item.file);
    const name = item.original_name ?? nameOf(item.file);
    const put = (field: string, value: string | undefined) => {
      if (value) form.append(`items[${index}].${field}`, value);
    };
    put('original_name', name);
    put('mime_type', item.mime_type);
    put('metadata', item.metadata && JSON.stringify(item.metadata));
    form.append(`items[${index}].file`, file, name || 'file');
    total += file.size;
  });
  const url = server.address('POST', '/files/batch');
  return JSON.parse(await sendRepeatable(server, url, form, total, options)) as FileRecord[];
}
