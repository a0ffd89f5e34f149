// Contact sheets: a file that is shown at two places at once is drawn at both, and asked for once. `node sheets.mjs`.
import assert from 'node:assert/strict';
import { build } from 'esbuild';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const console_ = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const stub = {
  name: 'stub',
  setup(one) {
    one.onResolve({ filter: /api\/call$|session$/ }, ({ path: name }) => ({ path: name, namespace: 'stub' }));
    one.onLoad({ filter: /.*/, namespace: 'stub' }, ({ path: name }) => ({
      contents: name.endsWith('session')
        ? 'export const me = { peek: () => null }; export const onEnd = () => undefined;'
        : 'export const request = (...all) => globalThis.answer(...all); export const isAbort = () => false; export class Problem {}',
    }));
  },
};
const { outputFiles } = await build({
  entryPoints: [path.join(console_, 'src/data/sheets.ts')], bundle: true, write: false, format: 'esm', plugins: [stub],
});
const { want } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

globalThis.devicePixelRatio = 1;
globalThis.createImageBitmap = async () => ({ close: () => undefined });
const asked = [];
globalThis.answer = async (_method, _path, { query }) => {
  asked.push(query.ids);
  return new Response('a sheet');
};

/** Counts what is drawn, and resolves with the first of it. */
function canvas() {
  const drawn = [];
  return { drawn, getContext: () => ({ clearRect: () => undefined, drawImage: (_, x) => drawn.push(x) }) };
}
const drawnAt = (record, place) => new Promise((done) => want(record, place, done));
const record = { file_id: 'A', version: 1 };
const other = { file_id: 'B', version: 1 };

const [grid, dock, next] = [canvas(), canvas(), canvas()];
await Promise.all([drawnAt(record, grid), drawnAt(record, dock), drawnAt(other, next)]);
assert.deepEqual(asked, ['A,B']);
assert.deepEqual([grid.drawn, dock.drawn, next.drawn], [[0], [0], [200]]);

// Giving up one place leaves the other, and a canvas that shows another file gets only that.
const [left, kept] = [canvas(), canvas()];
want(record, left, () => assert.fail('nobody waits for it'))();
want(record, kept, () => assert.fail('another file is shown'));
await drawnAt(other, kept);
assert.deepEqual([left.drawn, kept.drawn], [[], [200]]);
console.log('contact sheets draw at every place');
