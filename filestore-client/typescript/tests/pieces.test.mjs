// The size of parts, and the blocks of an event stream, without a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const MIB = 1 << 20;
const resolveDir = fileURLToPath(new URL('../src', import.meta.url));
const contents = "export { PartSize } from './parts.js'; export { Blocks } from './follow.js';";
const { outputFiles } = await build({ stdin: { contents, resolveDir }, bundle: true, format: 'esm', write: false });
const { Blocks, PartSize } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

/** The sizes of the next parts on a line of so many bytes in a second. */
function sizes(speed, count, parts = new PartSize()) {
  return Array.from({ length: count }, () => {
    const { bytes } = parts;
    parts.stored(bytes, (bytes / speed) * 1000);
    return bytes / MIB;
  });
}

test('parts have 8 MiB at first, and then 1 to 32 MiB by the speed', () => {
  assert.deepEqual(sizes(100 * MIB, 4), [8, 16, 32, 32]);
  assert.deepEqual(sizes(MIB, 3), [8, 4, 4]);
  assert.deepEqual(sizes(MIB / 100, 3), [8, 1, 1]);
  assert.deepEqual(sizes(2.5 * MIB, 3), [8, 10, 10]);
});

test('a break halves the parts, and a short last part tells nothing', () => {
  const parts = new PartSize();
  parts.broken();
  parts.broken();
  assert.equal(parts.bytes, 2 * MIB);
  parts.stored(1000, 1);
  assert.equal(parts.bytes, 2 * MIB);
  for (let breaks = 0; breaks < 9; breaks += 1) parts.broken();
  assert.equal(parts.bytes, MIB);
});

test('parts never grow again beyond what a proxy takes', () => {
  const parts = new PartSize();
  assert.ok(parts.refused());
  assert.deepEqual(sizes(100 * MIB, 3, parts), [4, 4, 4]);
  assert.ok(parts.refused() && parts.refused());
  assert.equal(parts.bytes, MIB);
  assert.equal(parts.refused(), false);
});

const STREAM =
  'retry: 2000\n\n:\n\nid: a\nevent: file.ready\ndata: {"x":\ndata:1}\n\nid: b\n\nevent: nothing\n\n' +
  'data: c\r\ndata: d\r\n\r\nid\ndata\r\rdata: unfinished\n';

test('the blocks of a stream are the same, however it is cut', () => {
  const expected = [
    { id: 'a', data: '{"x":\n1}' },
    { id: 'b', data: undefined },
    { id: 'b', data: 'c\nd' },
    { id: undefined, data: '' },
  ];
  for (let size = 1; size <= STREAM.length; size += 1) {
    const blocks = new Blocks();
    const read = [];
    for (let at = 0; at < STREAM.length; at += size) read.push(...blocks.read(STREAM.slice(at, at + size)));
    assert.deepEqual(read, expected, `pieces of ${size}`);
    assert.equal(blocks.retryMs, 2000);
  }
});
