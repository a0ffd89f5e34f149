// A gate in front of the server: serves console/dist if the server has no console or FILESTORE_CONSOLE_DIST is set, and
// answers for an organization `million` whose files exist nowhere.
import { readFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import path from 'node:path';

const TYPES = { '.js': 'text/javascript', '.css': 'text/css', '.woff2': 'font/woff2', '.svg': 'image/svg+xml' };
export const HEADERS = {
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self' blob:; media-src 'self' " +
    "blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-src 'none'; frame-ancestors 'none'; " +
    "require-trusted-types-for 'script'; trusted-types 'none'",
  'X-Content-Type-Options': 'nosniff',
};
export const ROWS = Number(process.env.FILESTORE_CONSOLE_ROWS ?? 1_000_000);

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';
/** The id of row `n`, of which 0 is the newest. */
export function idOf(n) {
  let rest = ROWS - n;
  let text = '';
  for (let at = 0; at < 8; at += 1) {
    text = ALPHABET[rest % 32] + text;
    rest = Math.floor(rest / 32);
  }
  return `01M8000000000000ZZ${text}`;
}

const START = Date.parse('2026-11-26T20:00:00.000Z');
function row(n) {
  const time = new Date(START - n * 7_000).toISOString();
  return {
    file_id: idOf(n), organization_id: 'million', sub_system: 'gallery', original_name: `photo-${String(n).padStart(7, '0')}.bin`,
    ext: 'bin', mime_type: 'application/octet-stream', file_size: 1000 + (n % 9000), sha256: 'ab'.repeat(32), version: 1, width: null,
    height: null, thumbhash: null, metadata: {}, file_path: 'million/gallery/2026/11/26/x', status: 'READY', sync_status: 'NONE',
    sync_attempts: 0, sync_error: null, awaits_copy: null, storage_location: 'LOCAL', storage_provider: 'LOCAL', purge_status: null,
    created_at: time, updated_at: time, expires_at: null, deleted_at: null, purge_due_at: null,
  };
}

function synthetic(url) {
  if (url.pathname === '/api/v1/files' && url.searchParams.get('organization_id') === 'million') {
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const to = Math.min(ROWS, from + Number(url.searchParams.get('limit') ?? 100));
    const items = Array.from({ length: to - from }, (_, at) => row(from + at));
    return { items, next_cursor: to < ROWS ? String(to) : null };
  }
  if (url.pathname === '/api/v1/organizations/million/usage') {
    const none = { files: 0, bytes: 0 };
    const all = { files: ROWS, bytes: ROWS * 5000 };
    return { organization_id: 'million', ...all, by_location: { LOCAL: all, CLOUD: none }, temp: none, deleted: none, quota_files: null, quota_bytes: null };
  }
  if (url.pathname === '/api/v1/organizations/million/sub-systems') {
    const none = { files: 0, bytes: 0 };
    return { items: [{ sub_system: 'gallery', files: ROWS, bytes: ROWS * 5000, deleted: none, temp: none }], next_cursor: null };
  }
  return null;
}

/**
 * Starts the gate. `asked` hears the path of every request to the API. `still` holds the time: it changes the text of
 * each reply of the API, and `still.date` is the time of all replies.
 */
export async function openGate(server, dist, asked = () => {}, still = null) {
  const target = new URL(server);
  const own = !process.env.FILESTORE_CONSOLE_DIST && await fetch(new URL('/console/', target)).then((reply) => reply.status === 200, () => false);

  async function page(outgoing, below) {
    if (below.startsWith('assets/')) {
      const bytes = await readFile(path.join(dist, below));
      outgoing.writeHead(200, { ...HEADERS, 'Content-Type': TYPES[path.extname(below)] ?? 'text/plain' });
      return outgoing.end(bytes);
    }
    const text = await readFile(path.join(dist, 'index.html'), 'utf8');
    const depth = below.split('/').length - 1;
    outgoing.writeHead(200, { ...HEADERS, 'Content-Type': 'text/html; charset=utf-8' });
    return outgoing.end(text.replaceAll('{{base}}', depth === 0 ? './' : '../'.repeat(depth)));
  }

  const gate = createServer((incoming, outgoing) => {
    const url = new URL(incoming.url, target);
    if (url.pathname.startsWith('/api/')) asked(`${incoming.method} ${url.pathname}`, url);
    const made = url.pathname.startsWith('/api/') ? synthetic(url) : null;
    if (made !== null) {
      outgoing.writeHead(200, { 'Content-Type': 'application/json', Date: new Date().toUTCString() });
      return outgoing.end(JSON.stringify(made));
    }
    if (!own && url.pathname.startsWith('/console/')) {
      return page(outgoing, url.pathname.slice('/console/'.length)).catch(() => (outgoing.writeHead(404), outgoing.end()));
    }
    const headers = { ...incoming.headers, host: target.host };
    delete headers.origin;
    if (still !== null) delete headers['accept-encoding'];
    const onward = request(url, { method: incoming.method, headers }, (reply) => {
      if (still !== null) reply.headers.date = still.date;
      if (still === null || !/json|event-stream/.test(reply.headers['content-type'])) {
        outgoing.writeHead(reply.statusCode, reply.headers);
        return reply.pipe(outgoing);
      }
      delete reply.headers['content-length'];
      outgoing.writeHead(reply.statusCode, reply.headers);
      // A stream of events ends each event with an empty line, and a document is one piece.
      const pieces = reply.headers['content-type'].startsWith('text/event-stream') ? '\n\n' : null;
      let rest = '';
      reply.setEncoding('utf8');
      reply.on('data', (text) => {
        rest += text;
        const whole = pieces === null ? -1 : rest.lastIndexOf(pieces);
        if (whole < 0) return;
        outgoing.write(still.change(rest.slice(0, whole + pieces.length)));
        rest = rest.slice(whole + pieces.length);
      });
      return reply.on('end', () => outgoing.end(still.change(rest)));
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    return incoming.pipe(onward);
  });
  await new Promise((ready) => gate.listen(0, '127.0.0.1', ready));
  return { own, url: `http://127.0.0.1:${gate.address().port}`, close: () => (gate.closeAllConnections(), gate.close()) };
}
