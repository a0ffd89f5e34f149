// Checks that dist/ is what the sources give: `npm ci && node check.mjs`. Of compressed files, the bytes inside count,
// because another version of Node.js may compress them otherwise.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';
import { bundle } from './build.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const inside = { '.gz': zlib.gunzipSync, '.br': zlib.brotliDecompressSync };
const files = (dir) => readdirSync(dir, { recursive: true, withFileTypes: true }).filter((one) => one.isFile())
  .map((one) => path.relative(dir, path.join(one.parentPath, one.name))).sort();
const read = (dir, name) => (inside[path.extname(name)] ?? ((bytes) => bytes))(readFileSync(path.join(dir, name)));

execFileSync(path.join(here, 'node_modules/.bin/tsc'), ['--noEmit'], { cwd: here, stdio: 'inherit' });
for (const test of ['contrast', 'deeds', 'listing', 'qr', 'sheets', 'text']) execFileSync(process.execPath, [path.join(here, `tests/${test}.mjs`)], { stdio: 'inherit' });

const built = mkdtempSync(path.join(tmpdir(), 'console-'));
try {
  await bundle(built);
  const committed = path.join(here, 'dist');
  assert.deepEqual(files(built), files(committed), 'dist/ has other files: run `node build.mjs`');
  for (const name of files(built)) {
    assert.ok(read(built, name).equals(read(committed, name)), `dist/${name} is another: run \`node build.mjs\``);
  }
} finally {
  rmSync(built, { recursive: true });
}
console.log('dist/ is what the sources give');
