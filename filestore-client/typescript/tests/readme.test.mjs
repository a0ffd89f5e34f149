// The examples of README.md compile.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { transform } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiler = path.join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');

test('the examples of the README compile', async () => {
  const text = await readFile(path.join(root, 'README.md'), 'utf8');
  const blocks = [...text.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const typed = blocks.filter(([, language]) => language === 'ts');
  assert.ok(typed.length >= 6);
  const dir = await mkdtemp(path.join(root, 'dist', 'readme-'));
  try {
    await writeFile(path.join(dir, 'node.d.ts'), 'declare const process: { env: Record<string, string | undefined> };');
    const names = typed.map((_, index) => `example${index}.ts`);
    await Promise.all(typed.map(([, , code], index) => writeFile(path.join(dir, names[index]), `${code}export {};\n`)));
    const off = { declaration: false, declarationMap: false, noUnusedLocals: false };
    const compilerOptions = { noEmit: true, rootDir: '..', ...off };
    const config = { extends: '../../tsconfig.json', compilerOptions, include: ['.'], exclude: [] };
    await writeFile(path.join(dir, 'tsconfig.json'), JSON.stringify(config));
    const outcome = await promisify(execFile)(process.execPath, [compiler, '-p', dir]).catch((error) => error);
    assert.equal(outcome.stdout, '');
  } finally {
    await rm(dir, { recursive: true, force: true });
  }

  for (const [, language, code] of blocks) {
    if (language === 'tsx') await transform(code, { loader: 'tsx' });
    const script = /<script[^>]*>\n(.*?)<\/script>/s.exec(code)?.[1];
    if (script) await transform(script, { loader: 'ts' });
  }
});
