// The parts of the story, in the order in which they run. Each opens its own pages.
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import zlib from 'node:zlib';
import { axe, client, expect, open, shot, until } from './harness.mjs';
import * as administration from './administration.mjs';
import { idOf, ROWS } from './gate.mjs';
import { pictures } from './kept.mjs';
import { paint } from './paint.mjs';
import { player } from './player.mjs';
import { uploads } from './uploads.mjs';

const NAMES = [
  'saimaa-dusk.jpg', 'rowing-boats-derwent.jpg', 'dandelion-macro-014.jpg', 'shoreline-drone-0192.jpg', 'kite-over-amrum.jpg',
  'maple-october.jpg', 'facets-ultraviolet.jpg', 'dune-grass-sylt.jpg', 'jetty-in-fog.jpg', 'forest-path-koli.jpg',
  'rocket-picnic-spread.jpg', 'autumn-tree-poster.jpg', 'copper-wave-loop.jpg', 'grass-after-rain.jpg', 'lake-bench-evening.jpg',
  'moss-from-above.jpg', 'cups-archive-1998.jpg', 'boards-lime.jpg', 'leaf-macro.jpg', 'harbour-night.jpg',
];
const NAUGHTY = [
  "<script>globalThis.ran=1;document.title='ran'</script>", '"><img src=x onerror=globalThis.ran=1>', "javascript:globalThis.ran=1//.js",
  'invoice_\u202egpj.exe', '\u2066left\u2069.txt', ' end .txt ', 'é'.repeat(255), 'مرحبا بالعالم.pdf', '😀👩‍👩‍👧‍👦.png', '${7*7}{{7*7}}', 'zero\u200bwidth.doc',
  '../../etc/passwd', 'con.txt', '%00%2e%2e', "Robert'); DROP TABLE files;--", 'A\u0301\u0301\u0301\u0301\u0301.txt', 'ＡＢＣ.txt', '-rf',
];

const cells = (page) => page.locator('[role=grid] [data-id]');
const cell = (page, name) => page.locator('[role=grid] [data-id]', { hasText: name }).first();
const toast = (page, text) => page.locator('.toast', { hasText: text });
const organization = 'org/42';

/** The open, empty server: its first file, its first key. Later parts use the key. */
async function start(story) {
  const { browser, gate, out } = story;
  const page = await open(browser, gate, '');
  await page.getByRole('heading', { name: 'Store the first file' }).waitFor();
  await shot(page, out, 'first-run');
  assert.deepEqual(await axe(page, 'first run'), []);

  const ask = (key, route) => fetch(`${story.server}/api/v1${route}`, { headers: key ? { Authorization: `Bearer ${key}` } : {} });
  await administration.firstKey({ page, root: `${gate.url}/console/`, ask });
  story.key = await page.evaluate(() => sessionStorage.getItem('filestore-key'));
  const leaks = await page.evaluate((key) => JSON.stringify(localStorage).includes(key) || document.cookie.includes(key) || location.href.includes(key), story.key);
  assert.equal(leaks, false, 'the key is in the storage of the browser');
  await page.context().close();
}

/** Fills the store: painted pictures, documents, and names that are hard to show. */
async function fill({ browser, server, key, gate }) {
  const { upload, api } = client(server, key);
  const page = await (await browser.newContext()).newPage();
  await page.goto('about:blank');
  for (const [at, name] of NAMES.entries()) {
    const big = at < 2 || at === 7;
    const bytes = await paint(page, at, big ? { width: 2560, height: 1600 } : { width: 1280, height: 800 });
    await upload(name, bytes, { subSystem: at % 6 === 5 ? 'press' : 'gallery', metadata: { campaign: 'winter-27', credit: 'I. Virtanen', released: at % 2 === 0 } });
  }
  for (let at = 0; at < 30; at += 1) await upload(`proof-${String(at).padStart(2, '0')}.jpg`, await paint(page, 40 + at, { width: 400, height: 300 }));
  await upload('Charter contract Lüdde.pdf', '%PDF-1.4\nhello', { subSystem: 'contracts' });
  await upload('numbers.csv', Array.from({ length: 4000 }, (_, at) => `${at},${at * at}`).join('\n'), { subSystem: 'contracts' });
  await upload('notes.html', "<script>globalThis.ran=1;document.title='ran'</script>", { subSystem: 'contracts', type: 'text/html' });
  await upload('settings.json', '{"a": [1, 2, 3]}', { subSystem: 'contracts' });
  await upload('temporary.jpg', await paint(page, 99), { temp: true });
  for (const name of NAUGHTY) await upload(name, name, { organization: 'naughty', subSystem: 'inbox', metadata: { [name.slice(0, 40)]: name.slice(0, 200) } });
  await api('POST', '/organization-storage-bindings/create', {
    organizationId: 42, organizationName: 'Atelier Nord', storageProvider: 'LOCAL', syncEnabled: false,
  });
  for (const at of [1, 2, 3]) await upload(`note-${at}.txt`, `note ${at}`, { organization: '7', subSystem: 'notes' });
  await upload('order-1.txt', 'order 1', { organization: '9', subSystem: 'erp' });
  const trash = await api('GET', '/files?organization_id=42&name_prefix=proof-2');
  await api('POST', '/files/delete', { ids: trash.items.slice(0, 6).map((one) => one.file_id) });
  await page.context().close();
  void gate;
}

/** A key that is cut off, a wrong key, the right key. */
async function signIn({ browser, gate, key, out }) {
  expect(/401/);
  const page = await open(browser, gate, `${organization}/files`);
  const field = page.getByLabel('API key');
  await field.waitFor();
  await shot(page, out, 'sign-in');
  assert.deepEqual(await axe(page, 'sign-in'), []);
  assert.equal(await page.locator('[data-id]').count(), 0);

  await field.fill(key.slice(0, 60));
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('not a whole key').waitFor();
  await field.fill(`${key.slice(0, 70)}${'0'.repeat(6)}`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText('not a whole key').waitFor();
  await field.fill(key);
  await field.press('Enter');
  await cells(page).first().waitFor();
  expect();
  assert.match(page.url(), /org\/42\/files$/, 'the address stays what it was');

  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  assert.equal(await page.evaluate(() => sessionStorage.getItem('filestore-key')), null);
}

/** Grid and list, find, filters, keyboard, selection, trash with undo. */
async function files({ browser, gate, key, out, server }) {
  const { api } = client(server, key);
  const live = async () => {
    const usage = await api('GET', '/organizations/42/usage');
    return usage.files - usage.deleted.files;
  };
  const page = await open(browser, gate, `${organization}/files`, { key });
  await cells(page).first().waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.thumb canvas:not(.blank)').length >= 6);
  await page.getByText(`${await live()} files`).first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll('.cell .thumb.picture canvas')].every((canvas) => canvas.width >= 200));
  await shot(page, out, 'files-grid');

  // Keyboard: the first cell, three to the right selected, one row down by Shift.
  await page.keyboard.press('/');
  await page.waitForFunction(() => document.activeElement?.matches('input[type=search]'));
  await page.keyboard.press('Tab');
  await cells(page).first().focus();
  await page.keyboard.press('Space');
  await page.keyboard.press('Shift+ArrowRight');
  await page.keyboard.press('Shift+ArrowRight');
  await page.getByText('3 selected').waitFor();
  await shot(page, out, 'files-selected');
  assert.equal(await page.locator('[role=gridcell][aria-selected=true]').count(), 3);
  await page.keyboard.press('Escape');
  await page.getByText('3 selected').waitFor({ state: 'detached' });

  // Find by a part of a name in any case, then by id.
  const before = await live();
  await page.keyboard.press('/');
  await page.keyboard.type('ROOF-1');
  await page.getByText('10 files').waitFor();
  assert.match(page.url(), /name_contains=ROOF-1/);
  await page.getByRole('searchbox').fill('');
  await page.waitForURL((url) => !url.search.includes('name_contains'));
  await cell(page, 'saimaa-dusk').or(cells(page).first()).first().waitFor();
  const [one] = (await api('GET', '/files?organization_id=42&name_prefix=kite')).items;
  await page.getByRole('searchbox').fill(one.file_id.toLowerCase());
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'kite-over-amrum.jpg', level: 1 }).waitFor();
  await page.goBack();

  // A sub-system, a filter by type, and by metadata.
  await page.getByRole('radio', { name: /contracts/ }).check({ force: true });
  await page.waitForURL(/sub_system=contracts/);
  await cell(page, 'numbers.csv').waitFor();
  await page.getByRole('button', { name: 'Filter', exact: true }).click();
  await page.getByLabel('Type (optional)').fill('text/csv');
  await page.getByRole('button', { name: 'Show' }).click();
  await page.getByText('1 file', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Remove the filter Type' }).click();
  await page.getByRole('radio', { name: 'All', exact: true }).check({ force: true });

  // The list: select two by mouse, a range by Shift, move to the trash, take it back with z.
  await page.getByRole('radio', { name: 'List' }).check({ force: true });
  await page.getByRole('searchbox').fill('proof-0');
  await page.getByText('10 files').waitFor();
  await shot(page, out, 'files-list');
  await cells(page).nth(1).locator('.tick').click();
  await cells(page).nth(4).locator('.tick').click({ modifiers: ['Shift'] });
  await page.getByText('4 selected').waitFor();
  await page.getByRole('button', { name: 'Move to trash' }).click();
  await toast(page, '4 files moved to the trash').waitFor();
  await until('4 files less', async () => (await live()) === before - 4);
  await until('6 rows', async () => (await cells(page).count()) === 6);
  await page.keyboard.press('z');
  await toast(page, '4 files restored').waitFor();
  await until('the same number of files', async () => (await live()) === before);
  await until('10 rows', async () => (await cells(page).count()) === 10);

  // What others do comes into the found files only if its name fits.
  const elsewhere = client(server, key);
  await api('POST', '/files/delete', { ids: [one.file_id] });
  await api('POST', '/files/restore', { ids: [one.file_id] });
  await elsewhere.upload('Another PROOF-00.txt', 'hello');
  await cell(page, 'Another PROOF-00.txt').waitFor();
  await page.getByText('11 files').waitFor();
  assert.equal(await cell(page, 'kite').count(), 0);

  // A file that another program uploads appears by itself at the top.
  await page.getByRole('searchbox').fill('');
  await page.getByRole('radio', { name: 'Grid' }).check({ force: true });
  await cells(page).first().waitFor();
  await elsewhere.upload('from-elsewhere.txt', 'hello');
  await cell(page, 'from-elsewhere.txt').waitFor();
  await page.getByText(`${before + 2} files`).first().waitFor();
}

/** One file: rename and undo, metadata, link, variants, replace, walk, keep, trash. */
async function file({ browser, gate, key, out, server }) {
  const { api } = client(server, key);
  const [record] = (await api('GET', '/files?organization_id=42&name_prefix=rowing')).items;
  const page = await open(browser, gate, `${organization}/files`, { key });
  await cell(page, 'rowing-boats').scrollIntoViewIfNeeded().catch(() => undefined);
  await page.getByRole('searchbox').fill('rowing');
  await cell(page, 'rowing-boats').click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('.preview-picture img').waitFor();
  await page.waitForFunction(() => document.querySelectorAll('.variant img').length === 7);
  await page.getByText('Uploaded').waitFor();
  await shot(page, out, 'file');

  await page.getByRole('button', { name: 'Change name and type' }).click();
  await page.getByLabel('Name', { exact: true }).fill('rowing-boats-at-dusk.jpg');
  await page.getByRole('button', { name: 'Save' }).click();
  await toast(page, 'Renamed').waitFor();
  assert.equal((await api('GET', `/files/${record.file_id}/info`)).original_name, 'rowing-boats-at-dusk.jpg');
  await toast(page, 'Renamed').getByRole('button', { name: 'Undo' }).click();
  await until('the name from before', async () => (await api('GET', `/files/${record.file_id}/info`)).original_name === record.original_name);

  // Somebody else renames while the dialog is open: nothing is overwritten.
  await page.getByRole('heading', { name: record.original_name, level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Change name and type' }).click();
  await page.getByLabel('Name', { exact: true }).fill('mine.jpg');
  await api('PATCH', `/files/${record.file_id}`, { original_name: 'theirs.jpg' });
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText('Somebody changed it meanwhile').waitFor();
  assert.equal((await api('GET', `/files/${record.file_id}/info`)).original_name, 'theirs.jpg');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await api('PATCH', `/files/${record.file_id}`, { original_name: record.original_name });
  await page.getByRole('heading', { name: record.original_name, level: 1 }).waitFor();

  await page.getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('button', { name: 'Add' }).click();
  await page.getByLabel('Key 4').fill('place');
  await page.getByLabel('Value of place').fill('Derwent');
  await page.getByRole('button', { name: 'Save' }).click();
  await toast(page, 'Metadata changed').waitFor();
  assert.deepEqual((await api('GET', `/files/${record.file_id}/info`)).metadata, { campaign: 'winter-27', credit: 'I. Virtanen', place: 'Derwent', released: false });

  await page.getByRole('button', { name: 'Copy link' }).click();
  await page.getByLabel('1 hour').check({ force: true });
  await page.getByRole('dialog').getByRole('button', { name: 'Make link' }).click();
  const link = await page.getByLabel('Link', { exact: true }).inputValue();
  const reply = await fetch(link);
  assert.equal(reply.status, 200, link);
  assert.equal((await reply.arrayBuffer()).byteLength, record.file_size);
  await page.getByRole('button', { name: 'Done' }).click();

  const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
  assert.equal(download.suggestedFilename(), record.original_name);

  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Replace' }).click();
  const bytes = Buffer.from(await (await fetch(link)).arrayBuffer());
  await (await chooser).setFiles({ name: 'new.jpg', mimeType: 'image/jpeg', buffer: Buffer.concat([bytes, Buffer.from([0])]) });
  await page.getByRole('dialog').getByRole('button', { name: 'Replace', exact: true }).click();
  await toast(page, 'Replaced, version 2').waitFor();
  await page.getByText('Replaced, version 2').first().waitFor();

  // Walk along the list, and back to it.
  await page.getByRole('link', { name: 'Back to the files' }).click();
  await page.getByRole('searchbox').fill('proof-1');
  await page.getByText('10 files').waitFor();
  await cells(page).first().click();
  await page.getByText('1 of 10').waitFor();
  await page.keyboard.press(']');
  await page.getByText('2 of 10').waitFor();
  await page.keyboard.press('[');
  await page.getByText('1 of 10').waitFor();

  // Text is text, and a page does not run.
  const [html] = (await api('GET', '/files?organization_id=42&name_prefix=notes.html')).items;
  await page.goto(`${gate.url}/console/${organization}/files/${html.file_id}`);
  await page.getByLabel('Text of the file').getByText('globalThis.ran').waitFor();
  assert.equal(await page.evaluate(() => globalThis.ran), undefined);

  const [temp] = (await api('GET', '/files?organization_id=42&name_prefix=temporary')).items;
  await page.goto(`${gate.url}/console/${organization}/files/${temp.file_id}`);
  await page.getByRole('button', { name: 'Keep it' }).click();
  await toast(page, 'Kept for good').waitFor();
  assert.equal((await api('GET', `/files/${temp.file_id}/info`)).status, 'READY');

  expect(/404/);
  const explained = page.waitForResponse(/explain$/);
  await page.goto(`${gate.url}/console/${organization}/files/01M80000000000000000000000`);
  await page.getByText('Not there, or not yours').waitFor();
  await (await explained).finished();
  expect();
}

/** Time left, one restored, the rest restored together. */
async function trash({ browser, gate, key, out, server }) {
  const { api } = client(server, key);
  const page = await open(browser, gate, `${organization}/trash`, { key });
  await cells(page).first().waitFor();
  const all = (await api('GET', '/organizations/42/usage')).deleted.files;
  assert.equal(await cells(page).count(), all);
  await page.getByText('6 days 23 h').first().waitFor();
  await shot(page, out, 'trash');
  await cells(page).first().getByRole('button', { name: 'Restore' }).click();
  await toast(page, '1 file restored').waitFor();
  await until('one row less', async () => (await cells(page).count()) === all - 1);
  await cells(page).first().focus();
  await page.keyboard.press('Control+a');
  await page.getByText(`${all - 1} selected`).waitFor();
  await page.getByRole('region', { name: 'Selected files' }).getByRole('button', { name: 'Restore' }).click();
  await toast(page, `${all - 1} files restored`).waitFor();
  await page.getByText('The trash is empty').waitFor();
  const { items } = await api('GET', '/files?organization_id=42&name_prefix=proof-2');
  await api('POST', '/files/delete', { ids: items.slice(0, 3).map((one) => one.file_id) });
  await until('three rows by themselves', async () => (await cells(page).count()) === 3);
}

/** Thousands at once: a range over pages that come and go, to the trash by 1,000 a request, and back. */
async function bulk({ browser, gate, key, server, asked }) {
  const total = 2500;
  const { api } = client(server, key);
  for (let batch = 0; batch < total / 100; batch += 1) {
    const form = new FormData();
    form.set('organization_id', 'bulk');
    form.set('sub_system', 'import');
    for (let at = 0; at < 100; at += 1) form.append(`items[${at}].file`, new Blob([`${batch} ${at}`]), `row-${batch}-${at}.txt`);
    await api('POST', '/files/batch', form);
  }
  const page = await open(browser, gate, 'org/bulk/files?view=list', { key });
  await cells(page).first().waitFor();
  await cells(page).first().focus();
  await page.keyboard.press('Space');
  for (let turn = 0; (await page.locator('[role=grid]').getAttribute('aria-rowcount')) === '-1'; turn += 1) {
    assert.ok(turn < 200, 'the end is not reached');
    await page.keyboard.press('Control+End');
    await page.waitForTimeout(50);
  }
  await page.keyboard.press('Control+Home');
  await page.keyboard.press('Shift+Control+End');
  await page.getByText('2,500 selected').waitFor();
  asked.length = 0;
  await page.keyboard.press('Delete');
  await toast(page, '2,500 files moved to the trash').waitFor();
  assert.equal(asked.filter((one) => one === 'POST /api/v1/files/delete').length, 3);
  assert.equal((await api('GET', '/organizations/bulk/usage')).deleted.files, total);
  await page.keyboard.press('z');
  await toast(page, '2,500 files restored').waitFor();
  assert.equal((await api('GET', '/organizations/bulk/usage')).deleted.files, 0);
  await cells(page).first().waitFor();
  await page.getByText('2,500 files', { exact: false }).first().waitFor();
}

/** Names that are scripts, or that reorder what is beside them: shown, and nothing else. */
async function naughty({ browser, gate, key, server }) {
  const { api } = client(server, key);
  const { items } = await api('GET', '/files?organization_id=naughty&limit=100');
  assert.equal(items.length, NAUGHTY.length);
  for (const view of ['grid', 'list']) {
    const page = await open(browser, gate, `org/naughty/files?view=${view}`, { key });
    await cells(page).first().waitFor();
    assert.equal(await cells(page).count(), NAUGHTY.length);
    assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    assert.ok((await page.locator('.pill[data-label=RLO]').count()) > 0, 'the override of direction is made visible');
    await page.context().close();
  }
  const page = await open(browser, gate, 'org/naughty/files', { key });
  await cells(page).first().waitFor();
  for (const item of items) {
    await page.goto(`${gate.url}/console/org/naughty/files/${item.file_id}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByRole('heading', { name: 'Metadata' }).waitFor();
    assert.equal(await page.evaluate(() => globalThis.ran), undefined, item.original_name);
    assert.equal(await page.evaluate(() => document.title === 'ran'), false);
    assert.ok((await page.evaluate(() => sessionStorage.getItem('filestore-key'))) === key, 'the key stays');
  }
}

/** The line is cut: a bar says since when, and the page goes on by itself. */
async function offline({ browser, gate, key }) {
  expect(/ERR_INTERNET_DISCONNECTED|ERR_NETWORK|Failed to load/);
  const page = await open(browser, gate, `${organization}/files`, { key });
  await cells(page).first().waitFor();
  const shown = await cells(page).count();
  await page.context().setOffline(true);
  await page.getByRole('searchbox').fill('proof-0');
  await page.getByText('No connection since').waitFor();
  await page.getByRole('searchbox').fill('');
  await page.context().setOffline(false);
  await page.getByText('No connection since').waitFor({ state: 'detached', timeout: 40_000 });
  await cells(page).first().waitFor();
  assert.ok((await cells(page).count()) >= Math.min(shown, 6));
  expect();
}

/** A key is revoked in the middle: the page signs out, and keeps nothing of the data. */
async function revoked({ browser, gate, key, server, out }) {
  expect(/401/);
  const { api } = client(server, key);
  const other = await api('POST', '/admin/keys', { name: 'guest', organizations: ['42'], scopes: ['read'] });
  const page = await open(browser, gate, `${organization}/files`, { key: other.key });
  await cells(page).first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Upload' }).count(), 0, 'what the key may not do is absent');
  assert.equal(await page.getByRole('link', { name: 'Keys' }).count(), 0);
  await api('POST', `/admin/keys/${other.id}/revoke`, {});
  await page.getByRole('searchbox').fill('proof').catch(() => undefined);
  await page.getByText('You were signed out').waitFor();
  await shot(page, out, 'signed-out');
  const left = await page.evaluate(() => ({ rows: document.querySelectorAll('[data-id]').length, text: document.body.textContent, key: sessionStorage.getItem('filestore-key') }));
  assert.equal(left.rows, 0);
  assert.equal(left.key, null);
  assert.ok(!/\.jpg/.test(left.text), 'a name of a file is left in the document');
  expect();
}

/** Every page, in light and dark, wide and on a phone: axe finds nothing. */
async function accessible({ browser, gate, key, out, server }) {
  const { api } = client(server, key);
  const [picture] = (await api('GET', '/files?organization_id=42&name_prefix=saimaa')).items;
  const [text] = (await api('GET', '/files?organization_id=42&name_prefix=numbers')).items;
  const pages = {
    files: `${organization}/files?view=grid`, 'files-list': `${organization}/files?view=list`, nothing: `${organization}/files?name_contains=zzz`,
    file: `${organization}/files/${picture.file_id}`, text: `${organization}/files/${text.file_id}`, trash: `${organization}/trash`,
    storage: `${organization}/storage`, activity: `${organization}/activity`, overview: 'store/overview', organizations: 'store/organizations',
    providers: 'store/providers', provider: 'store/providers/LOCAL', work: 'store/work', checks: 'store/checks', backups: 'store/backups',
    keys: 'store/keys', webhooks: 'store/webhooks', about: 'about',
  };
  const found = [];
  await Promise.all([
    [1440, 900, 'light'], [1440, 900, 'dark'], [390, 844, 'light'], [390, 844, 'dark'],
  ].map(async ([width, height, scheme]) => {
    const page = await open(browser, gate, 'about', { key, width, height, scheme, touch: width < 720 });
    for (const [name, address] of Object.entries(pages)) {
      await page.goto(`${gate.url}/console/${address}`);
      await page.locator('h1').first().waitFor({ state: 'attached' });
      await page.waitForLoadState('networkidle', { timeout: 1500 }).catch(() => undefined);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.push(`${name} at ${width}: ${wide} px wider than the page`);
      found.push(...(await axe(page, `${name} at ${width}, ${scheme}`)));
      await shot(page, out, `${name}-${width < 720 ? 'phone' : 'wide'}-${scheme}`);
    }
  }));
  assert.equal(found.length, 0, [...new Set(found)].join('\n'));
}

/** A million files: scrolled to the end by cursor, with few records, few elements and little memory at any time. */
async function million({ browser, gate, key, asked }) {
  const page = await open(browser, gate, 'org/million/files?view=list', { key });
  const debug = await page.context().newCDPSession(page);
  const heap = async () => {
    await debug.send('HeapProfiler.collectGarbage');
    return (await debug.send('Runtime.getHeapUsage')).usedSize / 2 ** 20;
  };
  const start = Date.now();
  asked.length = 0;
  await cells(page).first().waitFor();
  const first = await heap();
  const longest = await page.evaluate(async (rows) => {
    let slowest = 0;
    let before = performance.now();
    const scroller = document.querySelector('.scroller');
    const list = document.querySelector('[role=grid]');
    for (let quiet = 0; list.getAttribute('aria-rowcount') === '-1' && quiet < 400; ) {
      const height = scroller.scrollHeight;
      scroller.scrollTop = height;
      await new Promise((go) => setTimeout(go, 0));
      const now = performance.now();
      slowest = Math.max(slowest, now - before);
      before = now;
      quiet = scroller.scrollHeight === height && !list.hasAttribute('aria-busy') ? quiet + 1 : 0;
    }
    void rows;
    return slowest;
  }, ROWS);
  await until('the number of rows', async () => Number(await page.locator('[role=grid]').getAttribute('aria-rowcount')) === ROWS + 1);
  await page.evaluate(() => {
    const scroller = document.querySelector('.scroller');
    scroller.scrollTop = scroller.scrollHeight;
  });
  const last = page.locator(`[data-id="${idOf(ROWS - 1)}"]`);
  await last.waitFor();
  const atEnd = await heap();
  const elements = await page.evaluate(() => document.querySelectorAll('*').length);
  console.error(`console: ${ROWS} rows in ${((Date.now() - start) / 1000).toFixed(0)} s, ${asked.filter((one) => one === 'GET /api/v1/files').length} requests, heap ${first.toFixed(0)} and ${atEnd.toFixed(0)} MiB, ${elements} elements, longest pause ${longest.toFixed(0)} ms`);
  assert.ok(atEnd <= 150, `${atEnd} MiB of memory`);
  assert.ok(elements <= 2500, `${elements} elements`);

  // By keyboard to the top, and the rows are in order, each once.
  await last.focus();
  await page.keyboard.press('Control+Home');
  await page.locator(`[data-id="${idOf(0)}"]`).waitFor();
  await page.evaluate(() => (document.querySelector('.scroller').scrollTop = 0));
  const seen = [];
  for (let at = 0; at < 40; at += 1) {
    const ids = await page.evaluate(() => [...document.querySelectorAll('.line.row[data-id]')].map((row) => [Number(row.getAttribute('aria-rowindex')), row.dataset.id]));
    for (const [index, id] of ids) assert.equal(id, idOf(index - 2), `row ${index}`);
    seen.push(...ids.map(([, id]) => id));
    await page.evaluate(() => (document.querySelector('.scroller').scrollTop += 600));
    // Until the first row in view is drawn. A row of a list is 42 pixels high.
    await page.waitForFunction(() => {
      const index = Math.ceil(document.querySelector('.scroller').scrollTop / 42) + 2;
      return document.querySelector(`.line.row[data-id][aria-rowindex="${index}"]`);
    });
  }
  assert.ok(new Set(seen).size > 400);
}

/** The picture for the documentation, at most 120 KiB, made of this store. */
async function picture({ browser, gate, key, out }) {
  const page = await open(browser, gate, `${organization}/files?view=grid&metadata.campaign=winter-27`, { key });
  await cells(page).first().waitFor();
  await page.waitForFunction(() => [...document.querySelectorAll('.cell .thumb.picture canvas')].every((canvas) => canvas.width >= 200));
  const png = (await page.screenshot()).toString('base64');
  const blank = await (await browser.newContext()).newPage();
  await blank.goto('about:blank');
  for (let quality = 0.9; quality > 0.3; quality -= 0.1) {
    const url = await blank.evaluate(async ({ png, quality }) => {
      const picture = new Image();
      picture.src = `data:image/png;base64,${png}`;
      await picture.decode();
      const canvas = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height });
      canvas.getContext('2d').drawImage(picture, 0, 0);
      return canvas.toDataURL('image/webp', quality);
    }, { png, quality });
    const bytes = Buffer.from(url.slice(url.indexOf(',') + 1), 'base64');
    if (bytes.length > 120 * 1024) continue;
    await writeFile(path.join(out, 'console.webp'), bytes);
    return;
  }
  assert.fail('the picture is larger than 120 KiB');
}

/** The bytes of the bundle. */
async function budget({ dist }) {
  const assets = path.join(dist, 'assets');
  let code = 0;
  let fonts = 0;
  for (const name of await readdir(assets)) {
    const bytes = await readFile(path.join(assets, name));
    if (/\.(js|css)$/.test(name)) {
      code += zlib.gzipSync(bytes, { level: 9 }).length;
      assert.deepEqual(zlib.gunzipSync(await readFile(path.join(assets, `${name}.gz`))), bytes, `${name}.gz`);
      assert.deepEqual(zlib.brotliDecompressSync(await readFile(path.join(assets, `${name}.br`))), bytes, `${name}.br`);
    }
    if (name.endsWith('.woff2')) fonts += bytes.length;
  }
  console.error(`console: ${code} bytes of code after gzip, ${fonts} of fonts`);
  assert.ok(code <= 120 * 1024, `${code} bytes of code`);
  assert.ok(fonts <= 40 * 1024, `${fonts} bytes of fonts`);
}

/** Keys, webhooks, bindings, a provider that is down, a backup and a check. */
async function administer({ browser, gate, server, key }) {
  const { api } = client(server, key);
  const ask = (other, route) => fetch(`${server}/api/v1${route}`, { headers: { Authorization: `Bearer ${other}` } });
  const root = `${gate.url}/console/`;
  expect(/status of (4|5)\d\d/);
  const page = await open(browser, gate, 'store/keys', { key });
  await administration.keys({ page, root, api, ask });
  await administration.ownKey({ browser, root, api, ask });
  await administration.keysByKeyboard({ page, root, ask });
  await administration.webhooks({ page, root, api });
  await administration.bindings({ page, root, api, provider: 'archive', organization: '7' });
  await administration.sickProvider({ page, root, api, provider: 's3-eu' });
  await administration.hostileNames({ page, root, api });
  await administration.backupAndCheck({ page, root, destination: 'nightly' });
  expect();
}

export const STORY = { start, fill, signIn, files, uploads, file, player, trash, bulk, naughty, offline, revoked, administer, accessible, million, pictures, picture, budget };
