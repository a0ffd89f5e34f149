// The console as people use it. Arguments: URL of the server (open, empty), a directory for screenshots, the program of
// the browser, console/dist, URL of a second server like the first, the directory of the kept pictures. Times are printed
// and never asserted.
import { mkdir } from 'node:fs/promises';
import { faults, launch } from './harness.mjs';
import { openGate } from './gate.mjs';
import * as parts from './parts.mjs';

const [server, out, chromium, dist, second, kept] = process.argv.slice(2);
await mkdir(out, { recursive: true });
const began = Date.now();
const asked = [];
const gate = await openGate(server, dist, (what) => asked.push(what));
if (!gate.own) console.error('console: the server has no console, so the page comes from dist/');
const browser = await launch(chromium);
const story = { browser, gate, server, out, dist, asked, second, kept, key: undefined };
const only = process.env.FILESTORE_CONSOLE_ONLY?.split(',');

let failed = false;
for (const [name, part] of Object.entries(parts.STORY)) {
  if (only && !only.includes(name) && !['start'].includes(name)) continue;
  const start = Date.now();
  try {
    await part(story);
    console.error(`console: ${name}, ${((Date.now() - start) / 1000).toFixed(1)} s`);
  } catch (error) {
    failed = true;
    console.error(`console: ${name} FAILED: ${error.stack ?? error}`);
    for (const context of browser.contexts()) {
      for (const page of context.pages()) await page.screenshot({ path: `${out}/failed-${name}.png` }).catch(() => {});
    }
    if (name === 'start') break;
  }
  for (const context of browser.contexts()) await context.close();
}
await browser.close();
gate.close();
for (const fault of [...new Set(faults)].slice(0, 40)) console.error(`console: fault: ${fault}`);
console.error(`console: ${((Date.now() - began) / 1000).toFixed(0)} s in all`);
process.exit(failed || faults.length > 0 ? 1 : 0);
