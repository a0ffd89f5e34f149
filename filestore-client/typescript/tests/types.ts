// What must compile, and what must not. `npm run types` compiles this file. It never runs.
import { Connection, type FileRecord, type ListReply, type Status } from '../src/index.js';

const server = new Connection({ url: 'http://localhost' });

export async function compiles(): Promise<void> {
  const { data } = await server.call('GET', '/files/{file_id}/info', { path: { file_id: 'a' } });
  const record: FileRecord = data;
  const page: ListReply = (await server.call('GET', '/files', { query: { 'metadata.customer': '7', limit: 10 } })).data;
  await server.call('GET', '/me');
  await server.call('POST', '/files/delete', { body: { ids: [record.file_id] } });
  const gone: undefined = (await server.call('DELETE', '/uploads/{upload}', { path: { upload: 'u' } })).data;
  await server.call('PATCH', '/files/{file_id}', {
    path: { file_id: 'a' },
    headers: { 'If-Match': '"x"', 'X-Own': 'y' },
    body: { original_name: 'b' },
  });
  const word: Status = 'LATER';
  await server.call('GET', '/sheets', { query: { ids: ['a', 'b'], size: 200 } });
  void [page, gone, word];
}

export function doesNotCompile(): void {
  // @ts-expect-error: no such path
  void server.call('GET', '/file', {});
  // @ts-expect-error: no such method
  void server.call('PUT', '/me');
  // @ts-expect-error: the id is missing
  void server.call('GET', '/files/{file_id}/info');
  // @ts-expect-error: no such parameter
  void server.call('GET', '/files', { query: { organisation: '1' } });
  // @ts-expect-error: no such size
  void server.call('GET', '/files/{file_id}/{width}/{height}', { path: { file_id: 'a', width: 201, height: 200 } });
  // @ts-expect-error: the body is missing
  void server.call('POST', '/files/delete');
  // @ts-expect-error: a reply is typed
  void server.call('GET', '/me').then(({ data }) => data.nothing);
}
