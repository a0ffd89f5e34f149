// Uploads as people do them: chosen, dropped, over a line that breaks, after a reload, and after the key was revoked.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rename, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { axe, client, expect, open, shot, until } from './harness.mjs';
import { Line } from './line.mjs';

const MIB = 1 << 20;
const organization = 'org/uploads';
const gallery = `${organization}/files?sub_system=gallery`;

/** Files on the disk, with the digests that must arrive. */
async function disk() {
  const dir = await mkdtemp(path.join(tmpdir(), 'console-uploads-'));
  const digests = new Map();
  const put = async (name, size) => {
    const bytes = randomBytes(size);
    digests.set(path.basename(name), createHash('sha256').update(bytes).digest('hex'));
    await mkdir(path.dirname(path.join(dir, name)), { recursive: true });
    await writeFile(path.join(dir, name), bytes);
    return path.join(dir, name);
  };
  return { dir, digests, put, end: () => rm(dir, { recursive: true, force: true }) };
}

/** The records of the organization, by name. */
async function records({ server, key }) {
  const { items } = await client(server, key).api('GET', '/files?organization_id=uploads&limit=1000');
  return new Map(items.map((item) => [item.original_name, item]));
}

async function arrived(story, digests, names) {
  const found = await records(story);
  for (const name of names) assert.equal(found.get(name)?.sha256, digests.get(name), name);
}

/** The reply to a part of an upload. After it, the line takes no more, so that the page stays as it is. */
const PART = /upload-offset: [1-9]/i;

/** A page whose only way to the server is a line that can break. */
async function behind(story, address, options = {}) {
  const line = await Line.to({ port: Number(new URL(story.gate.url).port) });
  const page = await open(story.browser, { url: line.url }, address, { key: story.key, ...options });
  page.setDefaultTimeout(60_000);
  return { line, page };
}

/** Ends a part. The page goes first, because the line breaks its requests. */
async function leave(page, line, files) {
  await page.close();
  expect();
  await line.end();
  await files.end();
}

const dock = (page) => page.getByRole('region', { name: 'Uploads' });
const row = (page, name) => page.getByRole('listitem').filter({ hasText: name });
const headed = (page, text) => dock(page).getByRole('heading', { name: text }).waitFor();

async function choose(page, files, button = 'Upload') {
  const asked = page.waitForEvent('filechooser');
  await page.getByRole('main').getByRole('button', { name: button, exact: true }).click();
  await (await asked).setFiles(files);
}

/** Drops files and folders of the disk, as a file manager does. */
async function drop(page, files) {
  const session = await page.context().newCDPSession(page);
  const data = { items: [], files, dragOperationsMask: 1 };
  // A page that has just been loaded may miss the first of them.
  await until('the sign of the drop', async () => {
    for (const type of ['dragEnter', 'dragOver']) {
      await session.send('Input.dispatchDragEvent', { type, x: 500, y: 500, data });
    }
    return (await page.locator('.drop-sign').count()) > 0;
  });
  await session.send('Input.dispatchDragEvent', { type: 'drop', x: 500, y: 500, data });
  await session.detach();
}

/** The bars never fall, and never go beyond what the server has acknowledged. */
async function watchBars(page) {
  await page.evaluate(() => {
    globalThis.barFaults = [];
    const seen = new Map();
    const look = () => {
      for (const bar of document.querySelectorAll('.upload-row [role="progressbar"]')) {
        const name = bar.getAttribute('aria-label');
        const now = Number(bar.getAttribute('aria-valuenow'));
        if (now < (seen.get(name) ?? 0)) globalThis.barFaults.push(`${name}: ${now} after ${seen.get(name)}`);
        seen.set(name, now);
      }
    };
    new MutationObserver(look).observe(document.body, { attributes: true, subtree: true, childList: true });
  });
  return async () => assert.deepEqual(await page.evaluate(() => globalThis.barFaults), []);
}

/** Three at a time over a line that breaks: the bars, pause, cancel, a refusal, a hidden character. */
async function overABrokenLine(story) {
  const files = await disk();
  const names = ['film.mov', 'scan.tif', 'notes.txt', 'song.flac', 'invoice_\u202egpj.exe'];
  const sizes = [24 * MIB, 14 * MIB, 4000, 12 * MIB, 3000];
  const paths = await Promise.all(names.map((name, at) => files.put(name, sizes[at])));
  paths.splice(3, 0, await files.put('huge.zip', 45 * MIB));
  expect(/net::ERR/);
  const { line, page } = await behind(story, gallery);
  await page.route('**/api/v1/me', async (route) => {
    const reply = await route.fetch();
    const body = await reply.json();
    await route.fulfill({ json: { ...body, limits: { ...body.limits, max_resumable_size: 40 * MIB } } });
  });
  await page.reload();
  const barsAreRight = await watchBars(page);

  line.holdAt = PART;
  await choose(page, paths);
  await headed(page, 'Uploading to gallery');
  await row(page, 'huge.zip').getByText('45.0 MiB is over the limit of 40.0 MiB for one file').waitFor();
  await row(page, 'invoice_').getByText('The name has a hidden character').waitFor();
  // Which of the first three gets through is a matter of luck.
  await page.locator('.upload-row.running').filter({ hasText: '8.0 MiB of' }).first().waitFor();
  assert.equal(await dock(page).getByRole('button', { name: /^Pause (?!all)/ }).count(), 3, 'three at a time');
  await until('sent bytes in a second tone', () => page.locator('.upload-row.running .bar').evaluateAll((bars) => {
    const [sent, done] = ['.bar-sent', '.bar-done'].map((part) =>
      bars.map((bar) => Number(/[\d.]+/.exec(bar.querySelector(part).style.transform)[0])),
    );
    return done.every((share, at) => share <= sent[at]) && done.some((share, at) => share < sent[at]);
  }), 60_000);
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    assert.deepEqual(await axe(page, `uploads, ${scheme}`), []);
    await shot(page, story.out, `uploads-${scheme}`);
  }

  await page.getByRole('button', { name: 'Pause scan.tif' }).click();
  await row(page, 'scan.tif').getByText('Paused').waitFor();
  for (let breaks = 0; breaks < 6; breaks += 1) line.budgets.push(breaks % 2 ? 1_200_000 : 2_400_000);
  line.most = Infinity;
  line.cut();
  await row(page, 'film.mov').getByText('Stored, 24.0 MiB').waitFor();
  await headed(page, '1 upload paused');
  await page.getByRole('button', { name: 'Continue scan.tif' }).click();
  await headed(page, '5 files stored');
  await arrived(story, files.digests, names);
  assert.ok(!(await records(story)).has('huge.zip'));
  await barsAreRight();
  await dock(page).getByRole('button', { name: 'Close the uploads' }).click();
  await dock(page).waitFor({ state: 'detached' });
  await leave(page, line, files);
}

/** A cancelled upload is gone at the server, after a question. */
async function cancelled(story) {
  const files = await disk();
  const { line, page } = await behind(story, gallery);
  line.holdAt = PART;
  await choose(page, [await files.put('cancelled.bin', 20 * MIB)]);
  await row(page, 'cancelled.bin').getByText('8.0 MiB of 20.0 MiB').waitFor();
  await page.getByRole('button', { name: 'Cancel cancelled.bin' }).click();
  expect(/net::ERR/);
  line.most = Infinity;
  line.cut();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel the upload' }).click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await dock(page).waitFor({ state: 'detached' });
  const { items } = await client(story.server, story.key).api('GET', '/uploads?organization_id=uploads');
  assert.ok(!items.some((item) => item.original_name === 'cancelled.bin' && item.state === 'open'));
  assert.ok(!(await records(story)).has('cancelled.bin'));
  await leave(page, line, files);
}

/** After a reload, the same file goes on where it was. */
async function afterAReload(story) {
  const files = await disk();
  const { line, page } = await behind(story, gallery);
  const file = await files.put('reload.bin', 20 * MIB);
  line.holdAt = PART;
  await choose(page, [file]);
  await row(page, 'reload.bin').getByText('8.0 MiB of 20.0 MiB').waitFor();
  expect(/net::ERR/);
  line.most = Infinity;
  page.removeAllListeners('dialog');
  page.once('dialog', (dialog) => void dialog.accept());
  await page.goto(`${line.url}/console/${organization}/files`);
  await page.getByRole('heading', { name: '1 upload not finished' }).waitFor();
  await row(page, 'reload.bin').getByText('8.0 MiB of 20.0 MiB are safe').waitFor();
  assert.deepEqual(await axe(page, 'unfinished uploads'), []);
  const kept = await page.evaluate(async () => {
    const database = await new Promise((resolve) => {
      indexedDB.open('filestore-console-uploads').onsuccess = (event) => resolve(event.target.result);
    });
    const all = await new Promise((resolve) => {
      database.transaction('uploads').objectStore('uploads').getAll().onsuccess = (event) => resolve(event.target.result);
    });
    return JSON.stringify(all);
  });
  assert.ok(kept.includes('reload.bin') && !kept.includes(story.key), 'names are kept, and no key');
  line.carried = 0;
  await drop(page, [file]);
  await headed(page, '1 file stored');
  await arrived(story, files.digests, ['reload.bin']);
  assert.ok(line.carried < 13 * MIB, `${line.carried} bytes`);
  await leave(page, line, files);
}

/** After a reload, an upload can be given up, and its file can go to another sub-system than before. */
async function givenUpAfterAReload(story) {
  const files = await disk();
  const { line, page } = await behind(story, gallery);
  const file = await files.put('given-up.bin', 20 * MIB);
  line.holdAt = PART;
  await choose(page, [file]);
  await row(page, 'given-up.bin').getByText('8.0 MiB of 20.0 MiB').waitFor();
  expect(/net::ERR/);
  line.most = Infinity;
  page.removeAllListeners('dialog');
  page.once('dialog', (dialog) => void dialog.accept());
  await page.goto(`${line.url}/console/${organization}/files?sub_system=elsewhere`);
  await page.getByText('No file fits the filter').waitFor();
  await page.getByRole('heading', { name: '1 upload not finished' }).waitFor();
  await drop(page, [file]);
  await headed(page, '1 file stored');
  assert.equal((await records(story)).get('given-up.bin').sub_system, 'elsewhere', 'the sub-system of the page');

  await dock(page).getByRole('button', { name: 'Close the uploads' }).click();
  await page.getByRole('heading', { name: '1 upload not finished' }).waitFor();
  await page.getByRole('button', { name: 'Give up given-up.bin' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Give up' }).click();
  await page.getByRole('heading', { name: '1 upload not finished' }).waitFor({ state: 'detached' });
  assert.equal(await page.getByLabel('API key').count(), 0, 'still signed in');
  const { items } = await client(story.server, story.key).api('GET', '/uploads?organization_id=uploads');
  assert.ok(!items.some((item) => item.original_name === 'given-up.bin' && item.state === 'open'));
  await leave(page, line, files);
}

/** Files of two folders with one name, size and time are two files. What cannot be read is shown as failed. */
async function namesakesAndUnread(story) {
  const files = await disk();
  for (const folder of ['one', 'two']) {
    const name = await files.put(`twins/${folder}/twin.bin`, 2 * MIB);
    await utimes(name, 1_700_000_000, 1_700_000_000);
  }
  await files.put('twins/locked.txt', 10);
  const { line, page } = await behind(story, `${organization}/files?sub_system=twins`);
  await page.getByText('No file fits the filter').waitFor();
  await page.evaluate(() => {
    const spoil = (event) => {
      const reader = Object.getPrototypeOf(event.dataTransfer.items[0].webkitGetAsEntry().createReader());
      const { readEntries } = reader;
      reader.readEntries = function (good, bad) {
        const give = (entries) => {
          const locked = entries.find((entry) => entry.name === 'locked.txt');
          if (locked) locked.file = (_, refuse) => refuse(new DOMException('no permission', 'NotReadableError'));
          good(entries);
        };
        readEntries.call(this, give, bad);
      };
    };
    addEventListener('drop', spoil, { capture: true, once: true });
  });
  await drop(page, [path.join(files.dir, 'twins')]);
  await headed(page, '2 files stored');
  await row(page, 'twins/locked.txt').getByText('It cannot be read').waitFor();
  await page.getByText('1 could not be read.').first().waitFor();
  const { items } = await client(story.server, story.key).api('GET', '/files?organization_id=uploads&sub_system=twins');
  assert.equal(new Set(items.map((item) => item.sha256)).size, 2);
  await leave(page, line, files);
}

/** A file that was moved after it was chosen fails, and does not wait for a connection. It is shown after signing in again. */
async function movedFiles(story) {
  const files = await disk();
  const { api } = client(story.server, story.key);
  const make = (name) => api('POST', '/admin/keys', { name, organizations: ['uploads'], scopes: ['read', 'write'] });
  const [first, second] = [await make('before'), await make('after')];
  const { line, page } = await behind(story, gallery, { key: first.key });
  const file = await files.put('moved.bin', 3000);
  expect(/net::ERR/, /status of 401/);
  await page.getByRole('main').getByRole('button', { name: 'Upload', exact: true }).waitFor();
  const sent = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/files/upload'));
  await page.route('**/files/upload', (route) => route.abort('connectionfailed'));
  await choose(page, [file]);
  await sent;
  await rename(file, `${file}.moved`);
  await page.unroute('**/files/upload');
  await row(page, 'moved.bin').getByText('It cannot be read').waitFor();

  await api('POST', `/admin/keys/${first.id}/revoke`, {});
  await page.getByLabel('API key').waitFor();
  assert.ok(!(await page.locator('body').textContent()).includes('moved.bin'));
  await page.getByLabel('API key').fill(second.key);
  await page.keyboard.press('Enter');
  await row(page, 'moved.bin').getByText('It cannot be read').waitFor();
  await leave(page, line, files);
}

/** A dropped folder asks for the sub-system once. A batch is stored as a whole or not at all. */
async function foldersAndBatches(story) {
  const files = await disk();
  await files.put('trip/one.txt', 100);
  await files.put('trip/deep/er/two.txt', 200);
  const { page, line } = await behind(story, `${organization}/files`);
  await page.getByRole('main').getByRole('button', { name: 'Upload' }).waitFor();
  await drop(page, [path.join(files.dir, 'trip')]);
  const dialog = page.getByRole('dialog', { name: 'Upload 2 files' });
  await dialog.getByLabel('Sub-system').fill('trips');
  assert.deepEqual(await axe(page, 'where files go'), []);
  await page.keyboard.press('Enter');
  await headed(page, '2 files stored');
  await arrived(story, files.digests, ['one.txt', 'two.txt']);
  assert.equal((await records(story)).get('two.txt').sub_system, 'trips');

  await page.goto(`${line.url}/console/${organization}/uploads`);
  await page.getByText('Nothing is being uploaded').waitFor();
  for (const [names, outcome] of [[['a.txt', 'b.txt'], 'Stored'], [['c.txt', 'bad\u0001.txt'], 'refused']]) {
    await choose(page, await Promise.all(names.map((name) => files.put(name, 50))));
    const question = page.getByRole('dialog', { name: 'Upload 2 files' });
    await question.getByLabel('All or nothing').check();
    expect(/status of 400/);
    await question.getByRole('button', { name: 'Upload' }).click();
    const state = page.locator(outcome === 'Stored' ? '.upload-row.stored' : '.upload-row.failed');
    await state.getByText('2 files, all or nothing').waitFor();
  }
  await page.getByText('bad [hidden character U+0001] .txt: Original_name has a control character').waitFor();
  const found = await records(story);
  assert.deepEqual(['a.txt', 'b.txt', 'c.txt'].map((name) => found.has(name)), [true, true, false]);
  assert.deepEqual(await axe(page, 'the page of uploads'), []);
  await shot(page, story.out, 'uploads-page');
  await leave(page, line, files);
}

/** The key is revoked in the middle. After signing in with another, the upload goes on. */
async function afterSigningInAgain(story) {
  const files = await disk();
  const { api } = client(story.server, story.key);
  const make = (name) => api('POST', '/admin/keys', { name, organizations: ['uploads'], scopes: ['read', 'write'] });
  const [first, second] = [await make('first'), await make('second')];
  const { line, page } = await behind(story, gallery, { key: first.key });
  line.holdAt = PART;
  await choose(page, [await files.put('two-keys.bin', 20 * MIB)]);
  await row(page, 'two-keys.bin').getByText('8.0 MiB of 20.0 MiB').waitFor();
  expect(/net::ERR/, /status of 401/);
  await api('POST', `/admin/keys/${first.id}/revoke`, {});
  line.most = Infinity;
  line.cut();
  await page.getByLabel('API key').waitFor();
  assert.ok(!(await page.locator('body').textContent()).includes('two-keys.bin'));
  await page.getByLabel('API key').fill(second.key);
  await page.keyboard.press('Enter');
  await headed(page, '1 file stored');
  await arrived(story, files.digests, ['two-keys.bin']);
  await leave(page, line, files);
}

/** Ten thousand files at once do not stop the page. */
async function tenThousand(story) {
  const page = await open(story.browser, story.gate, gallery, { key: story.key });
  await page.route('**/api/v1/files/upload', () => undefined); // none of them is answered
  await page.getByRole('button', { name: 'Upload', exact: true }).waitFor();
  const longest = await page.evaluate(async () => {
    const transfer = new DataTransfer();
    for (let at = 0; at < 10_000; at += 1) transfer.items.add(new File([`${at}`], `many-${at}.txt`));
    let longest = 0;
    let before = performance.now();
    const beat = setInterval(() => {
      longest = Math.max(longest, performance.now() - before);
      before = performance.now();
    }, 5);
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    await new Promise((resolve) => setTimeout(resolve, 3000));
    clearInterval(beat);
    return longest;
  });
  await dock(page).getByText('0 of 10,000 files').waitFor();
  console.error(`console: the page was silent for ${Math.round(longest)} ms at most, with 10,000 files dropped`);
  assert.ok((await page.locator('.upload-row').count()) <= 60, 'few rows are drawn');
  page.removeAllListeners('dialog');
  page.on('dialog', (dialog) => void dialog.accept());
}

/** A phone has a strip instead of the dock, and the page of uploads. */
async function onAPhone(story) {
  const files = await disk();
  const { line, page } = await behind(story, `${organization}/uploads`, { width: 390, height: 844, touch: true });
  line.most = 2_000_000;
  await choose(page, [await files.put('phone.bin', 20 * MIB)]);
  await page.getByRole('dialog').getByLabel('Sub-system').fill('phone');
  await page.getByRole('dialog').getByRole('button', { name: 'Upload' }).click();
  await row(page, 'phone.bin').getByText('of 20.0 MiB').waitFor();
  assert.deepEqual(await axe(page, 'uploads on a phone'), []);
  await shot(page, story.out, 'uploads-phone');
  const narrow = await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth);
  assert.ok(narrow, 'nothing is wider than the phone');
  expect(/net::ERR/);
  line.most = Infinity;
  line.cut();
  await until('the file is there', async () => (await records(story)).has('phone.bin'), 60_000);
  await leave(page, line, files);
}

const PARTS = {
  overABrokenLine, cancelled, afterAReload, givenUpAfterAReload, namesakesAndUnread, movedFiles, foldersAndBatches,
  afterSigningInAgain, tenThousand, onAPhone,
};

/** All of them, or those that FILESTORE_CONSOLE_UPLOADS names. Needs the key of the story. */
export async function uploads(story) {
  await client(story.server, story.key).upload('seed.txt', 'x', { organization: 'uploads' });
  const only = process.env.FILESTORE_CONSOLE_UPLOADS?.split(',');
  for (const [name, part] of Object.entries(PARTS)) {
    if (only && !only.includes(name)) continue;
    const start = Date.now();
    await part(story);
    console.error(`console: uploads, ${name}, ${((Date.now() - start) / 1000).toFixed(1)} s`);
  }
}
