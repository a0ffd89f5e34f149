// The QR codes: one of another encoder, module by module, and the sizes up to the longest text.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

/** `https://example.org/`, version 2, correction M, mask 3, as the package uqr 0.1.3 draws it. */
const KNOWN = [
  '1111111011100010101111111',
  '1000001011001110101000001',
  '1011101001100101001011101',
  '1011101011111110001011101',
  '1011101000011011101011101',
  '1000001001001010101000001',
  '1111111010101010101111111',
  '0000000011111001100000000',
  '1011011101100001101001011',
  '1000000001010100010100010',
  '1111101011101100111110000',
  '1100000001101110000001100',
  '1001101001000001011010111',
  '0000000001010111111110001',
  '0110001110101010100010110',
  '1000110010101101111110001',
  '0000101110010001111111111',
  '0000000010001100100010101',
  '1111111010111000101010111',
  '1000001011001001100010010',
  '1011101000011100111111010',
  '1011101010101111011011111',
  '1011101010011100011010110',
  '1000001000000001011010100',
  '1111111010001010011111111',
];
const here = path.dirname(fileURLToPath(import.meta.url));
const dir = mkdtempSync(path.join(tmpdir(), 'filestore-qr-'));
try {
  const outfile = path.join(dir, 'qr.mjs');
  await build({ entryPoints: [path.join(here, '../src/text/qr.ts')], bundle: true, format: 'esm', outfile, logLevel: 'error' });
  const { qr } = await import(pathToFileURL(outfile).href);

  const known = qr('https://example.org/', 3).map((row) => row.map(Number).join(''));
  assert.deepEqual(known, KNOWN);
  for (let length = 1; length <= 666; length += 5) {
    const modules = qr('x'.repeat(length));
    assert.equal((modules.length - 17) % 4, 0);
    assert.ok(modules.every((row) => row.length === modules.length));
  }
  assert.equal(qr('x'.repeat(667)), null, 'a text that is too long has no code');
} finally {
  rmSync(dir, { recursive: true });
}
