// The twelve pages of the design, compared with kept pictures. They come from a server of their own. Its replies pass
// through a gate that replaces what another run would say otherwise: times, versions, and figures of the disk.
import assert from 'node:assert/strict';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { bytesOf, compare, MOST, webp } from './compare.mjs';
import { openGate } from './gate.mjs';
import { client, open, until } from './harness.mjs';
import { paint } from './paint.mjs';

const MIB = 1 << 20;
const HOUR = 3_600_000;
/** Longest wait for a page, on a machine with much to do. */
const SLOW = 60_000;
/** All pages are taken at this instant: 09:52 in Berlin. */
const NOW = Date.parse('2026-11-26T08:52:00.000Z');
/** Everything that has happened, happened at this instant. */
const BEFORE = NOW - 72 * 60_000;

/** A reply that says the same in each run. What is to come is moved to whole hours before it. */
function change(text) {
  const real = Date.now();
  return text
    .replace(/"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"/g, (found) => {
      const ahead = Date.parse(found.slice(1, -1)) - real;
      const moved = ahead > 0 ? NOW + Math.floor(ahead / HOUR) * HOUR + HOUR / 2 : BEFORE;
      return `"${new Date(moved).toISOString()}"`;
    })
    .replace(/"version":"\d+\.\d+\.[^"]*"/g, '"version":"1.0.0"')
    .replace(/"uptime_secs":\d+/g, `"uptime_secs":${41 * 86_400}`)
    .replace(/"(free|total)_bytes":\d+/g, (_, of) => `"${of}_bytes":${(of === 'free' ? 3.2 : 6) * 2 ** 40}`)
    .replace(/"oldest_secs":\d+/g, '"oldest_secs":4320')
    .replace(/"state":"half_open"/g, '"state":"open"')
    .replace(/"last_error":"(?:[^"\\]|\\.)*"/g, '"last_error":"tcp connect error: Connection refused (os error 111)"')
    .replace(/"pending":(\d+),"syncing":(\d+)/g, (_, waits, runs) => `"pending":${Number(waits) + Number(runs)},"syncing":0`)
    .replace(/"sync_status":"SYNCING"/g, '"sync_status":"PENDING"');
}

/** Runs in the page. Ids, digests, secrets and the address become zeros of the same length. */
function blind() {
  const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (all.nextNode()) {
    const { data } = all.currentNode;
    const zeros = (found) => found.replace(/[0-9A-Za-z]/g, '0');
    const still = data
      .replace(/01[0-9A-HJKMNP-TV-Z]{6,}/g, zeros)
      .replace(/[0-9a-f]{12,}/g, zeros)
      .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:8080')
      .replace(/[0-9A-Za-z/]+…[0-9A-Za-z]+/g, zeros);
    if (still !== data) all.currentNode.data = still;
  }
}

const cells = (page) => page.locator('[role=grid] [data-id]');
const drawn = (page, least = 60) => page.waitForFunction((least) => {
  const pictures = [...document.querySelectorAll('.thumb.picture canvas')];
  return pictures.length > 0 && pictures.every((canvas) => canvas.width >= least && !canvas.matches('.blank'));
}, least);

const NAMES = [
  'saimaa-dusk.jpg', 'rowing-boats-derwent.jpg', 'dandelion-macro-014.jpg', 'shoreline-drone-0192.jpg', 'kite-over-amrum.jpg',
  'maple-october.jpg', 'facets-ultraviolet.jpg', 'dune-grass-sylt.jpg', 'jetty-in-fog.jpg', 'forest-path-koli.jpg',
  'rocket-picnic-spread.jpg', 'autumn-tree-poster.jpg', 'copper-wave-loop.jpg', 'grass-after-rain.jpg', 'lake-bench-evening.jpg',
  'moss-from-above.jpg', 'cups-archive-1998.jpg', 'boards-lime.jpg', 'leaf-macro.jpg', 'harbour-night.jpg',
];

/** Fills the open server, closes it by a key, and returns the key. */
async function fill({ browser, second }) {
  const { key } = await client(second).api('POST', '/admin/keys', { name: 'studio-laptop', organizations: ['*'], scopes: ['admin'] });
  const { api, upload } = client(second, key);
  // Bound first: of files from before a binding, the server copies only the newest.
  const bind = (organizationId, organizationName, storageProvider) =>
    api('POST', '/organization-storage-bindings/create', { organizationId, organizationName, storageProvider, syncEnabled: true });
  await bind(42, 'Atelier Nord', 'archive');
  await bind(9, 'ERP North', 's3-eu');
  const page = await (await browser.newContext()).newPage();
  for (const [at, name] of NAMES.toReversed().entries()) {
    const bytes = await paint(page, at, { width: 1280, height: 800 });
    await upload(name, bytes, { subSystem: at % 6 === 5 ? 'press' : 'gallery', metadata: { campaign: 'winter-27', credit: 'I. Virtanen', released: true }, temp: at === 13 });
    if (at === 14) await upload('Charter contract Lüdde.pdf', '%PDF-1.4\nhello', { subSystem: 'contracts' });
  }
  for (const [at, name] of ['leaf-macro-unsharp.jpg', 'kite-over-amrum-2.jpg', 'moss-from-above-b.jpg', 'maple-october-crop.jpg'].entries()) {
    const { file_id } = await upload(name, await paint(page, 50 + at, { width: 400, height: 300 }), { subSystem: 'press' });
    await fetch(`${second}/api/v1/files/${file_id}/200/200`, { headers: { Authorization: `Bearer ${key}` } });
    await until('the placeholder', async () => (await api('GET', `/files/${file_id}/info`)).thumbhash !== null, SLOW);
    await api('POST', '/files/delete', { ids: [file_id] });
  }
  for (const name of ['export-2025.csv', 'invoice_\u202egpj.exe', 'Charter contract Lüdde (draft).pdf']) {
    const { file_id } = await upload(name, name, { subSystem: 'contracts' });
    await api('POST', '/files/delete', { ids: [file_id] });
  }
  await upload('order-1.txt', 'order 1', { organization: '9', subSystem: 'erp' });
  await upload('scan-0007.tif', 'scan 7', { organization: '17', subSystem: 'inbox' });
  await page.context().close();

  const provider = async () => (await api('GET', '/admin/providers')).find((one) => one.provider_code === 's3-eu');
  await until('s3-eu is down', async () => (await provider()).state !== 'closed', SLOW);

  for (const [name, organizations, scopes] of [
    ['old-cms', ['9', '17'], ['read']], ['press-portal', ['42'], ['read']], ['grafana', ['*'], ['admin']], ['erp-sync', ['9'], ['write', 'delete']],
    ['mobile-app', ['9', '42'], ['read', 'write', 'delete']], ['web-frontend', ['42'], ['read', 'write']],
  ]) await api('POST', '/admin/keys', { name, organizations, scopes });
  await until('all files are copied', async () => {
    const { items } = await api('GET', '/files?organization_id=42&limit=100');
    return items.every((one) => one.status !== 'READY' || one.storage_provider === 'archive');
  }, SLOW);
  return key;
}

/** A migration under way, as the server tells of it: a real one is over before a picture is taken. */
async function underWay(page) {
  const more = async (route, add) => {
    const reply = await route.fetch();
    await route.fulfill({ response: reply, json: { ...(await reply.json()), ...add } });
  };
  await page.route('**/api/v1/admin/migrate/status*', (route) => more(route, {
    running: { to: 'archive', files: 318_220, bytes: 0.9 * 2 ** 40, planned_files: 1_130_217, planned_bytes: 2.9 * 2 ** 40, started_at: null },
  }));
  await page.route('**/api/v1/admin/migrate/plan*', (route) => more(route, { move_files: 811_997, move_bytes: 2 * 2 ** 40 }));
}

/** Uploads that stay as they are: of each file, the server takes one part. */
async function uploading(page) {
  await page.route('**/api/v1/uploads/*', (route) => (Number(route.request().headers()['upload-offset'] ?? 0) > 0 ? undefined : route.continue()));
  const asked = page.waitForEvent('filechooser');
  await page.getByRole('main').getByRole('button', { name: 'Upload', exact: true }).click();
  await (await asked).setFiles([
    ['shoreline-drone-0193.tif', 12], ['walkthrough-koli.mp4', 20], ['press-kit-winter.zip', 14], ['invoice_\u202egpj.exe', 0.1],
  ].map(([name, mib]) => ({ name, mimeType: 'application/octet-stream', buffer: Buffer.alloc(mib * MIB) })));
  await page.waitForFunction(() => [...document.querySelectorAll('.upload-row.running')].filter((row) => /8\.0 MiB of/.test(row.textContent)).length === 3);
}

/** How each page is reached. `take` gives the page when it is complete. */
function shots() {
  const grid = async (page) => {
    await drawn(page);
    for (const at of [0, 1, 5]) await cells(page).nth(at).locator('.tick').click();
    await page.getByText('3 selected').waitFor();
  };
  // By the way that a visitor takes, so that the pages know where they are.
  const files = 'org/42/files?view=grid';
  const enter = (page, word) => page.locator('.side-link', { hasText: word }).click();
  const file = async (page) => {
    await cells(page).nth(1).click();
    await page.locator('.preview-picture img').waitFor();
    await page.waitForFunction(() => {
      const pictures = [...document.querySelectorAll('.preview-picture img, .variant img')];
      return pictures.length === 8 && pictures.every((one) => one.complete && one.naturalWidth > 0);
    });
    await page.getByText('Uploaded').waitFor();
  };
  const phone = { width: 390, height: 844, touch: true };
  return {
    'files-grid-light': { address: files, take: grid },
    'files-grid-dark': { address: files, scheme: 'dark', take: grid },
    'file-detail': { address: files, take: file },
    'file-detail-dark': { address: files, scheme: 'dark', take: file },
    trash: {
      address: 'org/42/trash',
      take: async (page) => {
        await drawn(page, 16);
        for (const at of [1, 2]) await cells(page).nth(at).locator('.tick').click();
        await page.getByText('2 selected').waitFor();
      },
    },
    'overview-sick-provider': {
      address: files,
      take: async (page) => {
        await enter(page, 'Overview');
        await page.getByRole('heading', { name: /^s3-eu / }).waitFor();
        await page.getByText('order-1.txt').waitFor();
      },
    },
    'storage-migration': { address: 'org/42/storage', before: underWay, take: (page) => page.getByText('of 1,130,217 files').waitFor() },
    keys: {
      address: files,
      take: async (page) => {
        await enter(page, 'Keys');
        const row = page.getByRole('row', { name: /web-frontend/ });
        await row.hover();
        await row.getByRole('button', { name: 'Rotate web-frontend' }).click();
        await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
        await page.locator('[data-secret]').waitFor();
        await page.mouse.move(700, 850);
      },
    },
    'phone-files': { address: 'org/42/files', ...phone, take: drawn },
    'phone-file': { address: files, ...phone, take: file },
    uploads: { address: 'org/42/files?view=list&sub_system=gallery', take: async (page) => (await drawn(page), uploading(page)) },
  };
}

async function still(page) {
  await page.mouse.move(0, 0);
  await page.evaluate(() => document.fonts.ready);
  await page.waitForLoadState('networkidle', { timeout: 1500 }).catch(() => undefined);
  await page.evaluate(blind);
  return page.screenshot({ animations: 'disabled' });
}

/** The pages of the design are as the kept pictures, and a broken page is noticed. */
export async function pictures(story) {
  const { browser, dist, second, kept, out } = story;
  const keeps = process.env.FILESTORE_CONSOLE_KEEP === '1';
  if (keeps) await mkdir(kept, { recursive: true });
  const gate = await openGate(second, dist, undefined, { change, date: new Date(NOW).toUTCString() });
  const blank = await (await browser.newContext()).newPage();
  const visit = async (key, { address, before, take, ...options }) => {
    const page = await open(browser, gate, 'sign-in', { key, ...options });
    page.setDefaultTimeout(SLOW);
    await page.clock.setFixedTime(NOW);
    await before?.(page);
    await page.goto(`${gate.url}/console/${address}`);
    await take(page);
    return page;
  };

  let bytes = 0;
  const failed = [];
  const check = async (name, page) => {
    const png = await still(page);
    await writeFile(path.join(out, `kept-${name}.png`), png);
    const file = path.join(kept, `${name}.webp`);
    if (keeps) {
      const picture = await webp(blank, png, 0.9);
      bytes += picture.length;
      await writeFile(file, picture);
    }
    const found = await compare(blank, await readFile(file), png);
    console.error(`console: ${name}: ${found.differ} of ${found.blocks} blocks differ`);
    if (found.share <= MOST) return;
    failed.push(`${name}: ${(found.share * 100).toFixed(1)} %`);
    if (found.picture !== null) await writeFile(path.join(out, `kept-${name}-differs.png`), bytesOf(found.picture));
  };

  const first = await visit(null, { address: '', take: (page) => page.getByRole('heading', { name: 'Store the first file' }).waitFor() });
  await check('first-run', first);
  await first.context().close();

  const key = await fill(story);
  for (const [name, shot] of Object.entries(shots())) {
    const page = await visit(key, shot);
    await check(name, page);
    if (name === 'overview-sick-provider') await control(blank, page, await readFile(path.join(kept, `${name}.webp`)));
    await page.context().close();
  }
  gate.close();
  await blank.context().close();
  if (keeps) console.error(`console: kept ${bytes} bytes`);
  assert.ok(bytes <= MIB, `the kept pictures have ${bytes} bytes`);
  assert.deepEqual(failed, [], `more than ${MOST * 100} % of a page is not as the picture in tests/services/console/kept`);
}

/** Breaks a page in two ways. The comparison has to notice both. */
async function control(blank, page, kept) {
  const faults = {
    'a panel is missing': () => {
      const panel = [...document.querySelectorAll('section')].find((one) => /^Providers/.test(one.textContent));
      panel.style.display = 'none';
      return () => { panel.style.display = ''; };
    },
    'a rule of the stylesheet is missing': () => {
      for (const sheet of document.styleSheets) {
        const at = [...sheet.cssRules].findIndex((rule) => rule.selectorText === '.sided');
        if (at < 0) continue;
        const text = sheet.cssRules[at].cssText;
        sheet.deleteRule(at);
        return () => sheet.insertRule(text, at);
      }
      throw new Error('no such rule');
    },
  };
  for (const [name, fault] of Object.entries(faults)) {
    const mend = await page.evaluateHandle(fault);
    const { share } = await compare(blank, kept, await page.screenshot({ animations: 'disabled' }));
    console.error(`console: control, ${name}: ${(share * 100).toFixed(1)} % of the blocks differ`);
    assert.ok(share > MOST, `the comparison does not notice that ${name}`);
    await mend.evaluate((again) => again());
  }
}
