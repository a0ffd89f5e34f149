// Builds dist/ from src/ and fonts/: `npm ci && node build.mjs`. The same sources give the same bytes.
//
// dist/index.html names its assets by `{{base}}assets/…`. The server replaces `{{base}}` by the way from the requested
// page up to `console/`: `./`, `../`, and so on.
import { build } from 'esbuild';
import { minify } from 'terser';
import { readFileSync, readdirSync, rmSync, mkdirSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import zlib from 'node:zlib';

const here = path.dirname(fileURLToPath(import.meta.url));
const client = path.join(here, '../../filestore-client/typescript/src/index.ts');

// The limits of the design, in bytes after gzip.
const LIMIT_ALL = 120 * 1024;
const LIMIT_FONTS = 40 * 1024;

/** Builds into a directory (default: dist/), and returns the sizes. */
export async function bundle(dist = path.join(here, 'dist')) {
  rmSync(dist, { recursive: true, force: true });
  mkdirSync(path.join(dist, 'assets'), { recursive: true });
  const result = await build({
    absWorkingDir: here,
    entryPoints: { main: 'src/main.tsx' },
    outdir: path.join(dist, 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    assetNames: '[name]-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    target: ['es2022', 'chrome111', 'firefox115', 'safari16.4'],
    minify: true,
    charset: 'utf8',
    legalComments: 'none',
    loader: { '.woff2': 'file' },
    // `h(…)` is a little shorter than the calls of the automatic runtime.
    jsx: 'transform',
    jsxFactory: 'h',
    jsxFragment: 'Fragment',
    inject: ['src/jsx.ts'],
    tsconfigRaw: { compilerOptions: { target: 'ES2022', verbatimModuleSyntax: true } },
    alias: { 'filestore-client': client },
    // The package's sources lie outside of this folder, so the look-up of their imports would not find ours.
    nodePaths: [path.join(here, 'node_modules')],
    metafile: true,
    logLevel: 'warning',
  });
  await squeeze(dist);
  const outputs = Object.entries(result.metafile.outputs);
  const entry = outputs.find(([, output]) => output.entryPoint === 'src/main.tsx');
  const script = path.basename(entry[0]);
  const style = path.basename(entry[1].cssBundle);
  const fonts = outputs.map(([name]) => path.basename(name)).filter((name) => name.endsWith('.woff2'));
  const page = readFileSync(path.join(here, 'src/index.html'), 'utf8')
    .replace('SCRIPT', `{{base}}assets/${script}`)
    .replace('STYLE', `{{base}}assets/${style}`)
    .replace('ICON', `{{base}}assets/${icon(dist)}`)
    .replace('FONT', `{{base}}assets/${fonts.find((name) => name.startsWith('inter'))}`);
  writeFileSync(path.join(dist, 'index.html'), page);
  writeFileSync(path.join(dist, 'licences.txt'), licences());
  return measure(dist);
}

// Minifies the scripts once more: terser removes 2 % that esbuild leaves. The names keep esbuild's hash of the source.
async function squeeze(dist) {
  const assets = path.join(dist, 'assets');
  for (const name of readdirSync(assets).filter((one) => one.endsWith('.js'))) {
    const file = path.join(assets, name);
    // Without `pure_getters`: reading a signal subscribes to it, also where its value is not used.
    const compress = { passes: 3, unsafe_arrows: true, keep_fargs: false };
    const options = { module: true, ecma: 2022, compress };
    const { code } = await minify(readFileSync(file, 'utf8'), options);
    writeFileSync(file, code);
  }
}

// The icon of the tab. Only the page names it, so esbuild does not see it.
function icon(dist) {
  const bytes = readFileSync(path.join(here, 'src/icon.svg'));
  const name = `icon-${createHash('sha256').update(bytes).digest('hex').slice(0, 8).toUpperCase()}.svg`;
  writeFileSync(path.join(dist, 'assets', name), bytes);
  return name;
}

// Writes the compressed forms, and returns the sizes of each kind after gzip.
function measure(dist) {
  const sizes = { code: 0, fonts: 0, files: {} };
  const assets = path.join(dist, 'assets');
  for (const name of readdirSync(assets).sort()) {
    const bytes = readFileSync(path.join(assets, name));
    if (name.endsWith('.woff2')) {
      sizes.fonts += bytes.length;
      sizes.files[name] = bytes.length;
      continue;
    }
    const gzip = zlib.gzipSync(bytes, { level: 9 });
    gzip[9] = 255; // the system that wrote it: "unknown", on each of them
    writeFileSync(path.join(assets, `${name}.gz`), gzip);
    const params = { [zlib.constants.BROTLI_PARAM_QUALITY]: 11, [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    writeFileSync(path.join(assets, `${name}.br`), zlib.brotliCompressSync(bytes, { params }));
    sizes.code += gzip.length;
    sizes.files[name] = gzip.length;
  }
  return sizes;
}

// Licence texts of everything that is in the bundle. Other licence files of the project do not cover them.
function licences() {
  const parts = [
    ['preact', 'node_modules/preact/LICENSE'],
    ['@preact/signals', 'node_modules/@preact/signals/LICENSE'],
    ['@preact/signals-core', 'node_modules/@preact/signals-core/LICENSE'],
    ['Inter (font)', 'fonts/Inter-OFL.txt'],
    ['JetBrains Mono (font)', 'fonts/JetBrainsMono-OFL.txt'],
    ['Lucide (icons)', 'fonts/Lucide-ISC.txt'],
  ];
  return parts
    .map(([name, file]) => `${name}\n${'='.repeat(name.length)}\n\n${readFileSync(path.join(here, file), 'utf8').trim()}\n`)
    .join('\n\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const sizes = await bundle();
  for (const [name, size] of Object.entries(sizes.files)) console.log(`${String(size).padStart(8)}  ${name}`);
  console.log(`code ${sizes.code} of ${LIMIT_ALL} bytes after gzip, fonts ${sizes.fonts} of ${LIMIT_FONTS} bytes`);
  if (sizes.code > LIMIT_ALL || sizes.fonts > LIMIT_FONTS) {
    console.error('the bundle is larger than its limit');
    process.exit(1);
  }
}
