// Uploads of the command line to @tus/server. tus has no word for the record of a stored file: as an application of
// that server would, the story adds the record to the last reply. Arguments: the program, a directory to work in.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { FileStore } from '@tus/file-store';
import { Server } from '@tus/server';

const [program, work] = process.argv.slice(2);
// Two pieces of the client: one of 32 MiB, one of 8 MiB.
const BYTES = randomBytes(40 << 20);
const NAME = 'grüße.bin';
const ID = '01JD0000000000000000000000';

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

// The foreign server, and what it saw.
const directory = path.join(work, 'stored');
const seen = { creations: 0, finishes: 0, metadata: null, running: null };

async function record(upload) {
  const hash = createHash('sha256');
  for await (const piece of createReadStream(path.join(directory, upload.id))) hash.update(piece);
  return {
    file_id: ID, original_name: upload.metadata.original_name, mime_type: 'application/octet-stream',
    file_size: upload.size, ext: 'bin', file_path: upload.id, sync_status: 'PENDING', updated_at: upload.creation_date,
    status: 'READY', storage_location: 'LOCAL', storage_provider: 'LOCAL', organization_id: '42', sub_system: 'films',
    sha256: hash.digest('hex'), width: null, height: null, version: 1, created_at: upload.creation_date,
    expires_at: null, purge_status: null,
  };
}

async function startServer(makesFiles) {
  const tus = new Server({
    path: '/api/v1/uploads',
    datastore: new FileStore({ directory }),
    onUploadCreate: async (_, upload) => {
      seen.creations += 1;
      seen.metadata = upload.metadata;
      return {};
    },
    onUploadFinish: async (_, upload) => {
      seen.finishes += 1;
      if (!makesFiles) return {};
      const headers = { 'File-Id': ID, 'Content-Type': 'application/json' };
      return { status_code: 200, headers, body: JSON.stringify(await record(upload)) };
    },
  });
  const running = tus.listen({ host: '127.0.0.1', port: 0 });
  await once(running, 'listening');
  seen.running = running;
  line.target = running.address().port;
}

async function stopServer() {
  seen.running.closeAllConnections();
  seen.running.close();
  await once(seen.running, 'close');
}

// A line to the server. It breaks after the numbers of bytes in `budgets`, one after the other. If `mute` is set, it
// breaks in place of the reply to a finished upload.
const line = { target: 0, budgets: [], mute: false, breaks: 0, onBreak: async () => {} };

function carry(client) {
  const server = connect(line.target, '127.0.0.1');
  const cut = () => {
    line.breaks += 1;
    server.resetAndDestroy();
    client.resetAndDestroy();
    line.onBreak(line.breaks);
  };
  client.on('data', (bytes) => {
    if (line.budgets.length > 0) {
      line.budgets[0] -= bytes.length;
      if (line.budgets[0] <= 0) {
        line.budgets.shift();
        server.write(bytes, cut);
        return;
      }
    }
    if (!server.write(bytes)) {
      client.pause();
      server.once('drain', () => client.resume());
    }
  });
  server.on('data', (bytes) => {
    if (line.mute && seen.finishes > 0) {
      line.mute = false;
      cut();
    } else {
      client.write(bytes);
    }
  });
  for (const [one, other] of [[client, server], [server, client]]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.end());
  }
}

async function upload(url) {
  const args = ['--server', url, '--json', 'upload', path.join(work, NAME), '--org', '42', '--sub', 'films'];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, errors] = [child.stdout.toArray(), child.stderr.toArray()];
  const [status] = await once(child, 'exit');
  return { status, out: Buffer.concat(await out).toString(), errors: Buffer.concat(await errors).toString() };
}

async function uploads(url, breaks) {
  Object.assign(seen, { creations: 0, finishes: 0, metadata: null });
  line.breaks = 0;
  const { status, out, errors } = await upload(url);
  assert.equal(status, 0, errors);
  const stored = JSON.parse(out);
  assert.equal((stored[0] ?? stored).sha256, sha256(BYTES));
  assert.equal(line.breaks, breaks, 'the line broke');
  assert.equal(seen.creations, 1, 'one upload, which went on');
  assert.equal(seen.metadata.original_name, NAME);
}

await mkdir(directory);
await writeFile(path.join(work, NAME), BYTES);
const proxy = createServer(carry);
proxy.listen(0, '127.0.0.1');
await once(proxy, 'listening');
const url = `http://127.0.0.1:${proxy.address().port}`;

await startServer(true);
await uploads(url, 0);
console.log('an upload in pieces: ok');

line.budgets = [5 << 20, 10 << 20, 12 << 20, 4 << 20];
await uploads(url, 4);
console.log('an upload over a line that breaks four times: ok');

line.budgets = [9 << 20, 9 << 20];
line.onBreak = async (count) => {
  if (count === 1) {
    await stopServer();
    await startServer(true);
  }
};
await uploads(url, 2);
line.onBreak = async () => {};
console.log('an upload that another process of the server continues: ok');

line.mute = true;
await uploads(url, 1);
console.log('an upload whose last reply is lost: ok');

await stopServer();
await startServer(false);
const { status, errors } = await upload(url);
assert.equal(status, 2, errors);
assert.match(errors, /names no file/);
console.log('a server that makes no file of an upload is an error: ok');
process.exit(0);
