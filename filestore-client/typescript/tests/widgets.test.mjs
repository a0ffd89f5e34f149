// The code of docs/how-to/browser-upload.md, with the widgets as they come from npm, on a page of another origin, with keys
// and with signed URLs, in Chromium.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { Connection, signedUploadUrl } from '../dist/index.js';
import { PLACE, Server, administer, fileOf, sha256 } from './support.mjs';

const MIB = 1 << 20;
const root = fileURLToPath(new URL('..', import.meta.url));
const GUIDE = path.join(root, '../../filestore-server/docs/how-to/browser-upload.md');
const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Everything that the guide's code names. */
const MODULE = `
  export { uploadTo } from './dist/index.js';
  export * as FilePond from 'filepond';
  export { default as Dropzone } from 'dropzone';
  export { default as Uppy } from '@uppy/core';
  export { default as XHRUpload } from '@uppy/xhr-upload';
  export { default as Tus } from '@uppy/tus';
  export * as tus from 'tus-js-client';
`;
const HTML = '<!doctype html><title>page</title><input type="file" name="file"><div id="drop">drop</div>';

let dir;
let pages;
let server;
let browser;
let origin;
let there;
let guide;

before(async () => {
  guide = await readFile(GUIDE, 'utf8');
  dir = await mkdtemp(path.join(tmpdir(), 'filestore-widgets-'));
  const stdin = { contents: MODULE, resolveDir: root, loader: 'js' };
  const bundled = await build({ stdin, bundle: true, format: 'esm', write: false, logLevel: 'warning' });
  pages = createServer((request, reply) => {
    const isModule = request.url === '/widgets.js';
    reply.writeHead(200, { 'Content-Type': isModule ? 'text/javascript' : 'text/html' });
    reply.end(isModule ? bundled.outputFiles[0].contents : HTML);
  });
  pages.listen(0, '127.0.0.1');
  await once(pages, 'listening');
  origin = `http://127.0.0.1:${pages.address().port}`;
  server = await Server.start(`[cors]\nallowed_origins = ["${origin}"]\n`);
  const made = await administer(server, 'keys', { name: 'page', organizations: ['42'], scopes: ['read', 'write'] });
  there = new Connection({ url: server.url, key: made.key });
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
});
after(async () => {
  await browser?.close();
  await server?.end();
  pages?.close();
  await rm(dir, { recursive: true, force: true });
});

/** A block of code below a heading of the guide. */
function code(heading, index = 0) {
  const section = guide.split(/^## /m).find((text) => text.startsWith(`${heading}\n`));
  assert.ok(section, `the guide has the section ${heading}`);
  const block = [...section.matchAll(/^```(?:js|html)\n(.*?)^```$/gms)][index];
  assert.ok(block, `${heading} has the block ${index}`);
  return block[1].replaceAll('https://files.example.org', server.url);
}

/** A page that has the widgets as globals, and `signedUrl`, the call of the application's service. */
async function opened({ resumable = false } = {}) {
  const page = await browser.newPage();
  await page.exposeFunction('signedUrl', async () => (await signedUploadUrl(there, { ...PLACE, resumable })).url);
  await page.goto(origin);
  await page.evaluate(async (key) => {
    Object.assign(window, await import('/widgets.js'), { key, results: [] });
    window.told = (...results) => window.results.push(...results.map(String));
    window.FilePond?.setOptions({ credits: false });
    if (window.Dropzone) window.Dropzone.autoDiscover = false;
  }, there.key);
  return page;
}

/** Runs code of the guide. Its \`console.log\` is the result. */
const run = (page, text) =>
  page.evaluate((text) => new Function('console', 'input', text)({ log: window.told }, document.querySelector('input')), text);

async function onDisk({ bytes, file }) {
  const name = path.join(dir, file.name);
  await writeFile(name, bytes);
  return name;
}

async function stored(id, { bytes, file }) {
  assert.match(String(id), /^[0-9A-Z]{26}$/);
  const { data } = await there.call('GET', '/files/{file_id}/info', { path: { file_id: id } });
  assert.deepEqual([data.sha256, data.original_name], [sha256(bytes), file.name]);
}

const result = async (page, count = 1) => {
  await page.waitForFunction((count) => window.results.length >= count, count);
  return page.evaluate(() => window.results);
};

test('the shortest way: a form by fetch', async () => {
  const page = await opened();
  const chosen = fileOf(1000, 'fetch.bin');
  await page.setInputFiles('input', await onDisk(chosen));
  await run(page, `window.going = (async () => { const url = await signedUrl(); ${code('Upload with fetch')} })()`);
  await page.evaluate(() => window.going);
  await stored((await result(page))[0], chosen);
  await page.close();
});

test('the npm package', async () => {
  const page = await opened({ resumable: true });
  const chosen = fileOf(2 * MIB, 'package.bin');
  await page.setInputFiles('input', await onDisk(chosen));
  const text = code('Upload with filestore-client').replace(/^import .*$/gm, '');
  await run(page, `window.going = (async () => { ${text} })()`);
  await page.evaluate(() => window.going);
  await stored((await result(page))[0], chosen);
  await page.close();
});

test('Uppy sends forms and resumable uploads to signed URLs, and resumable uploads with a key', async () => {
  for (const [heading, index, resumable] of [
    ['Upload with Uppy', 0, false],
    ['Large files that resume', 0, true],
    ['Large files that resume', 2, false],
  ]) {
    const page = await opened({ resumable });
    const chosen = fileOf(3 * MIB, `uppy ${heading.length} ${index}.bin`);
    await page.evaluate(() => (window.uppy = new window.Uppy()));
    await run(page, code(heading, index).replace(/^import .*$/gm, ''));
    await page.setInputFiles('input', await onDisk(chosen));
    const outcome = await page.evaluate(async () => {
      const [file] = document.querySelector('input').files;
      window.uppy.addFile({ name: file.name, type: file.type, data: file });
      const { successful, failed } = await window.uppy.upload();
      return { failed: failed.map(({ error }) => String(error)), reply: successful[0]?.response };
    });
    assert.deepEqual(outcome.failed, []);
    const { data } = await there.call('GET', '/files', { query: { organization_id: '42', limit: 1 } });
    await stored(data.items[0].file_id, chosen);
    await page.close();
  }
});

test('tus-js-client', async () => {
  const page = await opened({ resumable: true });
  const chosen = fileOf(3 * MIB, 'tus.bin');
  await page.setInputFiles('input', await onDisk(chosen));
  await run(page, `(async () => { const url = await signedUrl(); ${code('Large files that resume', 1)} })()`);
  await stored((await result(page))[0], chosen);
  await page.close();
});

test('FilePond, with signed URLs and with a key', async () => {
  for (const [index, resumable] of [[0, true], [1, false]]) {
    const page = await opened({ resumable });
    const chosen = fileOf(2 * MIB, `filepond ${index}.bin`);
    await run(page, `window.pond = ${code('Upload with FilePond', index).replace(/^import .*$/gm, '').trim()}
      pond.on('processfile', (error, file) => console.log(error ? JSON.stringify(error) : file.serverId));`);
    await page.locator('input[type=file]').first().setInputFiles(await onDisk(chosen));
    await page.evaluate(() => window.pond.processFiles()).catch((error) => assert.fail(JSON.stringify(error)));
    await stored((await result(page))[0], chosen);
    await page.close();
  }
});

test('FilePond shows the reason of a refusal', async () => {
  const page = await opened();
  await run(page, `window.pond = ${code('Upload with FilePond', 1).replace('"42"', '"43"').trim()}
    pond.on('processfile', (error, file) => console.log(JSON.stringify(error)));`);
  await page.locator('input[type=file]').first().setInputFiles(await onDisk(fileOf(10, 'refused.bin')));
  assert.match((await result(page))[0], /organization/);
  await page.close();
});

test('Dropzone, with signed URLs and with a key', async () => {
  for (const index of [0, 1]) {
    const page = await opened();
    const chosen = [fileOf(2 * MIB, `dropzone ${index}.bin`), fileOf(100, `dropzone ${index} second.bin`)];
    await run(page, code('Upload with Dropzone', index).replace(/^import .*$/gm, ''));
    const names = await Promise.all(chosen.map(onDisk));
    await page.locator('input.dz-hidden-input').setInputFiles(names);
    const ids = await result(page, 2);
    const records = await Promise.all(
      ids.map(async (id) => (await there.call('GET', '/files/{file_id}/info', { path: { file_id: id } })).data),
    );
    for (const one of chosen) {
      await stored(records.find((record) => record.original_name === one.file.name)?.file_id, one);
    }
    await page.close();
  }
});

test('Dropzone shows the reason of a refusal', async () => {
  const page = await opened();
  const limited = await signedUploadUrl(there, { ...PLACE, max_size: 10 });
  const signs = `const signedUrl = async () => ${JSON.stringify(limited.url)};`;
  await run(page, signs + code('Upload with Dropzone', 0).replace(/^import .*$/gm, ''));
  await page.locator('input.dz-hidden-input').setInputFiles(await onDisk(fileOf(11, 'too large.bin')));
  assert.match((await result(page))[0], /10/);
  await page.close();
});

test('a form without a script', async () => {
  const page = await opened();
  const chosen = fileOf(1000, 'form.bin');
  const { url } = await signedUploadUrl(there, PLACE);
  const html = code('Upload with a form').replace(/action="[^"]*"/, `action="${url.replaceAll('&', '&amp;')}"`);
  await page.setContent(html);
  await page.setInputFiles('input', await onDisk(chosen));
  const [reply] = await Promise.all([page.waitForResponse((reply) => reply.url() === url), page.click('button')]);
  assert.equal(reply.status(), 201);
  await stored(JSON.parse(await page.locator('body').textContent()).file_id, chosen);
  await page.close();
});
