// What every part of the story uses: a browser whose pages report errors, violations of the policy and foreign requests.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { chromium } from 'playwright-core';

const AXE = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const FLAGS = ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--force-color-profile=srgb', '--enable-precise-memory-info', '--js-flags=--expose-gc'];

export async function launch(executablePath) {
  return chromium.launch({ executablePath, args: FLAGS });
}

/** Faults of all pages: none may be left at the end. */
export const faults = [];
/** Console errors that a part of the story provokes, for example the 401 of a revoked key. */
let expected = [];
export const expect = (...patterns) => (expected = patterns);

/** A page of its own, signed in with a key if one is given. */
export async function open(browser, gate, address, { key, width = 1440, height = 900, scheme = 'light', touch = false } = {}) {
  const context = await browser.newContext({
    viewport: { width, height }, colorScheme: scheme, locale: 'en-GB', timezoneId: 'Europe/Berlin', hasTouch: touch, reducedMotion: 'reduce',
    acceptDownloads: true,
  });
  if (key) await context.addInitScript((text) => sessionStorage.setItem('filestore-key', text), key);
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
    });
  });
  const page = await context.newPage();
  const note = (text) => {
    if (!expected.some((pattern) => pattern.test(text))) faults.push(`${page.url()}: ${text}`);
  };
  page.on('console', (message) => message.type() === 'error' && note(`${message.text()} ${message.location().url}`));
  page.on('pageerror', (error) => note(`uncaught ${error.stack ?? error}`));
  page.on('dialog', (dialog) => (note(`dialog ${dialog.message()}`), void dialog.dismiss()));
  page.on('request', (request) => {
    if (/^https?:/.test(request.url()) && !request.url().startsWith(gate.url)) note(`request to another origin: ${request.url()}`);
  });
  page.setDefaultTimeout(15_000);
  await page.goto(`${gate.url}/console/${address}`);
  return page;
}

/** Lets axe look at a page. Its script comes by the debugger, which the page's policy does not bind. */
export async function axe(page, name) {
  await page.evaluate(AXE);
  const found = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], resultTypes: ['violations'],
    });
    return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map((node) => `${node.target.join(' ')} ${node.html.slice(0, 120)} ${node.any[0]?.message ?? ''}`).join(' | ')}`);
  });
  return found.map((text) => `${name}: ${text}`);
}

/** Waits until a condition holds in the test, for example at the server. */
export async function until(what, holds, ms = 15_000) {
  const end = Date.now() + ms;
  for (;;) {
    if (await holds()) return;
    assert.ok(Date.now() < end, `not within ${ms} ms: ${what}`);
    await new Promise((go) => setTimeout(go, 50));
  }
}

export function client(url, key) {
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const api = async (method, route, body) => {
    const reply = await fetch(`${url}/api/v1${route}`, {
      method, headers: body && !(body instanceof FormData) ? { ...headers, 'Content-Type': 'application/json' } : headers,
      ...(body ? { body: body instanceof FormData ? body : JSON.stringify(body) } : {}),
    });
    const text = await reply.text();
    assert.ok(reply.ok, `${method} ${route}: ${reply.status} ${text}`);
    return JSON.parse(text);
  };
  const upload = (name, bytes, { organization = '42', subSystem = 'gallery', type, metadata, temp } = {}) => {
    const form = new FormData();
    form.set('organization_id', organization);
    form.set('sub_system', subSystem);
    form.set('original_name', name);
    if (type) form.set('mime_type', type);
    if (metadata) form.set('metadata', JSON.stringify(metadata));
    if (temp) form.set('upload_temp', 'true');
    form.set('file', new Blob([bytes]), 'file');
    return api('POST', '/files/upload', form);
  };
  return { api, upload };
}

export const shot = (page, out, name) => page.screenshot({ path: path.join(out, `${name}.png`) });
