// Resumable uploads of foreign clients, over a line that breaks: tus-js-client in Node.js, then tus-js-client and Uppy
// in Chromium, on a page of another origin, with an API key and with a signed URL. The page also follows the log of
// events. Arguments: the program of the
// server, a directory to work in, the program of Chromium, the bundle of Uppy.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer as createPage, request } from 'node:http';
import { createRequire } from 'node:module';
import { connect, createServer as createLine } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import puppeteer from 'puppeteer-core';
import * as tus4 from 'tus-js-client';
import * as tus5 from 'tus-js-client-5';

const [program, work, chromium, uppy] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const BYTES = randomBytes(1_600_000);
const PLACE = 'organization_id=42&sub_system=films';
// A chunk for each told offset, so that a break costs one chunk at most.
const CHUNK = 512 << 10;
const RETRIES = [0, 50, 200, 1000];

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

async function listening(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

// A line to the server. After `left` more bytes of its clients it breaks once, with a reset.
const line = { left: Infinity, breaks: 0, url: '', target: 0 };

function carry(client) {
  const server = connect(line.target, '127.0.0.1');
  client.on('data', (bytes) => {
    if (bytes.length < line.left) {
      line.left -= bytes.length;
      server.write(bytes);
      return;
    }
    server.write(bytes.subarray(0, line.left), () => server.resetAndDestroy());
    line.left = Infinity;
    line.breaks += 1;
    client.resetAndDestroy();
  });
  server.on('data', (bytes) => client.write(bytes));
  for (const [one, other] of [[client, server], [server, client]]) {
    one.on('error', () => other.destroy());
    one.on('close', () => other.end());
  }
}

// Runs a part during which the line breaks once.
async function broken(part) {
  const before = line.breaks;
  line.left = 900_000;
  const outcome = await part();
  assert.equal(line.breaks, before + 1, 'the line broke');
  return outcome;
}

// Asks over the admin socket, which needs no key.
async function administer(pathname, body) {
  const socketPath = path.join(work, 'uploads', 'admin.sock');
  const headers = { 'Content-Type': 'application/json', Host: 'localhost' };
  const call = request({ socketPath, path: `/api/v1/admin/${pathname}`, method: 'POST', headers });
  call.end(JSON.stringify(body));
  const [reply] = await once(call, 'response');
  const text = (await reply.toArray()).join('');
  assert.equal(reply.statusCode, 201, text);
  return JSON.parse(text);
}

async function startServer(origin) {
  const config = path.join(work, 'uploads.toml');
  await writeFile(config, `[cors]\nallowed_origins = ["${origin}"]\n`);
  const log = openSync(path.join(work, 'uploads.log'), 'w');
  const args = ['--config', config, '--listen', '127.0.0.1:0', '--data-dir', path.join(work, 'uploads')];
  const server = spawn(program, args, { stdio: ['ignore', 'pipe', log] });
  for await (const text of createInterface({ input: server.stdout })) {
    const at = text.match(/http:\/\/127\.0\.0\.1:(\d+)/);
    if (at) {
      line.target = Number(at[1]);
      return server;
    }
  }
  throw new Error('the server does not listen');
}

let key;
const bearer = () => ({ Authorization: `Bearer ${key}` });
const endpoint = () => `${line.url}/api/v1/uploads?${PLACE}`;

// A URL that creates one upload without a key, over the line.
async function signed() {
  const body = JSON.stringify({ organization_id: '42', sub_system: 'films', resumable: true });
  const headers = { ...bearer(), 'Content-Type': 'application/json' };
  const reply = await fetch(`${line.url}/api/v1/files/sign-upload`, { method: 'POST', headers, body });
  assert.equal(reply.status, 200, await reply.clone().text());
  const url = new URL((await reply.json()).url, line.url);
  return line.url + url.pathname + url.search;
}

// Compares the stored file of an upload, and returns its record.
async function stored(uploadUrl, bytes) {
  const headers = { ...bearer(), 'Tus-Resumable': '1.0.0' };
  const head = await fetch(uploadUrl, { method: 'HEAD', headers });
  assert.equal(head.status, 200);
  const id = head.headers.get('file-id');
  assert.ok(id, 'the upload has its file');
  const reply = await fetch(`${line.url}/api/v1/files/${id}/info`, { headers: bearer() });
  const record = await reply.json();
  assert.equal(record.sha256, sha256(bytes));
  return record;
}

// Uploads by tus-js-client in this process, and returns the URL of the upload. Offsets that are told never decrease.
async function send(tus, file, options) {
  let told = 0;
  const url = await new Promise((resolve, reject) => {
    const upload = new tus.Upload(file, {
      chunkSize: CHUNK,
      retryDelays: RETRIES,
      metadata: { filename: 'grüße.bin', filetype: 'application/x-own' },
      onAfterResponse: (_, response) => {
        const offset = Number(response.getHeader('Upload-Offset') ?? told);
        if (options.parallelUploads) return;
        assert.ok(offset >= told, `${offset} after ${told}`);
        told = offset;
      },
      onError: reject,
      onSuccess: () => resolve(upload.url),
      ...options,
    });
    upload.start();
  });
  return url;
}

async function nodeWithAKey(tus) {
  const options = { endpoint: endpoint(), headers: bearer() };
  const record = await stored(await broken(() => send(tus, BYTES, options)), BYTES);
  assert.equal(record.original_name, 'grüße.bin');
}

async function nodeWithASignedUrl(tus) {
  await stored(await broken(async () => send(tus, BYTES, { endpoint: await signed() })), BYTES);
}

async function nodeInParallel(tus) {
  const options = { endpoint: endpoint(), headers: bearer(), parallelUploads: 2 };
  await stored(await broken(() => send(tus, BYTES, options)), BYTES);
}

async function nodeWithoutALength(tus) {
  const options = { endpoint: endpoint(), headers: bearer(), uploadLengthDeferred: true };
  await stored(await broken(() => send(tus, BYTES, options)), BYTES);
}

async function nodeWithBytesInTheCreation(tus) {
  const options = { endpoint: endpoint(), headers: bearer(), uploadDataDuringCreation: true };
  const [short, empty] = [Buffer.from('hello world'), Buffer.alloc(0)];
  await stored(await send(tus, short, options), short);
  await stored(await send(tus, empty, options), empty);
  await stored(await send(tus, BYTES, options), BYTES);
}

async function nodeByPost(tus) {
  const options = { endpoint: endpoint(), headers: bearer(), overridePatchMethod: true };
  await stored(await broken(() => send(tus, BYTES, options)), BYTES);
}

async function nodeByTheDrafts(tus) {
  for (const protocol of ['ietf-draft-03', 'ietf-draft-05']) {
    const options = { endpoint: endpoint(), headers: bearer(), protocol };
    await stored(await broken(() => send(tus, BYTES, options)), BYTES);
  }
}

// Stops an upload after its first chunk, and returns it.
function stopped(tus, terminates) {
  return new Promise((resolve, reject) => {
    const upload = new tus.Upload(BYTES, {
      endpoint: endpoint(),
      headers: bearer(),
      chunkSize: CHUNK,
      onChunkComplete: () => upload.abort(terminates).then(() => resolve(upload), reject),
      onError: reject,
    });
    upload.start();
  });
}

async function nodeContinuesAndTerminates(tus) {
  const { url } = await stopped(tus, false);
  assert.equal(await send(tus, BYTES, { uploadUrl: url, headers: bearer() }), url);
  await stored(url, BYTES);

  const ended = await stopped(tus, true);
  const headers = { ...bearer(), 'Tus-Resumable': '1.0.0' };
  assert.equal((await fetch(ended.url, { method: 'HEAD', headers })).status, 404);
}

// The following functions run in the page.

async function pageTus({ version, options, name }) {
  const tus = globalThis[`tus${version}`];
  const bytes = await (await fetch('/bytes')).blob();
  const file = new File([bytes], name, { type: 'application/x-own' });
  return new Promise((resolve, reject) => {
    const upload = new tus.Upload(file, {
      ...options,
      metadata: { filename: file.name, filetype: file.type },
      onError: (error) => reject(new Error(String(error))),
      onSuccess: ({ lastResponse }) => resolve({ url: upload.url, id: lastResponse.getHeader('File-Id') }),
    });
    upload.start();
  });
}

// Stops an upload after its first chunk, as a page does that is closed.
async function pageStops({ version, options, name }) {
  const tus = globalThis[`tus${version}`];
  const bytes = await (await fetch('/bytes')).blob();
  const file = new File([bytes], name, { type: 'application/x-own', lastModified: 1 });
  return new Promise((resolve, reject) => {
    const onError = (error) => reject(new Error(String(error)));
    const onChunkComplete = () => upload.abort().then(() => resolve(upload.url), onError);
    const upload = new tus.Upload(file, { ...options, onChunkComplete, onError });
    upload.start();
  });
}

// Continues the upload that an earlier page has stopped.
async function pageContinues({ version, options, name }) {
  const tus = globalThis[`tus${version}`];
  const bytes = await (await fetch('/bytes')).blob();
  const file = new File([bytes], name, { type: 'application/x-own', lastModified: 1 });
  return new Promise((resolve, reject) => {
    const onError = (error) => reject(new Error(String(error)));
    const upload = new tus.Upload(file, { ...options, onError, onSuccess: () => resolve(upload.url) });
    upload.findPreviousUploads().then(([previous]) => {
      upload.resumeFromPreviousUpload(previous);
      upload.start();
    }, onError);
  });
}

async function pageUppy({ options, name }) {
  const { Uppy, Tus } = await import('/uppy.mjs');
  const bytes = await (await fetch('/bytes')).blob();
  const uppy = new Uppy().use(Tus, options);
  uppy.addFile({ name, type: 'application/x-own', data: bytes });
  const { successful, failed } = await uppy.upload();
  if (failed.length) throw new Error(String(failed[0].error));
  return successful[0].uploadURL;
}

// Reads a stream of events until it tells of a file, and returns the id of that event.
async function pageFollows({ url, headers, file }) {
  const reply = await fetch(url, { headers: { ...headers, Accept: 'text/event-stream' } });
  if (!reply.ok) throw new Error(await reply.text());
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream has ended: ${text}`);
    const blocks = (text + value).split('\n\n');
    text = blocks.pop();
    const block = blocks.find((block) => block.includes(`"file_id":"${file}"`));
    if (block) {
      await reader.cancel();
      return block.match(/^id: (.*)$/m)[1];
    }
  }
}

// A page follows the log with a key, and goes on after the last event.
async function followsInThePage(page) {
  const upload = async (name) => {
    const body = new FormData();
    body.set('file', new Blob([name]), name);
    body.set('organization_id', '42');
    body.set('sub_system', 'films');
    const reply = await fetch(`${line.url}/api/v1/files/upload`, { method: 'POST', headers: bearer(), body });
    return (await reply.json()).file_id;
  };
  const url = `${line.url}/api/v1/events`;
  const first = await upload('one');
  const id = await page.evaluate(pageFollows, { url, headers: bearer(), file: first });
  const second = await upload('two');
  const headers = { ...bearer(), 'Last-Event-ID': id };
  await page.evaluate(pageFollows, { url: `${url}?after=end`, headers, file: second });
}

async function inThePage(page, origin) {
  const withKey = { endpoint: endpoint(), headers: bearer(), retryDelays: RETRIES };
  const withUrl = async () => ({ endpoint: await signed(), retryDelays: RETRIES });
  const blank = async () => {
    await page.goto(origin);
    for (const version of [4, 5]) {
      await page.addScriptTag({ url: `/tus${version}.js` });
      await page.evaluate((version) => { globalThis[`tus${version}`] = globalThis.tus; }, version);
    }
  };
  await blank();

  for (const [way, options] of [['key', withKey], ['url', await withUrl()]]) {
    const name = `uppy by ${way}.bin`;
    const url = await broken(() => page.evaluate(pageUppy, { options, name }));
    assert.equal((await stored(url, BYTES)).original_name, name);
  }
  for (const version of [4, 5]) {
    for (const [way, options] of [['key', withKey], ['url', await withUrl()]]) {
      const name = `tus ${version} by ${way}.bin`;
      const given = { version, options: { ...options, chunkSize: CHUNK }, name };
      const { url, id } = await broken(() => page.evaluate(pageTus, given));
      assert.equal((await stored(url, BYTES)).file_id, id, 'the page can read the id of the file');
    }
    for (const protocol of ['ietf-draft-03', 'ietf-draft-05']) {
      const given = { version, options: { ...withKey, protocol }, name: `${protocol} ${version}.bin` };
      await stored((await page.evaluate(pageTus, given)).url, BYTES);
    }
  }

  const given = { version: 4, options: { ...withKey, chunkSize: CHUNK }, name: 'reload.bin' };
  const url = await page.evaluate(pageStops, given);
  await blank();
  assert.equal(await page.evaluate(pageContinues, given), url);
  await stored(url, BYTES);

  await followsInThePage(page);

  // A page can ask for the record in the last reply.
  const asking = { ...withKey, headers: { ...bearer(), Prefer: 'return=representation' } };
  await stored((await page.evaluate(pageTus, { version: 4, options: asking, name: 'record.bin' })).url, BYTES);
}

// A page of another origin, with the clients as their packages contain them.
async function startPage() {
  const files = {
    '/': ['text/html', '<!doctype html><title>page</title>'],
    '/bytes': ['application/octet-stream', BYTES],
    '/uppy.mjs': ['text/javascript', await readFile(uppy)],
  };
  for (const [version, name] of [[4, 'tus-js-client'], [5, 'tus-js-client-5']]) {
    const folder = require.resolve(name).replace(/([\\/]node_modules[\\/][^\\/]+)[\\/].*/, '$1');
    files[`/tus${version}.js`] = ['text/javascript', await readFile(path.join(folder, 'dist', 'tus.min.js'))];
  }
  return createPage((request, reply) => {
    const [type, body] = files[request.url] ?? ['text/plain', ''];
    reply.writeHead(type === 'text/plain' ? 404 : 200, { 'Content-Type': type });
    reply.end(body);
  });
}

const page = await startPage();
const origin = await listening(page);
const server = await startServer(origin);
const proxy = createLine(carry);
line.url = await listening(proxy);
let browser;
try {
  key = (await administer('keys', { name: 'clients', organizations: ['42'], scopes: ['read', 'write'] })).key;
  for (const [name, tus] of [['4', tus4], ['5', tus5]]) {
    for (const part of [
      nodeWithAKey,
      nodeWithASignedUrl,
      nodeInParallel,
      nodeWithoutALength,
      nodeWithBytesInTheCreation,
      nodeByPost,
      nodeByTheDrafts,
      nodeContinuesAndTerminates,
    ]) {
      await part(tus);
      console.log(`${part.name}, tus-js-client ${name}: ok`);
    }
  }

  browser = await puppeteer.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  await inThePage(await browser.newPage(), origin);
  console.log('Uppy and tus-js-client on a page: ok');
} finally {
  await browser?.close();
  proxy.close();
  page.close();
  server.kill();
  await once(server, 'exit');
}
process.exit(0);
