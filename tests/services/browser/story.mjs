// What Chromium does with uploaded files. Arguments: URL of the server, a directory with film.mp4 and lies to
// work in, the program.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import path from 'node:path';
import puppeteer from 'puppeteer-core';

const [server, work, chromium] = process.argv.slice(2);
const RAN = "document.title = 'ran'; globalThis.ran = true;";

async function upload(name, type, bytes) {
  const form = new FormData();
  form.set('organization_id', '1');
  form.set('sub_system', 'browser');
  form.set('mime_type', type);
  form.set('file', new Blob([bytes]), name);
  const reply = await fetch(`${server}/api/v1/files/upload`, { method: 'POST', body: form });
  assert.equal(reply.status, 201, await reply.clone().text());
  return `${server}/api/v1/files/${(await reply.json()).file_id}`;
}

// A page of the service itself, without a policy of its own.
async function own(page) {
  await page.goto(`${server}/api/v1/health-checks`);
}

// Opens a file that is to be saved, and tells how the page looks afterwards.
async function opened(page, url) {
  await own(page);
  await page.goto(url).catch((error) => assert.match(String(error), /ERR_ABORTED/));
  return page.evaluate(() => ({ ran: globalThis.ran === true, title: document.title }));
}

// Adds an element to a page of the service's origin, and waits for what comes of it.
function added(page, tag, attributes) {
  return page.evaluate(
    (tag, attributes) =>
      new Promise((done) => {
        const element = Object.assign(document.createElement(tag), attributes);
        element.onload = () => done('loaded');
        element.onerror = () => done('refused');
        document.documentElement.append(element);
      }),
    tag,
    attributes,
  );
}

async function pagesDoNothing(page) {
  const html = `<!doctype html><title>x</title><script>${RAN}</script>`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg"><script>${RAN}</script></svg>`;
  const files = [
    ['a.html', 'text/html', html],
    ['a.xhtml', 'application/xhtml+xml', html],
    ['a.svg', 'image/svg+xml', svg],
    ['a.js', 'text/javascript', RAN],
    // A lie: bytes that are a page, under a type that is shown.
    ['a.png', 'image/png', html],
  ];
  for (const [name, type, text] of files) {
    const url = await upload(name, type, text);
    for (const query of ['', '?disposition=inline']) {
      const { ran, title } = await opened(page, url + query);
      assert.ok(!ran && title !== 'ran', `${name}${query} ran`);
    }
  }
}

async function tagsTakeNothingIn(page) {
  const styles = await upload('a.css', 'text/css', 'html { color: rgb(1, 2, 3) }');
  for (const type of ['text/javascript', 'application/javascript', 'text/plain', 'text/html']) {
    const url = await upload('a.js', type, RAN);
    for (const attributes of [{ src: url }, { src: url, type: 'module' }]) {
      await own(page);
      assert.equal(await added(page, 'script', attributes), 'refused', `${type} as a script`);
      assert.equal(await page.evaluate(() => globalThis.ran), undefined, `${type} ran`);
    }
  }

  await own(page);
  assert.equal(await added(page, 'link', { rel: 'stylesheet', href: styles }), 'refused');
  const worker = await upload('w.js', 'text/javascript', RAN);
  const registered = page.evaluate((url) => navigator.serviceWorker.register(url).then(() => true), worker);
  await assert.rejects(registered, 'a service worker is refused');
}

// The files whose records say a type that is none: [{ atBucket, kind, type, url }].
async function lies() {
  const lines = (await readFile(path.join(work, 'lies'), 'utf8')).trim().split('\n');
  return lines.map((line) => {
    const [organization, kind, type, id] = line.split('\t');
    return { atBucket: organization === '2', kind, type, url: `${server}/api/v1/files/${id}` };
  });
}

// A blank page of the origin of `url`, without a policy of its own and in standards mode.
async function blank(page, url) {
  const at = new URL('/blank', url).href;
  const answer = (request) =>
    request.url() === at
      ? request.respond({ contentType: 'text/html', body: '<!doctype html><title>blank</title>' })
      : request.continue();
  await page.setRequestInterception(true);
  page.on('request', answer);
  await page.goto(at);
  page.off('request', answer);
  await page.setRequestInterception(false);
}

// Takes a script or a style sheet in by a tag, on a page of the origin that the bytes come from. Without nosniff every
// classic script runs, whatever its type; a module needs the type.
async function takenIn(page, kind, url) {
  await blank(page, url);
  const outcomes = [];
  if (kind === 'style') {
    // Without nosniff a sheet of another type counts as loaded, and is not applied.
    await added(page, 'link', { rel: 'stylesheet', href: url });
    const color = await page.evaluate(() => getComputedStyle(document.documentElement).color);
    if (color === 'rgb(1, 2, 3)') outcomes.push('applied');
  } else {
    outcomes.push(await added(page, 'script', { src: url, type: 'module' }));
    if (new URL(url).origin === server) outcomes.push(await added(page, 'script', { src: url }));
    if (await page.evaluate(() => globalThis.ran === true)) outcomes.push('ran');
  }
  return outcomes;
}

// Where the bytes of a file come from: the service, or the bucket that it redirects to.
async function origin({ atBucket, url }) {
  const reply = await fetch(url, { redirect: 'manual' });
  assert.equal(reply.status, atBucket ? 302 : 200, url);
  return atBucket ? reply.headers.get('location') : url;
}

async function liesDoNothing(page) {
  const planted = await lies();
  assert.equal(planted.length, 10);
  const failures = [];
  for (const lie of planted) {
    const place = `${lie.type} at the ${lie.atBucket ? 'bucket' : 'service'}`;
    const url = await origin(lie);
    if (lie.kind === 'page') {
      const { ran, title } = await opened(page, lie.url);
      if (ran || title === 'ran') failures.push(`${place} was shown as a page`);
    } else {
      const outcomes = await takenIn(page, lie.kind, url);
      if (outcomes.some((outcome) => outcome !== 'refused')) failures.push(`${place}: ${outcomes}`);
    }
    const { headers } = await fetch(url);
    if (headers.get('content-type') !== 'application/octet-stream') {
      failures.push(`${place} is sent as ${headers.get('content-type')}`);
    }
  }
  assert.deepEqual(failures, []);
}

// The control of the above: Chromium reads the header as a list, and takes its last type. If it ever stops, the lies
// above prove nothing.
async function theTrickWorksWhereTypesAreSentAsTheyAre(page) {
  const careless = createServer((request, reply) => {
    const type = new URL(request.url, server).searchParams.get('type');
    reply.writeHead(200, { 'content-type': type ?? 'text/plain', 'x-content-type-options': 'nosniff' });
    reply.end(type === 'text/plain;,text/javascript' ? RAN : '<title>ran</title>');
  });
  await new Promise((listening) => careless.listen(0, '127.0.0.1', listening));
  try {
    const url = (type) => `http://127.0.0.1:${careless.address().port}/?type=${encodeURIComponent(type)}`;
    await blank(page, url('text/plain'));
    assert.equal(await added(page, 'script', { src: url('text/plain;,text/javascript') }), 'loaded');
    assert.equal(await page.evaluate(() => globalThis.ran), true);
    await page.goto(url('text/plain;,text/html'));
    assert.equal(await page.title(), 'ran');
  } finally {
    careless.closeAllConnections();
    careless.close();
  }
}

async function picturesShow(page) {
  const png = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  const url = await upload('dot.png', 'image/png', png);
  await own(page);
  assert.equal(await added(page, 'img', { src: url }), 'loaded');
  // Not the 304 that a page it has shown would get.
  await page.setCacheEnabled(false);
  const reply = await page.goto(url);
  assert.equal(reply.headers()['content-disposition'].split(';')[0], 'inline');
  assert.equal(await page.evaluate(() => document.images[0].naturalWidth), 1);
}

async function documentsOpen(page) {
  const pdf = `%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj
trailer<</Root 1 0 R>>
`;
  const url = await upload('a.pdf', 'application/pdf', pdf);
  const reply = await page.goto(url);
  assert.equal(reply.headers()['content-type'], 'application/pdf');
  // The viewer is an extension in a frame, and shows the document in a frame of its own.
  await page.waitForFrame((frame) => frame.url().startsWith('chrome-extension://'));
  await page.waitForFrame((frame) => frame.url() === url && frame.parentFrame() !== null);
}

async function filmsPlayAndSeek(page) {
  const url = await upload('film.mp4', 'video/mp4', await readFile(path.join(work, 'film.mp4')));
  await page.goto(url);
  await page.waitForSelector('video');
  const times = await page.evaluate(async () => {
    const video = document.querySelector('video');
    const once = (name) => new Promise((done) => video.addEventListener(name, done, { once: true }));
    if (video.readyState < 1) await once('loadedmetadata');
    video.muted = true;
    const seeked = once('seeked');
    video.currentTime = 15;
    await seeked;
    const playing = once('timeupdate');
    await video.play();
    await playing;
    return { duration: video.duration, at: video.currentTime };
  });
  assert.ok(Math.abs(times.duration - 20) < 1 && times.at >= 15, JSON.stringify(times));
}

const browser = await puppeteer.launch({
  executablePath: chromium,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--autoplay-policy=no-user-gesture-required'],
});
try {
  for (const part of [
    pagesDoNothing,
    tagsTakeNothingIn,
    liesDoNothing,
    theTrickWorksWhereTypesAreSentAsTheyAre,
    picturesShow,
    documentsOpen,
    filmsPlayAndSeek,
  ]) {
    const page = await browser.newPage();
    await part(page);
    await page.close();
    console.log(`${part.name}: ok`);
  }
} finally {
  await browser.close();
}
