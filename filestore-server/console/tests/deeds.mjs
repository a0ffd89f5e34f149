// Events in order, and as lines. `node deeds.mjs` (needs `npm ci`).
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { transform } from 'esbuild';

const source = await readFile(new URL('../src/data/deeds.ts', import.meta.url), 'utf8');
const { code } = await transform(source, { loader: 'ts', format: 'esm' });
const { gather, merge } = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`);

const event = (id, second, type, data = {}) => ({
  id: String(id), type, timestamp: `2026-11-26T08:00:${String(second).padStart(2, '0')}.000Z`, data: { organization_id: '42', ...data },
});
const ids = (events) => events.map((one) => one.id).join(' ');

// A stream that starts again repeats events: none stands above a newer one, none comes twice, none before its page.
const page = [event(9, 49, 'file.uploaded'), event(8, 43, 'migration.ended'), event(7, 43, 'file.migrated')];
assert.equal(ids(merge([event(3, 22, 'file.deleted'), event(7, 43, 'file.migrated'), event(10, 50, 'file.synced')], page)), '10 9 8 7');
assert.equal(ids(merge([event(10, 50, 'file.synced'), event(11, 50, 'file.synced')], page)), '11 10 9 8 7');
assert.equal(ids(merge([event(1, 1, 'file.uploaded')], [])), '1');

// Files of several sub-systems are one line that names none, and the last line may go on.
const lines = gather([
  event(6, 30, 'key.created'), event(5, 30, 'key.created'),
  event(4, 20, 'file.uploaded', { sub_system: 'press' }), event(3, 19, 'file.uploaded', { sub_system: 'gallery' }),
  event(2, 10, 'file.deleted', { sub_system: 'press' }), event(1, 9, 'file.deleted', { sub_system: 'press' }),
], true);
assert.deepEqual(lines.map(({ count, mixed, cut }) => [count, mixed, cut]), [[2, false, false], [2, true, false], [2, false, true]]);
assert.equal(gather([event(1, 1, 'file.uploaded')], false)[0].cut, false);
console.log('lines of activity are right');
