// Flows of administration, by real clicks against a real server: keys, webhooks, bindings, a provider that is down.
//
// Each flow gets `{ page, root, api }`: a signed-in page, the address of the console, and a function that asks the API.
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';

const seen = (locator) => locator.waitFor({ state: 'visible', timeout: 15_000 });
const gone = (locator) => locator.waitFor({ state: 'hidden', timeout: 15_000 });

/** Waits until `check` returns a value, without a fixed pause. */
async function until(check, what) {
  for (const end = Date.now() + 15_000; Date.now() < end; ) {
    const value = await check();
    if (value) return value;
    await new Promise((go) => setTimeout(go, 50));
  }
  throw new Error(`did not happen: ${what}`);
}

async function open(page, root, path, heading) {
  await page.goto(root + path);
  await seen(page.getByRole('heading', { level: 1, name: heading }));
}

/** A key is made, used, rotated with overlap, and revoked. Its text is shown once. */
export async function keys({ page, root, api, ask }) {
  await open(page, root, 'store/keys', 'Keys');
  await page.getByRole('button', { name: 'New key' }).click();
  const dialog = page.getByRole('dialog', { name: 'New key' });
  await dialog.getByRole('button', { name: 'Make key' }).click();
  await seen(dialog.getByText('Give the key a name'));
  await dialog.getByLabel('Name', { exact: true }).fill('web-frontend');
  await dialog.getByLabel('Organization ids').fill('42, 9');
  await dialog.getByLabel('write', { exact: true }).check();
  await dialog.getByRole('button', { name: 'Make key' }).click();
  await gone(dialog);

  const secret = page.locator('[data-secret]');
  const first = await secret.textContent();
  assert.match(first, /^fsk_[0-9a-f]{72}$/);
  assert.equal(await secret.getAttribute('aria-hidden'), 'true', 'a secret is not read aloud by itself');
  assert.equal((await ask(first, '/files?organization_id=42')).status, 200);
  assert.equal((await ask(first, '/files?organization_id=7')).status, 403);
  const row = page.getByRole('row', { name: /web-frontend/ });
  await seen(row.getByText('write', { exact: true }));

  // Closing asks, because the text was not copied.
  await page.getByRole('button', { name: 'Dismiss' }).click();
  const leave = page.getByRole('dialog', { name: 'Close without a copy?' });
  await seen(leave);
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel', 'the focus starts on Cancel');
  await page.keyboard.press('Escape');
  await gone(leave);
  assert.equal(await secret.textContent(), '•'.repeat(24), 'the secret is masked when the focus leaves');

  await row.hover();
  await row.getByRole('button', { name: 'Rotate web-frontend' }).click();
  const rotate = page.getByRole('dialog', { name: 'Rotate web-frontend' });
  assert.ok(await rotate.getByRole('radio', { name: '24 hours' }).isChecked());
  await rotate.getByRole('button', { name: 'Rotate' }).click();
  await gone(rotate);
  const second = await until(async () => {
    const text = await secret.textContent();
    return text !== first && text.startsWith('fsk_') ? text : null;
  }, 'a new secret');
  assert.equal((await ask(first, '/me')).status, 200, 'the secret before is accepted during the overlap');
  assert.equal((await ask(second, '/me')).status, 200);
  await seen(row.getByText(/secret before accepted until/));

  await row.hover();
  await row.getByRole('button', { name: 'Revoke web-frontend' }).click();
  const revoke = page.getByRole('dialog', { name: 'Revoke web-frontend?' });
  await revoke.getByRole('button', { name: 'Revoke' }).click();
  await gone(revoke);
  await gone(row);
  assert.equal((await ask(second, '/me')).status, 401);
  await page.getByText('Ended').click();
  await seen(page.getByRole('row', { name: /web-frontend.*revoked/ }));
  const listed = await api('GET', '/admin/keys');
  assert.ok(listed.find((key) => key.name === 'web-frontend').revoked_at);
}

/** A webhook is made, tested, disabled with undo, fails, and its failures are seen. */
export async function webhooks({ page, root, api }) {
  let status = 204;
  const got = [];
  const receiver = createServer((request, reply) => {
    let body = '';
    request.on('data', (part) => (body += part));
    request.on('end', () => {
      got.push({ body, signature: request.headers['webhook-signature'] });
      reply.writeHead(status).end();
    });
  }).listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  const url = `http://127.0.0.1:${receiver.address().port}/hook`;
  try {
    await open(page, root, 'store/webhooks', 'Webhooks');
    await page.getByRole('button', { name: 'New webhook' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'New webhook' });
    await dialog.getByLabel('URL').fill(url);
    await dialog.getByLabel(/^Name/).fill('search index');
    await dialog.getByRole('button', { name: 'Make webhook' }).click();
    await gone(dialog);
    assert.match(await page.locator('[data-secret]').textContent(), /^whsec_/);

    await page.getByRole('link', { name: 'search index' }).click();
    await seen(page.getByRole('heading', { level: 1, name: /search index/ }));
    await page.getByRole('button', { name: 'Send a test event' }).click();
    await seen(page.getByText(/The endpoint answered 204 in \d+ ms/));
    assert.ok(got.length >= 1 && got[0].signature.startsWith('v1,'));

    await page.getByRole('button', { name: 'Disable' }).click();
    await seen(page.getByRole('heading', { name: 'No events are sent' }));
    await page.getByRole('button', { name: 'Undo' }).click();
    await gone(page.getByRole('heading', { name: 'No events are sent' }));
    await page.getByRole('button', { name: 'Disable' }).click();
    await seen(page.getByRole('heading', { name: 'No events are sent' }));
    const [hook] = await api('GET', '/webhooks');
    assert.equal(hook.state, 'disabled');

    // An endpoint that refuses: the event waits, and is listed.
    status = 400;
    await page.locator('.page-actions').getByRole('button', { name: 'Enable' }).click();
    const enable = page.getByRole('dialog', { name: 'Send events again' });
    await enable.getByRole('button', { name: 'Enable' }).click();
    await gone(enable);
    await api('POST', '/admin/keys', { name: 'for an event', organizations: ['42'], scopes: ['read'] });
    await seen(page.getByRole('row', { name: /key\.created/ }).first());
    status = 204;
  } finally {
    receiver.close();
    receiver.closeAllConnections();
  }
}

/** An organization is bound to another provider, its files are moved there, and the binding ends. */
export async function bindings({ page, root, api, provider, organization = '42' }) {
  await open(page, root, `org/${organization}/storage`, 'Storage');
  await page.getByRole('button', { name: 'Bind to a provider' }).click();
  const dialog = page.getByRole('dialog', { name: 'Bind to a provider' });
  await dialog.getByLabel('Provider').selectOption(provider);
  await dialog.getByLabel('Name of the organization').fill('Atelier Nord');
  await seen(dialog.getByRole('img', { name: new RegExp(`copied to ${provider} in the background`) }));
  await dialog.getByRole('button', { name: `Check ${provider} first` }).click();
  await seen(dialog.getByText(`${provider} can serve`));
  await dialog.getByRole('button', { name: 'Bind', exact: true }).click();
  await gone(dialog);
  const query = `?organizationId=${organization}`;
  const [bound] = await api('GET', `/organization-storage-bindings${query}`);
  assert.deepEqual([bound.storageProvider, bound.syncEnabled, bound.isActive], [provider, true, true]);

  await page.getByRole('button', { name: `Move to ${provider}…` }).click();
  const plan = page.getByRole('dialog', { name: /^Move \d+ files? to/ });
  await seen(plan.getByText('also when this page is closed'));
  await plan.getByRole('button', { name: 'Move', exact: true }).click();
  await gone(plan);
  await seen(page.getByText(`The move to ${provider} has ended`));
  const status = await until(async () => {
    const reply = await api('GET', `/admin/migrate/status${query}`);
    return reply.running === null && reply.holdings.every((one) => one.provider_code === provider) ? reply : null;
  }, 'all files moved');
  assert.ok(status.holdings.length > 0);

  await page.getByRole('button', { name: 'More actions for the binding' }).click();
  await page.getByRole('menuitem', { name: 'End the binding…' }).click();
  const end = page.getByRole('dialog', { name: /^End the binding to/ });
  await end.getByRole('button', { name: 'End the binding' }).click();
  await gone(end);
  await seen(page.getByText('The organization has no binding.'));
  const [ended] = await api('GET', `/organization-storage-bindings${query}`);
  assert.equal(ended.isActive, false);
}

/** The overview names a provider that is down, what waits, and shows its check step by step. */
export async function sickProvider({ page, root, api, provider, organization = 9 }) {
  const body = { organizationId: organization, organizationName: 'Erp North', storageProvider: provider, syncEnabled: true };
  await api('POST', '/organization-storage-bindings/create', body);
  await api('POST', '/admin/sync/enqueue', { organizationId: organization });
  await until(async () => {
    const providers = await api('GET', '/admin/providers');
    return providers.find((one) => one.provider_code === provider).state !== 'closed';
  }, 'the breaker opens');
  await open(page, root, 'store/overview', 'Overview');
  await seen(page.getByRole('heading', { name: new RegExp(`^${provider} `) }));
  await seen(page.getByRole('row', { name: new RegExp(`${provider}.*(Down|On trial)`) }));
  await page.getByRole('row', { name: new RegExp(provider) }).getByRole('button', { name: `Check ${provider}` }).click();
  const dialog = page.getByRole('dialog', { name: `Check of ${provider}` });
  await dialog.getByText(`${provider} cannot serve`).waitFor({ timeout: 90_000 });
  await seen(dialog.getByText('failed').first());
  await page.keyboard.press('Escape');
  await gone(dialog);
}

/** A backup is taken and verified, and the store is checked. */
export async function backupAndCheck({ page, root, destination }) {
  await open(page, root, 'store/backups', 'Backups');
  await page.getByRole('button', { name: `Back up to ${destination}` }).click();
  const make = page.getByRole('dialog', { name: `Back up to ${destination}` });
  await make.getByRole('button', { name: 'Back up', exact: true }).click();
  await seen(page.getByText(/^Snapshot of [\d,]+ files? taken$/));
  await page.getByRole('button', { name: /^Verify the snapshot/ }).first().click();
  await seen(page.getByText('The snapshot is intact'));

  await open(page, root, 'store/checks', 'Checks');
  await page.getByRole('button', { name: 'Check now' }).click();
  const dialog = page.getByRole('dialog', { name: 'Check the store' });
  await dialog.getByLabel('Where').selectOption('LOCAL');
  await dialog.getByRole('button', { name: 'Check', exact: true }).click();
  await gone(dialog);
  await seen(page.getByText('Names and sizes')); // of the last check

  await page.getByRole('button', { name: 'Check now' }).click();
  await dialog.getByLabel('List each finding on this page').check();
  await dialog.getByRole('button', { name: 'Check', exact: true }).click();
  await seen(page.getByText(/^The check (looked|found)/));
}

const HOSTILE = '\u202e<img src=x onerror=alert(1)>\u200b"><script>alert(2)</script>';

/** Names of keys, webhooks and organizations are text: nothing in them runs, and hidden characters are seen. */
export async function hostileNames({ page, root, api }) {
  const key = await api('POST', '/admin/keys', { name: HOSTILE, organizations: ['42'], scopes: ['read'] });
  const hook = await api('POST', '/webhooks', { url: 'http://127.0.0.1:1080/hook', name: HOSTILE, types: ['file.*'] });
  const body = { organizationId: 77, organizationName: HOSTILE, storageProvider: 'LOCAL', syncEnabled: true };
  await api('POST', '/organization-storage-bindings/create', body);
  let alerts = 0;
  page.on('dialog', (dialog) => {
    alerts += 1;
    void dialog.dismiss();
  });
  for (const [path, heading] of [
    ['store/keys', 'Keys'],
    ['store/webhooks', 'Webhooks'],
    [`store/webhooks/${hook.id}`, /img src/],
    ['store/organizations', 'Organizations'],
    ['org/77/storage', 'Storage'],
  ]) {
    await open(page, root, path, heading);
    await seen(page.locator('main').getByText('<script>').first());
    assert.equal(await page.locator('main img[src="x"], main script').count(), 0, path);
  }
  await open(page, root, 'store/keys', 'Keys');
  await seen(page.getByRole('img', { name: 'right-to-left override' }).first());
  assert.equal(alerts, 0);
  await api('POST', `/admin/keys/${key.id}/revoke`, {});
  await api('DELETE', `/webhooks/${hook.id}`);
}

/** On an open server, the bar makes the first key: it is confirmed, shown once, and this page goes on with it. */
export async function firstKey({ page, root, ask }) {
  await page.goto(root);
  await page.getByRole('button', { name: 'Make the first key' }).click();
  const dialog = page.getByRole('dialog', { name: 'Make the first key' });
  await dialog.getByRole('button', { name: 'Make key' }).click();
  await seen(dialog.getByText('Confirm that every program needs a key from now on.'));
  assert.equal((await ask(null, '/me')).status, 200, 'nothing is made before it is confirmed');
  await dialog.getByLabel('From now on every program needs a key').check();
  await dialog.getByRole('button', { name: 'Make key' }).click();
  await seen(page.getByRole('heading', { level: 1, name: 'Keys' }));
  const key = await page.locator('[data-secret]').textContent();
  assert.equal((await ask(null, '/me')).status, 401, 'the server is closed');
  assert.equal((await ask(key, '/me')).status, 200);
  await seen(page.getByRole('row', { name: /admin this session/ }));
}

/** The key of the session gets a new secret at once, and is shown although the server says nothing more. */
export async function ownKey({ browser, root, api, ask }) {
  const made = await api('POST', '/admin/keys', { name: 'rotates itself', organizations: ['*'], scopes: ['admin'] });
  const context = await browser.newContext();
  await context.addInitScript((key) => {
    if (sessionStorage.getItem('filestore-key') === null) sessionStorage.setItem('filestore-key', key);
  }, made.key);
  const page = await context.newPage();
  await open(page, root, 'store/keys', 'Keys');
  const row = page.getByRole('row', { name: /rotates itself/ });
  await row.hover();
  await row.getByRole('button', { name: 'Rotate rotates itself' }).click();
  const rotate = page.getByRole('dialog', { name: 'Rotate rotates itself' });
  await rotate.getByRole('radio', { name: 'None' }).check();
  const asked = page.waitForEvent('requestfailed', (request) => request.url().endsWith('/me'));
  await page.route('**/api/v1/me', (route) => route.abort());
  await rotate.getByRole('button', { name: 'Rotate' }).click();
  await asked;
  await gone(rotate);
  const secret = await page.locator('[data-secret]').textContent();
  assert.equal((await ask(made.key, '/me')).status, 401);
  assert.equal((await ask(secret, '/me')).status, 200);
  await page.unroute('**/api/v1/me');
  await page.reload();
  await seen(page.getByRole('heading', { level: 1, name: 'Keys' }));
  await context.close();
}

/** A key is made and revoked by the keyboard alone. The focus is never lost. */
export async function keysByKeyboard({ page, root, ask }) {
  const { keyboard } = page;
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? document.activeElement?.textContent ?? '');
  /** Tabs until the focus is on a control, at most 60 times. */
  const tabTo = async (name) => {
    for (let steps = 0; steps < 60; steps += 1) {
      if (name.test(await focused())) return;
      await keyboard.press('Tab');
    }
    assert.fail(`not reached by Tab: ${name}`);
  };
  await open(page, root, 'store/keys', 'Keys');
  await seen(page.getByRole('table', { name: 'Keys in use' }));
  await tabTo(/^New key$/);
  await keyboard.press('Enter');
  await seen(page.getByRole('dialog', { name: 'New key' }));
  await keyboard.type('by-keyboard'); // the focus is in the first field
  await keyboard.press('Tab');
  await keyboard.press('ArrowDown'); // all organizations
  await keyboard.press('Enter');
  const secret = page.locator('[data-secret]');
  await seen(secret);
  assert.equal((await ask(await secret.textContent(), '/me')).status, 200);
  assert.match(await focused(), /Copy/, 'the focus goes to the secret');
  await keyboard.press('Shift+Tab');
  await keyboard.press('Enter');
  assert.equal(await secret.getAttribute('aria-hidden'), 'false', 'a screen reader gets it after Show');

  await tabTo(/^Revoke by-keyboard$/);
  await keyboard.press('Enter');
  await seen(page.getByRole('dialog', { name: 'Revoke by-keyboard?' }));
  await keyboard.press('Enter'); // on Cancel
  await gone(page.getByRole('dialog', { name: 'Revoke by-keyboard?' }));
  await until(async () => /^Revoke by-keyboard$/.test(await focused()), 'the focus returns');
  await keyboard.press('Enter');
  await seen(page.getByRole('dialog', { name: 'Revoke by-keyboard?' }));
  await keyboard.press('Tab');
  assert.match(await focused(), /^Revoke$/);
  await keyboard.press('Enter');
  await gone(page.getByRole('row', { name: /by-keyboard/ }));
}

/** A key is revoked by touch, where nothing hovers: by the menu of its row. */
export async function keysByTouch({ page, root, api, ask }) {
  const { key } = await api('POST', '/admin/keys', { name: 'by-touch', organizations: ['42'], scopes: ['read'] });
  await open(page, root, 'store/keys', 'Keys');
  await page.getByRole('button', { name: 'Actions for by-touch' }).tap();
  await page.getByRole('menuitem', { name: 'Revoke' }).tap();
  await page.getByRole('dialog', { name: 'Revoke by-touch?' }).getByRole('button', { name: 'Revoke' }).tap();
  await gone(page.getByRole('button', { name: 'Actions for by-touch' }));
  assert.equal((await ask(key, '/me')).status, 401);
}
