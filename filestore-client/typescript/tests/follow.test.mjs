// The log of events of a real server, over a line that breaks.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Connection, follow, upload } from '../dist/index.js';
import { Line, PLACE, Server, until } from './support.mjs';

let server;
let line;
let direct;
let there;

before(async () => {
  server = await Server.start();
  line = await Line.to(server);
  direct = new Connection({ url: server.url });
  there = new Connection({ url: line.url });
});
after(async () => {
  await line?.end();
  await server?.end();
});

const stored = async (text) => (await upload(direct, new Blob([text]), PLACE)).file_id;

/** Follows the log into a list, until the signal. */
function followed(options) {
  const seen = { ids: [], files: [], places: [], opened: 0, failure: undefined };
  const following = (async () => {
    const onPlace = (place) => seen.places.push(place);
    const onConnected = (isConnected) => (seen.opened += isConnected ? 1 : 0);
    for await (const event of follow(there, { types: ['file.uploaded'], onPlace, onConnected, ...options })) {
      seen.ids.push(event.id);
      seen.files.push(event.data.file_id);
    }
  })();
  seen.ended = following.catch((error) => (seen.failure = error));
  return seen;
}

test('each event arrives once and in order, over breaks and a restart of the server', async () => {
  const stop = new AbortController();
  const seen = followed({ signal: stop.signal });
  await until(() => seen.places.length > 0, 'the stream tells where it begins');
  const expected = [];
  for (let round = 0; round < 6; round += 1) {
    expected.push(await stored(`before ${round}`));
    await until(() => seen.files.length === expected.length, 'an event');
    if (round === 3) {
      await server.kill();
      await server.start();
    } else {
      line.cut();
    }
    expected.push(await stored(`during ${round}`));
  }
  await until(() => seen.files.length >= expected.length, 'all events');
  assert.deepEqual(seen.files, expected);
  assert.equal(new Set(seen.ids).size, expected.length);
  assert.ok(seen.opened >= 7, `${seen.opened} connections`);
  stop.abort();
  await seen.ended;
  assert.equal(seen.failure, undefined);

  // A later run continues at the last place.
  const later = new AbortController();
  const missed = await stored('while nobody follows');
  const rest = followed({ after: seen.places.at(-1), signal: later.signal });
  await until(() => rest.files.length === 1, 'the missed event');
  assert.deepEqual(rest.files, [missed]);
  later.abort();
  await rest.ended;
});

test('a caller that stops closes the connection', async () => {
  const expected = await stored('first');
  let id;
  const signals = [];
  const watched = (url, init) => {
    signals.push(init.signal);
    return fetch(url, init);
  };
  const listener = new Connection({ url: server.url, fetch: watched });
  for await (const event of follow(listener, { after: 'start', types: ['file.*'], organization_id: '42' })) {
    id = event.data.file_id;
    if (id === expected) break;
  }
  assert.equal(id, expected);
  assert.deepEqual(signals.map((signal) => signal.aborted), [true]);
});

test('a place that the log no longer has is a problem', async () => {
  const unknown = Buffer.alloc(16, 9).toString('base64url');
  await assert.rejects(
    async () => {
      for await (const event of follow(there, { after: unknown })) assert.fail(event);
    },
    { name: 'Problem', status: 410, code: 'events_gone' },
  );
  await assert.rejects(
    async () => {
      for await (const event of follow(there, { types: ['file.unknown'] })) assert.fail(event);
    },
    { status: 400, code: 'invalid_field', field: 'types' },
  );
});
