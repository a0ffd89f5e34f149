// Sizes, times and names as people read them. `node text.mjs` (needs `npm ci`).
import assert from 'node:assert/strict';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const sources = path.join(path.dirname(fileURLToPath(import.meta.url)), '../src');
const NOW = Date.parse('2026-11-26T09:52:30.000Z');
globalThis.document = { visibilityState: 'hidden' };
globalThis.localStorage = { getItem: () => '1', setItem() {} };

async function load(name) {
  const clock = {
    name: 'clock',
    setup(one) {
      one.onResolve({ filter: /api\/call$/ }, () => ({ path: 'clock', namespace: 'clock' }));
      one.onLoad({ filter: /.*/, namespace: 'clock' }, () => ({ contents: `export const serverNow = () => ${NOW};` }));
    },
  };
  const { outputFiles } = await build({
    entryPoints: [path.join(sources, `text/${name}.ts`)], bundle: true, write: false, format: 'esm', plugins: [clock],
    nodePaths: [path.join(sources, '../node_modules')],
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);
}

const { size, exactBytes, count, counted, roughCount } = await load('sizes');
for (const [bytes, text] of [
  [0, '0 B'], [1023, '1023 B'], [1024, '1.0 KiB'], [1536, '1.5 KiB'], [1024 * 1024 - 1, '1.0 MiB'],
  [0.95 * 2 ** 40, '972.8 GiB'], [2 ** 40, '1.0 TiB'], [2 ** 53, '8.0 PiB'],
]) assert.equal(size(bytes), text);
assert.equal(exactBytes(1_234_567), '1,234,567 bytes');
assert.equal(count(1_284_320), '1,284,320');
assert.deepEqual([counted(1, 'file'), counted(0, 'file'), counted(2, 'reply'), counted(2, 'day')], ['1 file', '0 files', '2 replies', '2 days']);
assert.deepEqual([roughCount(9_999), roughCount(92_310), roughCount(999_499), roughCount(999_500), roughCount(1_104_870)], ['9,999', '92 k', '999 k', '1.0 M', '1.1 M']);

const { when, whenWithin, dayName, duration, short, clockSeconds } = await load('times'); // in UTC, by the stored choice
for (const [time, text] of [
  ['2026-11-26T09:52:30Z', 'now'],
  ['2026-11-26T09:52:18Z', '12 s ago'],
  ['2026-11-26T09:14:00Z', '38 min ago'],
  ['2026-11-26T08:40:00Z', 'Today, 08:40'],
  ['2026-11-26T00:00:00Z', 'Today, 00:00'],
  ['2026-11-25T23:59:59Z', 'Yesterday, 23:59'],
  ['2026-11-24T09:14:00Z', '24 Nov, 09:14'],
  ['2025-11-24T09:14:00Z', '24 Nov 2025, 09:14'],
  ['2026-11-26T10:12:31Z', 'in 20 min'],
  ['2026-11-27T09:52:30Z', 'Tomorrow, 09:52'],
  ['never', 'never'],
]) assert.equal(when(time), text);
assert.equal(whenWithin('2026-11-25T18:20:00Z'), 'yesterday, 18:20');
assert.equal(dayName('2027-01-01T00:00:00Z'), '1 Jan 2027');
assert.equal(clockSeconds('2026-11-26T09:14:02.900Z'), '09:14:02');
const HOUR = 3_600_000;
assert.deepEqual(
  [duration(59_999), duration(8 * 60_000), duration(2 * HOUR + 45 * 60_000), duration(48 * HOUR), duration(32 * HOUR), duration(-5)],
  ['59 s', '8 min', '2 h 45 min', '2 days', '1 day 8 h', '0 s'],
);
assert.deepEqual([short(38 * 60_000), short(47 * HOUR), short(41 * 24 * HOUR)], ['38 min', '47 h', '41 days']);

const { pieces, hasHidden, spoken, splitForMiddle, shortId, initials } = await load('names');
const shown = (name) => pieces(name).map((piece) => piece.text ?? `[${piece.hidden.label}]`).join('');
for (const [name, text] of [
  ['photo.jpg', 'photo.jpg'],
  ['invoice_\u202egpj.exe', 'invoice_[RLO]gpj.exe'],
  ['a\u200bb', 'a[ZWSP]b'],
  ['\ufeffa', '[BOM]a'],
  ['so\u00adft', 'so[SHY]ft'],
  ['tag\u{e0041}', 'tag[U+E0041]'],
  ['bell\u0007', 'bell[U+0007]'],
  ['two\nlines', 'two[LF]lines'],
  ['private\ue000', 'private[U+E000]'],
  [' a b ', '[SP]a b[SP]'],
  ['   ', '[SP][SP][SP]'],
  ['👩‍👩‍👧.png', '👩‍👩‍👧.png'],
  ['❤️.txt', '❤️.txt'],
  ['می‌خواهم.txt', 'می‌خواهم.txt'],
  ['a\u200cb', 'a[ZWNJ]b'],
  ['a\ufe0f', 'a[U+FE0F]'],
  ['عربي.pdf', 'عربي.pdf'],
  ['é'.repeat(255), 'é'.repeat(255)],
  ['<script>alert(1)</script>', '<script>alert(1)</script>'],
]) {
  assert.equal(shown(name), text);
  assert.equal(pieces(name).map((piece) => piece.text ?? piece.hidden.character).join(''), name, 'copying gives the original');
}
assert.equal(spoken('invoice_\u202egpj.exe'), 'invoice_ [right-to-left override] gpj.exe');
assert.deepEqual([hasHidden('a b'), hasHidden('a\u2066b')], [false, true]);
const long = `${'x'.repeat(200)}.jpeg`;
assert.equal(splitForMiddle(long).join(''), long);
assert.ok(splitForMiddle(long)[1].endsWith('.jpeg'), 'the extension stays visible');
assert.deepEqual(splitForMiddle('short.jpg'), ['short.jpg', '']);
assert.equal(shortId('96f0de6db2b9282979cbb5e4a1171ffbe9'), '96f0de6db2b9…1ffbe9');
assert.deepEqual([initials('Atelier Nord'), initials('web-frontend'), initials('42'), initials('')], ['AN', 'WF', '42', '']);

process.exit(0); // the shared timer of relative times runs on
