// The package on a page of another origin, in Chromium: files of an input, sent bytes, IndexedDB, events, and a page
// without WebCrypto.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { chromium } from 'playwright-core';
import { Connection, signedUploadUrl } from '../dist/index.js';
import { administer, Line, PLACE, Server, fileOf, sha256, until } from './support.mjs';

const MIB = 1 << 20;
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
let dir;
let pages;
let server;
let line;
let browser;
let origins;
let direct;
let key;

/** A web server with one page, which has the package as `client`. */
async function servePages() {
  const module = await readFile(new URL('../dist/index.js', import.meta.url));
  const html = `<!doctype html><title>page</title><input type="file" multiple>
    <script type="module">window.client = await import('./client.js')</script>`;
  const listener = createServer((request, reply) => {
    const isModule = request.url === '/client.js';
    reply.writeHead(200, { 'Content-Type': isModule ? 'text/javascript' : 'text/html; charset=utf-8' });
    reply.end(isModule ? module : html);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  return listener;
}

before(async () => {
  dir = await mkdtemp(path.join(tmpdir(), 'filestore-page-'));
  pages = await servePages();
  const { port } = pages.address();
  origins = { safe: `http://127.0.0.1:${port}`, plain: `http://page.test:${port}` };
  server = await Server.start(`[cors]\nallowed_origins = ${JSON.stringify(Object.values(origins))}\n`);
  line = await Line.to(server);
  ({ key } = await administer(server, 'keys', { name: 'page', organizations: ['42'], scopes: ['read', 'write'] }));
  direct = new Connection({ url: server.url, key });
  const args = ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP page.test 127.0.0.1'];
  browser = await chromium.launch({ executablePath, args });
});
beforeEach(() => {
  line.budgets = [];
  line.most = Infinity;
  line.breaks = 0;
  line.carried = 0;
});
after(async () => {
  await browser?.close();
  await line?.end();
  await server?.end();
  pages?.close();
  await rm(dir, { recursive: true, force: true });
});

async function opened(origin = origins.safe) {
  const context = await browser.newContext();
  const page = await context.newPage();
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => /CORS|unsafe header/.test(message.text()) && faults.push(message.text()));
  await page.goto(origin);
  await page.waitForFunction(() => window.client);
  return { page, faults, [Symbol.asyncDispose]: () => context.close() };
}

/** Chooses a file of the disk, as a visitor does. */
async function choose(page, { bytes, file }) {
  const name = path.join(dir, file.name);
  await writeFile(name, bytes);
  await page.setInputFiles('input', name);
}

async function stored(record, bytes) {
  const { data } = await direct.call('GET', '/files/{file_id}/info', { path: { file_id: record.file_id } });
  assert.equal(data.sha256, sha256(bytes));
}

/** Runs in the page: uploads the chosen file, and returns the record and the progress. */
async function pageUploads({ url, key, place, stopAt }) {
  const { Connection, indexedDbStore, upload } = window.client;
  const stop = new AbortController();
  const progress = [];
  const file = document.querySelector('input').files[0];
  const store = indexedDbStore();
  try {
    const record = await upload(new Connection({ url, key }), file, {
      ...place,
      store,
      signal: stop.signal,
      onProgress: (at) => {
        progress.push(at);
        if (at.stored >= stopAt) stop.abort();
      },
    });
    return { record, progress, kept: await store.list() };
  } catch (error) {
    return { error: error.name, progress, kept: await store.list() };
  }
}

const given = (options) => ({ url: line.url, key, place: PLACE, stopAt: Infinity, ...options });

test('a file of an input arrives over a line that breaks, and the page sees stored and sent bytes', async () => {
  const { page, faults, ...open } = await opened();
  const chosen = fileOf(20 * MIB, 'film.bin');
  await choose(page, chosen);
  line.budgets = [3_000_000, 900_000, -1, 1_500_000];
  const { record, progress, kept } = await page.evaluate(pageUploads, given());
  await stored(record, chosen.bytes);
  assert.equal(record.original_name, 'film.bin');
  assert.equal(line.breaks, 4);
  assert.deepEqual(kept, []);
  let last = 0;
  for (const { stored, sent, total } of progress) {
    assert.ok(last <= stored && stored <= sent && sent <= total, JSON.stringify({ last, stored, sent, total }));
    last = stored;
  }
  assert.ok(progress.some(({ stored, sent }) => sent > stored), 'sent bytes are told before they are stored');
  assert.deepEqual(faults, []);
  await open[Symbol.asyncDispose]();
});

test('an upload continues after a reload, when the same file is chosen again', async () => {
  const { page, faults, ...open } = await opened();
  const chosen = fileOf(20 * MIB, 'reload.bin');
  await choose(page, chosen);
  const first = await page.evaluate(pageUploads, given({ stopAt: 8 * MIB }));
  assert.equal(first.error, 'AbortError');
  assert.deepEqual([first.kept[0].name, first.kept[0].size], ['reload.bin', chosen.bytes.length]);
  assert.ok(!JSON.stringify(first.kept).includes(key), 'no key is kept');

  await page.reload();
  await page.waitForFunction(() => window.client);
  await page.setInputFiles('input', path.join(dir, 'reload.bin'));
  const second = await page.evaluate(pageUploads, given());
  await stored(second.record, chosen.bytes);
  assert.ok(second.progress.at(-1).resumedAt >= 8 * MIB, JSON.stringify(second.progress.at(-1)));
  assert.deepEqual(second.kept, []);
  assert.deepEqual(faults, []);
  await open[Symbol.asyncDispose]();
});

test('a page without a key uploads by signed URLs', async () => {
  const { page, faults, ...open } = await opened();
  const there = new Connection({ url: line.url, key });
  for (const [size, resumable] of [[1000, false], [0, true], [9 * MIB, true]]) {
    const chosen = fileOf(size, `signed-${size}.bin`);
    await choose(page, chosen);
    const { url } = await signedUploadUrl(there, { ...PLACE, resumable });
    line.budgets = size > MIB ? [1_000_000] : [];
    const record = await page.evaluate((url) => {
      return window.client.uploadTo(url, document.querySelector('input').files[0]);
    }, url);
    await stored(record, chosen.bytes);
  }
  assert.deepEqual(faults, []);
  await open[Symbol.asyncDispose]();
});

test('a page follows the log of events', async () => {
  const { page, faults, ...open } = await opened();
  const following = page.evaluate(async ({ url, key }) => {
    const { Connection, follow } = window.client;
    const stop = new AbortController();
    const onPlace = () => (window.follows = true);
    const server = new Connection({ url, key });
    for await (const event of follow(server, { types: ['file.uploaded'], signal: stop.signal, onPlace })) {
      stop.abort();
      return event.data.file_id;
    }
  }, { url: line.url, key });
  await page.waitForFunction(() => window.follows);
  line.cut();
  const form = new FormData();
  for (const [name, value] of Object.entries(PLACE)) form.append(name, value);
  form.append('file', new Blob(['x']), 'x');
  const { data } = await direct.call('POST', '/files/upload', { body: form });
  assert.equal(await following, data.file_id);
  assert.deepEqual(faults, []);
  await open[Symbol.asyncDispose]();
});

test('a page without HTTPS uploads, without digests', async () => {
  const { page, ...open } = await opened(origins.plain);
  assert.equal(await page.evaluate(() => isSecureContext || Boolean(crypto.subtle)), false);
  for (const size of [1000, 3 * MIB]) {
    const chosen = fileOf(size, `plain-${size}.bin`);
    await choose(page, chosen);
    const { record } = await page.evaluate(pageUploads, given());
    await stored(record, chosen.bytes);
  }
  await open[Symbol.asyncDispose]();
});

test('an abort ends the request of a page', async () => {
  const { page, ...open } = await opened();
  await choose(page, fileOf(8 * MIB, 'abort.bin'));
  line.most = 1_000_000;
  const outcome = await page.evaluate(async ({ url, key, place }) => {
    const { Connection, upload } = window.client;
    const stop = new AbortController();
    const onProgress = ({ sent }) => sent > 0 && stop.abort(new Error('enough'));
    const file = document.querySelector('input').files[0];
    const reached = [];
    const server = new Connection({ url, key, onReachable: (isReachable) => reached.push(isReachable) });
    const reason = await upload(server, file, { ...place, signal: stop.signal, onProgress }).catch(String);
    return { reason, isLost: reached.includes(false) };
  }, given());
  assert.deepEqual(outcome, { reason: 'Error: enough', isLost: false });
  await until(async () => {
    const { data } = await direct.call('GET', '/uploads', { query: { organization_id: '42' } });
    return data.items.some(({ original_name, state }) => original_name === 'abort.bin' && state === 'open');
  }, 'the upload waits at the server');
  await open[Symbol.asyncDispose]();
});
