// Calls, problems and retries.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  Connection,
  Problem,
  VARIANT_SIZES,
  files,
  signedUrl,
  srcset,
  upload,
  variantUrl,
} from '../dist/index.js';
import { PLACE, Server, administer } from './support.mjs';

let server;
let there;

before(async () => {
  server = await Server.start();
  there = new Connection({ url: `${server.url}/` });
});
after(() => server?.end());

/** A connection to scripted replies. Notes the requests. */
function scripted(replies, options = {}) {
  const calls = [];
  const server = new Connection({
    url: 'https://files.example.org/prefix/',
    retry: { baseMs: 1, capMs: 2 },
    fetch: async (url, init) => {
      calls.push({ url, ...init });
      const reply = replies.shift();
      if (reply instanceof Error) throw reply;
      const { status = 200, headers = {}, body = {} } = reply;
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      return new Response(status === 204 ? null : text, {
        status,
        headers: { 'Content-Type': 'application/problem+json', ...headers },
      });
    },
    ...options,
  });
  return { server, calls };
}

test('a call fills the path and the query, and sends key and body', async () => {
  const { server, calls } = scripted([{}, {}, {}], { key: 'fsk_1' });
  await server.call('GET', '/files/{file_id}/info', { path: { file_id: 'a/b' } });
  await server.call('GET', '/files', { query: { name_prefix: 'ü&', sub_system: undefined, 'metadata.k': '1' } });
  server.key = undefined;
  await server.call('POST', '/files/delete', { body: { ids: ['a'] } });
  assert.deepEqual(
    calls.map(({ method, url, headers, body }) => [method, url, headers.get('Authorization'), body]),
    [
      ['GET', 'https://files.example.org/prefix/api/v1/files/a%2Fb/info', 'Bearer fsk_1', null],
      ['GET', 'https://files.example.org/prefix/api/v1/files?name_prefix=%C3%BC%26&metadata.k=1', 'Bearer fsk_1', null],
      ['POST', 'https://files.example.org/prefix/api/v1/files/delete', null, '{"ids":["a"]}'],
    ],
  );
  assert.equal(calls[2].headers.get('Content-Type'), 'application/json');
});

test('reads are repeated, and changes only if nothing happened or with an idempotency key', async () => {
  const busy = { status: 503, body: { code: 'busy' } };
  const unknown = { status: 503, body: { code: 'outcome_unknown' } };
  const proxy = { status: 502, body: '<h1>bad gateway</h1>', headers: { 'Content-Type': 'text/html' } };
  const broken = new TypeError('fetch failed');
  const read = (server) => server.call('GET', '/me');
  const change = (server) => server.call('POST', '/files/delete', { body: { ids: [] } });
  const named = (server) => {
    const body = new FormData();
    return server.call('POST', '/files/upload', { body, headers: { 'Idempotency-Key': '1' } });
  };
  const once = (server) => server.call('GET', '/me', { attempts: 1 });
  for (const [call, failures, attempts] of [
    [read, [busy, broken, proxy], 4],
    [read, [proxy, proxy, proxy, proxy], 'not_filestore'],
    [read, [{ status: 404, body: { code: 'not_found' } }], 'not_found'],
    [read, [{ ...busy, headers: { 'Retry-After': '3600' } }], 'busy'],
    [once, [busy], 'busy'],
    [change, [busy, { status: 429, body: { code: 'rate_limited' } }], 3],
    [change, [unknown], 'outcome_unknown'],
    [change, [broken], 'unreachable'],
    [change, [proxy], 'not_filestore'],
    [named, [unknown, broken, proxy], 4],
    [named, [{ status: 409, body: { code: 'idempotency_in_progress' } }], 2],
    [named, [{ status: 500, body: { code: 'internal' } }], 'internal'],
  ]) {
    const { server, calls } = scripted([...failures, {}]);
    if (typeof attempts === 'number') {
      await call(server);
      assert.equal(calls.length, attempts);
    } else {
      await assert.rejects(call(server), { code: attempts });
      assert.equal(calls.length, failures.length);
    }
  }
});

test('a problem has all members of its document', async () => {
  const body = {
    code: 'invalid_transition', status: 409, title: 'Conflict', detail: 'no', request_id: 'R', field: 'f', item: 0,
    allowed: ['a'], limit: 7, from: 'READY', to: 'TEMP',
  };
  const { server } = scripted([{ status: 409, body, headers: { 'Retry-After': '2' } }]);
  const error = await server.call('GET', '/me').catch((error) => error);
  assert.ok(error instanceof Problem && error instanceof Error);
  const { request_id: requestId, ...rest } = body;
  assert.deepEqual({ ...error }, { name: 'Problem', ...rest, requestId, retryAfter: 2 });
  assert.equal(error.message, 'no');
  assert.equal(error.isTemporary, false);
});

test('one place hears of a bad key, and of a server that is away', async () => {
  const heard = [];
  const { server } = scripted(
    [{ status: 401, body: { code: 'unauthorized' } }, new TypeError('x'), {}],
    {
      onUnauthorized: (problem) => heard.push(problem.code),
      onReachable: (isReachable) => heard.push(isReachable),
    },
  );
  await assert.rejects(server.call('GET', '/me'), { status: 401 });
  await server.call('GET', '/me');
  assert.deepEqual(heard, [true, 'unauthorized', false, true]);
});

test('an aborted call fails with the reason of its signal, also in a pause', async () => {
  const reason = new Error('enough');
  await assert.rejects(there.call('GET', '/me', { signal: AbortSignal.abort(reason) }), reason);
  const { server } = scripted([{ status: 429, body: { code: 'rate_limited' }, headers: { 'Retry-After': '30' } }]);
  const stop = new AbortController();
  setTimeout(() => stop.abort(reason), 50);
  await assert.rejects(server.call('GET', '/me', { signal: stop.signal }), reason);
});

test('an abort by the application\'s own fetch is no failure of the server', async () => {
  const heard = [];
  const aborted = new DOMException('the session has ended', 'AbortError');
  const { server, calls } = scripted([aborted, {}], { onReachable: (isReachable) => heard.push(isReachable) });
  await assert.rejects(server.call('GET', '/me'), aborted);
  assert.deepEqual([calls.length, heard], [1, []]);
});

test('the clock is that of the server', async () => {
  const hour = 3_600_000;
  const date = () => ({ headers: { Date: new Date(Date.now() + hour).toUTCString() } });
  const { server } = scripted([date(), date(), { headers: { Date: new Date(Date.now() - hour).toUTCString() } }]);
  assert.ok(Math.abs(server.now() - Date.now()) < 50, 'without a reply, it is that of this machine');
  await server.call('GET', '/me');
  await server.call('GET', '/me');
  assert.ok(Math.abs(server.now() - Date.now() - hour) < 1000);
  await server.call('GET', '/me');
  assert.ok(Math.abs(server.now() - Date.now() + hour) < 1000, 'a clock that was set is followed');
});

test('a reply that is no JSON is a problem', async () => {
  const { server } = scripted([{ headers: { 'Content-Type': 'application/json' }, body: '{"a":' }]);
  await assert.rejects(server.call('GET', '/me'), { code: 'not_filestore', status: 200 });
});

/** A picture of 300 by 100 pixels, from the parts of a BMP. */
function picture(width, height) {
  const row = (width * 3 + 3) & ~3;
  const bytes = Buffer.alloc(54 + row * height, 0x7f);
  bytes.write('BM');
  bytes.writeUInt32LE(bytes.length, 2);
  bytes.writeUInt32LE(0, 6);
  bytes.writeUInt32LE(54, 10);
  bytes.writeUInt32LE(40, 14);
  bytes.writeInt32LE(width, 18);
  bytes.writeInt32LE(height, 22);
  bytes.writeUInt16LE(1, 26);
  bytes.writeUInt16LE(24, 28);
  bytes.fill(0, 30, 54);
  return bytes;
}

test('each width of a srcset is the width of the variant', async () => {
  const bytes = picture(600, 301);
  const record = await upload(there, new File([bytes], 'a.bmp'), PLACE);
  assert.deepEqual([record.width, record.height], [600, 301]);
  for (const fit of ['cover', 'inside']) {
    const set = srcset(there, record, { fit });
    const entries = set.split(', ').map((entry) => entry.split(' '));
    assert.equal(new Set(entries.map(([, width]) => width)).size, entries.length, 'each width once');
    assert.equal(entries.length, fit === 'cover' ? 5 : 6);
    for (const [url, width] of entries) {
      const reply = await fetch(url);
      assert.equal(reply.status, 200, url);
      const told = await widthOf(Buffer.from(await reply.arrayBuffer()));
      assert.equal(`${told}w`, width, url);
      assert.match(reply.headers.get('Cache-Control'), /31536000/);
    }
  }
  assert.equal(srcset(there, record, { sizes: [200] }), `${variantUrl(there, record, 200)} 200w`);
  assert.match(variantUrl(there, record.file_id, 400, { animated: true }), /\/400\/400\?animated=true$/);
  assert.deepEqual(VARIANT_SIZES, [200, 250, 300, 400, 500, 700, 1000]);
});

/** Width of a WebP (RFC 9649) or BMP. */
function widthOf(bytes) {
  if (bytes.toString('latin1', 0, 2) === 'BM') return bytes.readInt32LE(18);
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return bytes.readUInt16LE(26) & 0x3fff;
    case 'VP8L':
      return (bytes.readUInt32LE(21) & 0x3fff) + 1;
    default:
      return bytes.readUIntLE(24, 3) + 1;
  }
}

test('signed links are absolute and need no key', async () => {
  const record = await upload(there, new File(['words'], 'a.txt'), PLACE);
  const { url } = await signedUrl(there, record.file_id, { disposition: 'attachment', expires_in_s: 60 });
  const reply = await fetch(url);
  assert.equal(await reply.text(), 'words');
  await assert.rejects(signedUrl(there, record.file_id, { size: 200, disposition: 'inline' }), { status: 400 });
});

test('a list goes on to its end', async () => {
  const place = { organization_id: '43', sub_system: 'list' };
  const ids = [];
  for (let index = 0; index < 5; index += 1) ids.unshift((await upload(there, new Blob([`${index}`]), place)).file_id);
  const listed = [];
  for await (const record of files(there, { organization_id: '43', limit: 2 })) listed.push(record.file_id);
  assert.deepEqual(listed, ids);
});

test('a key is asked for, and its scopes count', async () => {
  const { key } = await administer(server, 'keys', { name: 'reader', organizations: ['42'], scopes: ['read'] });
  await assert.rejects(there.call('GET', '/files'), { status: 401, code: 'unauthorized' });
  there.key = key;
  const { data } = await there.call('GET', '/me');
  assert.deepEqual(data.key.scopes, ['read']);
  await assert.rejects(upload(there, new Blob(['x']), PLACE), (error) => {
    assert.deepEqual([error.status, error.code, error.allowed], [403, 'forbidden', ['write']]);
    return true;
  });
});
