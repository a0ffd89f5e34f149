// A program for Node.js, without the types of browsers. `npm run types` compiles it against dist/. It never runs.
import { openAsBlob } from 'node:fs';
import { Connection, follow, Problem, upload, type FileRecord } from '../../dist/index.js';

export async function program(): Promise<FileRecord> {
  const server = new Connection({ url: 'http://localhost', key: process.env['FILESTORE_KEY'], fetch });
  for await (const event of follow(server, { types: ['file.ready'] })) {
    if (event.type === 'file.ready') break;
  }
  try {
    await upload(server, new Uint8Array([1]), { organization_id: '1', sub_system: 'a' });
    const film = await openAsBlob('film.mp4');
    return await upload(server, film, { organization_id: '1', sub_system: 'a', original_name: 'film.mp4' });
  } catch (error) {
    if (error instanceof Problem && error.code === 'quota_exceeded') console.error(error.limit);
    throw error;
  }
}
