// Uploads to a real server, over a line that breaks.
import assert from 'node:assert/strict';
import { openAsBlob } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import {
  Connection,
  Problem,
  cancelUpload,
  fingerprintOf,
  memoryStore,
  replace,
  signedUploadUrl,
  upload,
  uploadBatch,
  uploadTo,
} from '../dist/index.js';
import { Line, PLACE, Server, fileOf, sha256 } from './support.mjs';

const MIB = 1 << 20;
let server;
let line;
let direct;
let there;

before(async () => {
  server = await Server.start();
  line = await Line.to(server);
});
beforeEach(() => {
  line.budgets = [];
  line.breaks = 0;
  line.carried = 0;
  direct = new Connection({ url: server.url });
  there = new Connection({ url: line.url });
});
after(async () => {
  await line?.end();
  await server?.end();
});

/** Notes the progress, and asserts that what is stored never falls and never goes beyond what is sent. */
function watched() {
  const seen = [];
  const onProgress = (progress) => {
    const last = seen.at(-1);
    assert.ok(progress.stored >= (last?.stored ?? 0), `${progress.stored} after ${last?.stored}`);
    assert.ok(progress.stored <= progress.sent && progress.sent <= progress.total);
    seen.push(progress);
  };
  return { seen, onProgress };
}

async function stored(record, bytes) {
  assert.equal(record.sha256, sha256(bytes));
  const reply = await direct.request('GET', '/files/{file_id}', { path: { file_id: record.file_id } });
  assert.equal(sha256(Buffer.from(await reply.arrayBuffer())), sha256(bytes));
}

test('small files are sent as a form, with name, type and metadata', async () => {
  const { bytes, file } = fileOf(1000);
  const { seen, onProgress } = watched();
  const fields = { ...PLACE, mime_type: 'application/x-own', metadata: { customer: 7 }, upload_temp: true };
  const record = await upload(there, file, { ...fields, onProgress });
  await stored(record, bytes);
  assert.equal(record.original_name, 'grüße.bin');
  assert.equal(record.mime_type, 'application/x-own');
  assert.equal(record.status, 'TEMP');
  assert.deepEqual(record.metadata, { customer: 7 });
  assert.deepEqual(seen.at(-1), { stored: 1000, sent: 1000, total: 1000, resumedAt: 0 });
});

test('empty files and bytes without a name are stored', async () => {
  await stored(await upload(there, new Uint8Array(), PLACE), Buffer.alloc(0));
  await stored(await upload(there, new Blob(), { ...PLACE, resumableFrom: 0 }), Buffer.alloc(0));
  const { bytes } = fileOf(3 * MIB);
  await stored(await upload(there, bytes, PLACE), bytes);
});

test('a form whose reply is lost is stored once', async () => {
  const { bytes, file } = fileOf(1000, 'once.bin');
  line.budgets = [-1, 500, -1];
  const record = await upload(there, file, PLACE);
  await stored(record, bytes);
  assert.equal(line.breaks, 3);
  const { data } = await direct.call('GET', '/files', { query: { ...organization(), name_prefix: 'once.bin' } });
  assert.equal(data.items.length, 1);
});

const organization = () => ({ organization_id: PLACE.organization_id });

test('a large file arrives over a line that breaks twenty times', async () => {
  const { bytes, file } = fileOf(24 * MIB);
  // Breaks within requests, within the headers of a request, and after the server has stored a part.
  line.budgets = Array.from({ length: 20 }, (_, index) => [900_000, 100, -1, 1_700_000, 2_500_000][index % 5]);
  const { seen, onProgress } = watched();
  const record = await upload(there, file, { ...PLACE, onProgress });
  await stored(record, bytes);
  assert.equal(line.breaks, 20);
  assert.equal(seen.at(-1).stored, bytes.length);
  // A break costs one part at most, and after a break a part has 1 MiB.
  assert.ok(line.carried < 46 * MIB, `${line.carried} bytes for ${bytes.length}`);
  const { data } = await direct.call('GET', '/uploads', { query: organization() });
  assert.deepEqual(data.items.filter((item) => item.state === 'open'), []);
});

test('an upload goes on after the server was killed and started again', async () => {
  const { bytes, file } = fileOf(12 * MIB);
  const { seen, onProgress } = watched();
  let killed;
  const record = await upload(there, file, {
    ...PLACE,
    onProgress: (progress) => {
      onProgress(progress);
      if (progress.stored > 0 && !killed) killed = server.kill().then(() => server.start());
    },
  });
  await killed;
  await stored(record, bytes);
  assert.ok(seen.length > 2);
});

test('an aborted upload continues where it was, also in a new program with the same store', async () => {
  const { bytes, file } = fileOf(20 * MIB);
  const store = memoryStore();
  const stop = new AbortController();
  const stopping = upload(there, file, {
    ...PLACE,
    store,
    signal: stop.signal,
    onProgress: ({ stored }) => stored > 0 && stop.abort(),
  });
  await assert.rejects(stopping, { name: 'AbortError' });
  const [entry] = await store.list();
  assert.deepEqual(
    [entry.name, entry.size, entry.organization_id, entry.fingerprint],
    ['grüße.bin', bytes.length, '42', fingerprintOf(there, file, PLACE)],
  );
  assert.doesNotMatch(JSON.stringify(entry), /Bearer|fsk_/);

  const carried = line.carried;
  const { seen, onProgress } = watched();
  const again = new Connection({ url: line.url });
  const record = await upload(again, new File([bytes], file.name, file), { ...PLACE, store, onProgress });
  await stored(record, bytes);
  assert.equal(seen.at(-1).resumedAt, 8 * MIB);
  assert.ok(line.carried - carried < 13 * MIB, `${line.carried - carried}`);
  assert.deepEqual(await store.list(), []);
});

test('a program that missed the last reply gets the record', async () => {
  const { bytes, file } = fileOf(2 * MIB);
  const store = memoryStore();
  const stop = new AbortController();
  const patient = { ...PLACE, store, signal: stop.signal };
  // The reply to the creation passes. Then the line breaks before the reply to the only part.
  const reached = new Connection({
    url: line.url,
    fetch: async (...args) => {
      const reply = await fetch(...args);
      if (args[1].method === 'PATCH') stop.abort();
      return reply;
    },
  });
  await assert.rejects(upload(reached, file, patient), { name: 'AbortError' });
  const record = await upload(there, file, { ...PLACE, store });
  await stored(record, bytes);
  const { data } = await direct.call('GET', '/files', { query: { ...organization(), limit: 2 } });
  assert.notEqual(data.items[1]?.sha256, record.sha256, 'the file is there once');
});

test('an upload that the server has lost begins again', async () => {
  const { bytes, file } = fileOf(10 * MIB);
  const store = memoryStore();
  const stop = new AbortController();
  const half = { ...PLACE, store, signal: stop.signal, onProgress: ({ stored }) => stored > 0 && stop.abort() };
  await assert.rejects(upload(there, file, half), { name: 'AbortError' });
  const [entry] = await store.list();
  await cancelUpload(there, entry);
  assert.equal((await store.list()).length, 1, 'the default store is another one');
  await stored(await upload(there, file, { ...PLACE, store }), bytes);
});

test('a cancelled upload is gone at the server, and cancelling twice is no error', async () => {
  const { file } = fileOf(10 * MIB);
  const store = memoryStore();
  const stop = new AbortController();
  const half = { ...PLACE, store, signal: stop.signal, onProgress: ({ stored }) => stored > 0 && stop.abort() };
  await assert.rejects(upload(there, file, half), { name: 'AbortError' });
  const [entry] = await store.list();
  await cancelUpload(there, entry, store);
  await cancelUpload(there, entry, store);
  assert.deepEqual(await store.list(), []);
  await assert.rejects(
    direct.call('GET', '/uploads/{upload}', { path: { upload: entry.upload } }),
    { status: 404 },
  );
});

test('an abort ends a pause at once, and a dead server is given up after the patience', async () => {
  const { file } = fileOf(2 * MIB);
  const nobody = new Connection({ url: 'http://127.0.0.1:9' });
  await assert.rejects(upload(nobody, file, { ...PLACE, patienceMs: 0 }), (error) => {
    assert.ok(error instanceof Problem);
    assert.deepEqual([error.code, error.status, error.isTemporary], ['unreachable', 0, true]);
    return true;
  });
  const stop = new AbortController();
  const waiting = upload(nobody, file, { ...PLACE, signal: stop.signal });
  setTimeout(() => stop.abort(new Error('enough')), 100);
  await assert.rejects(waiting, { message: 'enough' });
  await assert.rejects(upload(there, file, { ...PLACE, signal: AbortSignal.abort() }), { name: 'AbortError' });
});

test('a wrong digest is refused, for a form and for parts', async () => {
  for (const size of [10, 2 * MIB]) {
    const { file } = fileOf(size);
    const store = memoryStore();
    const wrong = { ...PLACE, store, sha256: 'ab'.repeat(32) };
    await assert.rejects(upload(there, file, wrong), { name: 'Problem', code: 'digest_mismatch', status: 422 });
    assert.deepEqual(await store.list(), []);
  }
});

test('a file that is too large is refused with its limit', async () => {
  const { url } = await signedUploadUrl(there, { ...PLACE, max_size: 10 });
  await assert.rejects(uploadTo(url, fileOf(11).file), (error) => {
    assert.deepEqual([error.status, error.code], [413, 'too_large']);
    assert.equal(error.limit, 10);
    assert.match(error.requestId, /^[0-9A-Z]{26}$/);
    return true;
  });
});

test('a proxy that refuses large bodies gets smaller ones', async () => {
  const { bytes, file } = fileOf(9 * MIB);
  const sizes = [];
  const behind = new Connection({
    url: server.url,
    fetch: async (url, init) => {
      if (init?.method === 'PATCH') sizes.push(init.body.byteLength);
      if (init?.body?.byteLength > 3 * MIB) return new Response('<h1>too large</h1>', { status: 413 });
      return fetch(url, init);
    },
  });
  await stored(await upload(behind, file, PLACE), bytes);
  assert.deepEqual(sizes.slice(0, 3), [8 * MIB, 4 * MIB, 2 * MIB]);
  assert.ok(sizes.slice(2).every((size) => size <= 3 * MIB));
});

test('damage on the way is noticed, and the part is sent again', async () => {
  const { bytes, file } = fileOf(2 * MIB);
  let damages = 2;
  const noisy = new Connection({
    url: server.url,
    fetch: (url, init) => {
      if (init?.method === 'PATCH' && damages-- > 0) {
        const damaged = new Uint8Array(init.body.slice(0));
        damaged[1000] ^= 1;
        return fetch(url, { ...init, body: damaged });
      }
      return fetch(url, init);
    },
  });
  await stored(await upload(noisy, file, PLACE), bytes);
  assert.equal(damages, -1);
});

test('a busy server is asked again after the time that it names', async () => {
  const { bytes, file } = fileOf(2 * MIB);
  let busy = 2;
  const document = JSON.stringify({ code: 'too_many_uploads', status: 503, detail: 'later' });
  const headers = { 'Content-Type': 'application/problem+json', 'Retry-After': '1' };
  const crowded = new Connection({
    url: server.url,
    fetch: async (url, init) => {
      return busy-- > 0 ? new Response(document, { status: 503, headers }) : fetch(url, init);
    },
  });
  const began = Date.now();
  await stored(await upload(crowded, file, PLACE), bytes);
  assert.ok(Date.now() - began >= 2000);
});

test('signed URLs take one file without a key, as a form and in parts', async () => {
  for (const resumable of [false, true]) {
    const { bytes, file } = fileOf(2 * MIB, `signed ${resumable}.bin`);
    line.budgets = resumable ? [600_000] : [];
    const { url, expires_at } = await signedUploadUrl(there, { ...PLACE, resumable });
    assert.ok(url.startsWith(`${line.url}/api/v1/`) && Date.parse(expires_at) > Date.now());
    const record = await uploadTo(url, file, { metadata: { from: 'a page' } });
    await stored(record, bytes);
    assert.equal(record.original_name, file.name);
    await assert.rejects(uploadTo(url, fileOf(2 * MIB).file), { code: 'signature_used' });
  }
  await assert.rejects(uploadTo('https://elsewhere.example', new Blob()), TypeError);
});

test('a signed URL without a host takes a file in parts, on a page of the same server', async () => {
  const { bytes, file } = fileOf(3 * MIB, 'relative.bin');
  const { url } = await signedUploadUrl(direct, { ...PLACE, resumable: true });
  const original = globalThis.fetch;
  // As a page resolves it.
  globalThis.fetch = (address, init) => original(new URL(address, server.url), init);
  try {
    await stored(await uploadTo(url.slice(server.url.length), file), bytes);
  } finally {
    globalThis.fetch = original;
  }
});

test('another file at the same signed URL is not mixed with the one before', { timeout: 60_000 }, async () => {
  for (const size of [6 * MIB, 12 * MIB]) {
    const { url } = await signedUploadUrl(direct, { ...PLACE, resumable: true });
    const store = memoryStore();
    const stop = new AbortController();
    const half = { store, signal: stop.signal, onProgress: ({ stored }) => stored > 0 && stop.abort() };
    await assert.rejects(uploadTo(url, fileOf(12 * MIB, 'half.bin').file, half), { name: 'AbortError' });
    const [entry] = await store.list();
    assert.ok(!JSON.stringify(entry).includes(new URL(url).searchParams.get('sig')), 'no signature is kept');
    const { bytes, file } = fileOf(size, 'other.bin');
    await stored(await uploadTo(url, file, { store }), bytes);
  }
});

test('an entry of a file with another size is not continued', { timeout: 60_000 }, async () => {
  const store = memoryStore();
  const stop = new AbortController();
  const named = { ...PLACE, store, fingerprint: 'one name for both' };
  const half = { ...named, signal: stop.signal, onProgress: ({ stored }) => stored > 0 && stop.abort() };
  await assert.rejects(upload(there, fileOf(12 * MIB).file, half), { name: 'AbortError' });
  const { bytes, file } = fileOf(5 * MIB);
  await stored(await upload(there, file, named), bytes);
  assert.deepEqual(await store.list(), []);
});

test('files of two folders with one name, size and time are two files', () => {
  const fingerprints = ['', 'a/x.bin', 'b/x.bin'].map((folder) => {
    const { file } = fileOf(2, 'x.bin');
    Object.defineProperty(file, 'webkitRelativePath', { value: folder });
    return fingerprintOf(there, file, PLACE);
  });
  assert.equal(new Set(fingerprints).size, 3);
  assert.equal(fingerprints[0], fingerprintOf(there, fileOf(2, 'x.bin').file, PLACE));
});

test('a file that was changed meanwhile fails at once, and the server counts as reachable', { timeout: 60_000 }, async () => {
  const dir = await mkdtemp(path.join(tmpdir(), 'filestore-changed-'));
  try {
    const name = path.join(dir, 'changed.bin');
    await writeFile(name, fileOf(2 * MIB).bytes);
    const file = await openAsBlob(name);
    await writeFile(name, 'shorter');
    const reached = [];
    const watched = new Connection({ url: server.url, onReachable: (isReachable) => reached.push(isReachable) });
    const options = { ...PLACE, patienceMs: Infinity };
    const unreadable = { name: 'NotReadableError' };
    await assert.rejects(uploadBatch(watched, [file], options), unreadable);
    await assert.rejects(upload(watched, file, { ...options, resumableFrom: Infinity }), unreadable);
    await assert.rejects(upload(watched, file, options), unreadable);
    assert.ok(!reached.includes(false));
  } finally {
    await rm(dir, { recursive: true });
  }
});

test('bytes are replaced if the file is still the one that was seen', async () => {
  const first = await upload(there, fileOf(10).file, PLACE);
  const { bytes, file } = fileOf(3 * MIB, 'second.bin');
  line.budgets = [1_500_000];
  const ifMatch = `"${first.sha256}"`;
  const reply = await replace(there, first.file_id, file, { ifMatch });
  assert.equal(reply.file_id, first.file_id);
  const { data } = await direct.call('GET', '/files/{file_id}/info', { path: { file_id: first.file_id } });
  await stored(data, bytes);
  assert.deepEqual([data.version, data.original_name], [2, 'second.bin']);
  await assert.rejects(replace(there, first.file_id, file, { ifMatch }), { status: 412, code: 'precondition_failed' });
});

test('a batch is stored once, in order, over a line that breaks', async () => {
  const files = [fileOf(1000, 'batch a'), fileOf(2000, 'batch b'), fileOf(0, 'batch c')];
  line.budgets = [1500, -1];
  const items = [files[0].file, { file: files[1].file, metadata: { n: 1 } }, files[2].bytes];
  const records = await uploadBatch(there, items, PLACE);
  assert.deepEqual(records.map((record) => record.sha256), files.map(({ bytes }) => sha256(bytes)));
  assert.deepEqual(records[1].metadata, { n: 1 });
  assert.equal(line.breaks, 2);
  const { data } = await direct.call('GET', '/files', { query: { ...organization(), name_prefix: 'batch ' } });
  assert.equal(data.items.length, 2);

  const bad = [files[0].file, { file: files[1].file, original_name: 'a\u0000b' }];
  await assert.rejects(uploadBatch(there, bad, PLACE), { status: 400, item: 1 });
});

test('an upload without a place is refused by name', async () => {
  for (const resumableFrom of [0, 100]) {
    const place = { organization_id: '42', resumableFrom };
    await assert.rejects(upload(there, new Blob(['x']), place), { code: 'missing_field', field: 'sub_system' });
  }
});
