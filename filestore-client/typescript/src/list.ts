// Lists that go on page by page.
import type { Connection, OptionsOf } from './call.js';
import type { FileRecord } from './schema.js';

/** The filters of a list of files. */
export type FileQuery = Omit<NonNullable<OptionsOf<'GET', '/files'>['query']>, 'cursor'>;

/**
 * Lists all files that fit a query, newest first. Asks for the next page when the last is used up.
 *
 * ```ts
 * for await (const record of files(server, { organization_id: '42', 'metadata.customer': '7' })) {
 *   console.log(record.original_name);
 * }
 * ```
 */
export async function* files(
  server: Connection,
  query: FileQuery = {},
  signal?: AbortSignal,
): AsyncGenerator<FileRecord, void, void> {
  let cursor: string | undefined;
  do {
    const { data } = await server.call('GET', '/files', { query: { ...query, cursor }, signal });
    yield* data.items;
    cursor = data.next_cursor ?? undefined;
  } while (cursor !== undefined);
}
