// The listing over many records while others upload and delete: each record that lived throughout appears exactly once,
// and at most 20 pages of records are kept. `node listing.mjs` (needs `npm ci`).
import assert from 'node:assert/strict';
import { build } from 'esbuild';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const console_ = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const stub = {
  name: 'stub',
  setup(one) {
    one.onResolve({ filter: /api\/call$|text\/times$/ }, ({ path: name }) => ({ path: name, namespace: 'stub' }));
    one.onLoad({ filter: /.*/, namespace: 'stub' }, ({ path: name }) => ({
      contents: name.endsWith('times')
        ? 'export const utc = { value: true, peek: () => true };'
        : 'export const call = (...all) => globalThis.answer(...all); export const isAbort = () => false;',
    }));
  },
};
const { outputFiles } = await build({
  entryPoints: [path.join(console_, 'src/data/listing.ts')], bundle: true, write: false, format: 'esm', plugins: [stub], nodePaths: [path.join(console_, 'node_modules')],
});
const { Listing, admits } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

let state = 7;
const random = () => ((state = (state * 1103515245 + 12345) % 2147483648) / 2147483648);

/** A store whose cursors name a place in the order, as the server's do. */
class Store {
  records = [];
  next = 0;
  asked = 0;
  upload() {
    const at = this.next++;
    this.records.unshift({ file_id: `F${String(at).padStart(9, '0')}`, created_at: new Date(1.7e12 + at * 1000).toISOString() });
  }
  remove(index) {
    return this.records.splice(index, 1)[0];
  }
  page({ cursor, limit, created_before }) {
    this.asked += 1;
    const end = cursor ?? created_before;
    const from = end === undefined ? 0 : this.records.findIndex((one) => one.created_at < end);
    const items = from < 0 ? [] : this.records.slice(from, from + limit);
    const isEnd = from < 0 || from + limit >= this.records.length;
    return { items, next_cursor: isEnd ? null : items[items.length - 1].created_at };
  }
}

const settled = async (listing, from = 0) => {
  const isHere = () => !listing.loading.value && (from >= listing.count || (listing.at(from) && listing.at(Math.min(from + 40, listing.count - 1))));
  for (let turn = 0; turn < 200 && (!isHere() || turn < 3); turn += 1) await new Promise((go) => setImmediate(go));
};

async function scrolls(total, changes) {
  const store = new Store();
  for (let at = 0; at < total; at += 1) store.upload();
  globalThis.answer = async (_method, _path, { query }) => ({ data: store.page(query) });
  const lived = new Set(store.records.map((one) => one.file_id));
  const listing = new Listing({ organization: '42', metadata: [] });
  await listing.more();
  const seen = new Map();
  let most = 0;
  for (let at = 0; ; at += 40) {
    listing.need(at, at + 40);
    await settled(listing, at);
    for (let index = at; index < at + 40; index += 1) {
      const record = listing.at(index);
      if (record) seen.set(record.file_id, (seen.get(record.file_id) ?? 0) + 1);
    }
    most = Math.max(most, listing.loadedCount);
    // Others upload at the top, and delete behind the view, where the listing has not been.
    if (random() < changes) {
      store.upload();
      const far = Math.floor(store.records.length * 0.5 + random() * store.records.length * 0.5);
      const behind = store.records[far];
      if (behind && listing.indexOf(behind.file_id) < 0 && !seen.has(behind.file_id)) lived.delete(store.remove(far).file_id);
    }
    if (listing.complete.value && at >= listing.count) break;
  }
  for (const id of lived) assert.equal(seen.get(id), 1, `${id} appeared ${seen.get(id) ?? 0} times`);
  assert.ok(most <= 20 * 200 + 400, `${most} records were kept`);

  // Back to the top: pages are asked for again, and end where they ended.
  const again = new Set();
  for (let at = Math.ceil(listing.count / 40) * 40; at >= 0; at -= 40) {
    listing.need(at, at + 40);
    await settled(listing, at);
    for (let index = at; index < at + 40; index += 1) {
      const record = listing.at(index);
      if (record) {
        assert.ok(!again.has(record.file_id), `${record.file_id} twice on the way back`);
        again.add(record.file_id);
      }
    }
  }
  for (const id of lived) assert.ok(again.has(id), `${id} is missing on the way back`);

  // New files come in at the top, once, however often that is asked for at the same moment.
  const news = Array.from({ length: 30 }, () => (store.upload(), store.records[0].file_id));
  listing.need(0, 40);
  await settled(listing);
  await Promise.all([listing.head(), listing.head(), listing.head()]);
  await settled(listing);
  const top = Array.from({ length: 200 }, (_, index) => listing.at(index)?.file_id);
  for (const id of news) assert.equal(top.filter((one) => one === id).length, 1, `${id} at the top`);
  assert.equal(new Set(top).size, top.length, 'no record twice');
  return { store, listing };
}

await scrolls(200, 0);
await scrolls(30_000, 0);
await scrolls(30_000, 0.3);

// What is taken away and comes back is where it was.
const { listing } = await scrolls(1000, 0);
const before = Array.from({ length: 100 }, (_, index) => listing.at(index));
listing.remove(new Set([before[3].file_id, before[4].file_id, before[99].file_id]));
assert.equal(listing.at(3).file_id, before[5].file_id);
listing.insert([before[99], before[3], before[4]]);
assert.deepEqual(Array.from({ length: 100 }, (_, index) => listing.at(index).file_id), before.map((one) => one.file_id));

// A range stays with its rows: its page was let go, new files came above, rows in it were deleted, and so was its start.
{
  const { store, listing: rows } = await scrolls(30_000, 0);
  rows.need(0, 40);
  await settled(rows);
  const from = rows.at(30);
  const far = rows.count - 100;
  for (let at = 200; at <= far; at += 200) {
    rows.need(at, at + 40);
    await settled(rows, at);
  }
  assert.equal(rows.at(30), null, 'the page of the start was let go');
  store.upload();
  const gone = store.records.findIndex((one) => one.file_id === from.file_id) + 5;
  rows.remove(new Set([store.remove(gone).file_id, rows.at(far).file_id]));
  store.remove(store.records.findIndex((one) => one.created_at === rows.at(far - 1).created_at) + 1);
  const to = rows.at(far);
  const between = () => store.records.filter((one) => one.file_id <= from.file_id && one.file_id >= to.file_id).map((one) => one.file_id);
  assert.deepEqual((await rows.range(from, to)).map((one) => one.file_id), between());
  assert.deepEqual((await rows.range(to, from)).map((one) => one.file_id), between());
  assert.equal(rows.isExact, false);
  store.remove(store.records.findIndex((one) => one.file_id === from.file_id));
  assert.deepEqual((await rows.range(from, to)).map((one) => one.file_id), between());
}

// A search goes through pages without a hit by itself, 20 of them at a time, and says how far it has looked.
let asked = 0;
globalThis.answer = async () => {
  asked += 1;
  const items = asked === 45 ? [{ file_id: 'F1', created_at: '2026-11-27T08:00:00Z' }] : [];
  return { data: { items, next_cursor: asked === 46 ? null : String(asked) } };
};
const search = new Listing({ organization: '42', metadata: [], name_contains: 'x' });
await search.more();
assert.deepEqual([asked, search.lookedAt.value, search.complete.value], [20, 100_000, false]);
search.retry();
await settled(search);
assert.deepEqual([asked, search.lookedAt.value], [40, 200_000]);
search.retry();
await settled(search);
assert.deepEqual([asked, search.lookedAt.value, search.complete.value, search.count], [46, null, true, 1]);

// It began again while a page was under way: that page is asked for anew.
const store = new Store();
for (let at = 0; at < 1000; at += 1) store.upload();
let hold = Promise.resolve();
globalThis.answer = async (_method, _path, { query }) => {
  const data = store.page(query);
  if (query.cursor) await hold;
  return { data };
};
const again = new Listing({ organization: '42', metadata: [] });
await again.more();
let letGo;
hold = new Promise((go) => (letGo = go));
again.need(150, 190);
await again.reload();
letGo();
for (let at = 0; at < 1000; at += 40) {
  again.need(at, at + 40);
  await settled(again, at);
}
assert.deepEqual(Array.from({ length: 1000 }, (_, index) => again.at(index)?.file_id), store.records.map((one) => one.file_id));

// What an event tells comes into a filtered listing only if the filter admits it.
const record = {
  organization_id: '42', original_name: 'Große Übersicht.PDF', sub_system: 'a', mime_type: 'text/plain; charset=utf-8', created_at: '2026-11-27T08:00:00.000Z',
  sync_status: 'NONE', purge_status: null, metadata: { year: 2026, paid: true },
};
const fits = (part) => admits({ organization: '42', metadata: [], ...part }, record);
for (const part of [
  {}, { name_contains: 'übersicht.p' }, { sub_system: 'a', mime_type: 'text/plain' }, { metadata: [['year', '2026'], ['paid', 'true']] },
  { created_after: '2026-11-27T08:00:00Z', created_before: '2026-11-28' }, { sync_status: 'NONE' },
]) assert.ok(fits(part), JSON.stringify(part));
for (const part of [
  { name_contains: 'invoice' }, { sub_system: 'b' }, { mime_type: 'text/csv' }, { metadata: [['year', '2025']] }, { metadata: [['month', '1']] },
  { created_before: '2026-11-27T08:00:00Z' }, { created_after: '2026-11-28' }, { sync_status: 'FAILED' }, { deleted: true }, { organization: '7' },
]) assert.ok(!fits(part), JSON.stringify(part));
console.log('the listing is right over many records');
