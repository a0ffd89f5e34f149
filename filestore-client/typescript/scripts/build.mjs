// Builds dist/: one bundled module for runtimes, and declarations for the compiler.
import { execFileSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const compiler = path.join(createRequire(import.meta.url).resolve('typescript/package.json'), '../bin/tsc');

await rm(path.join(root, 'dist'), { recursive: true, force: true });
await build({
  absWorkingDir: root,
  entryPoints: ['src/index.ts'],
  outfile: 'dist/index.js',
  bundle: true,
  format: 'esm',
  target: 'es2022',
  sourcemap: true,
  minifySyntax: true,
});
execFileSync(process.execPath, [compiler, '-p', '.', '--emitDeclarationOnly'], { cwd: root, stdio: 'inherit' });
