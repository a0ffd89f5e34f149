// Serves dist/ for developers, and hands everything below /api to a server: `node dev.mjs http://127.0.0.1:8080`.
// Every request for the page builds it again. It sends the headers of the real server, so that its policy is tried.
import { createServer, request } from 'node:http';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './build.mjs';

const target = new URL(process.argv[2] ?? 'http://127.0.0.1:8080');
const port = Number(process.argv[3] ?? 8090);
const keepsBuild = process.argv.includes('--no-build');
const dist = path.join(path.dirname(fileURLToPath(import.meta.url)), 'dist');
const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.woff2': 'font/woff2', '.svg': 'image/svg+xml' };
const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob:; media-src 'self' " +
    "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'",
  'X-Frame-Options': 'DENY',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
};

function forward(incoming, outgoing) {
  const headers = { ...incoming.headers, host: target.host };
  const onward = request(new URL(incoming.url, target), { method: incoming.method, headers }, (reply) => {
    outgoing.writeHead(reply.statusCode, reply.headers);
    reply.pipe(outgoing);
  });
  onward.on('error', () => outgoing.destroy());
  outgoing.on('close', () => onward.destroy());
  incoming.pipe(onward);
}

async function page(outgoing, below) {
  if (!keepsBuild) await bundle();
  const depth = below.split('/').length - 1;
  const text = await readFile(path.join(dist, 'index.html'), 'utf8');
  outgoing.writeHead(200, { ...HEADERS, 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-cache' });
  outgoing.end(text.replaceAll('{{base}}', depth === 0 ? './' : '../'.repeat(depth)));
}

async function asset(outgoing, name) {
  const bytes = await readFile(path.join(dist, 'assets', path.basename(name)));
  outgoing.writeHead(200, { ...HEADERS, 'Content-Type': TYPES[path.extname(name)] ?? 'text/plain' });
  outgoing.end(bytes);
}

createServer((incoming, outgoing) => {
  const { pathname } = new URL(incoming.url, 'http://console');
  if (pathname.startsWith('/api/')) return forward(incoming, outgoing);
  if (!pathname.startsWith('/console/')) {
    outgoing.writeHead(302, { Location: '/console/' });
    return outgoing.end();
  }
  const below = pathname.slice('/console/'.length);
  if (below === 'licences.txt') return readFile(path.join(dist, below)).then((bytes) => outgoing.end(bytes));
  const work = below.startsWith('assets/') ? asset(outgoing, below) : page(outgoing, below);
  return work.catch((error) => {
    outgoing.writeHead(below.startsWith('assets/') ? 404 : 500, { 'Content-Type': 'text/plain' });
    outgoing.end(String(error));
  });
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}/console/ with the API of ${target.href}`));
