// A player whose address no longer works, and one whose file is no sound.
import assert from 'node:assert/strict';
import { client, expect, open } from './harness.mjs';

/** A second of silence, which every browser plays. */
function silence() {
  const samples = Buffer.alloc(8000, 128);
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + samples.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8000, 24);
  head.writeUInt32LE(8000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write('data', 36);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** The address is signed again once. A file that the browser cannot play is told as that. */
export async function player({ browser, gate, server, key }) {
  const { upload } = client(server, key);
  const sound = await upload('silence.wav', silence(), { organization: 'sounds', type: 'audio/wav' });
  const noise = await upload('noise.wav', 'no sound at all', { organization: 'sounds', type: 'audio/wav' });
  expect(/status of 403/);
  const page = await open(browser, gate, 'org/sounds/files', { key });
  let signings = 0;
  await page.route('**/sign', (route) => ((signings += 1), route.continue()));
  await page.route(/[?&]sig=/, (route) => (signings === 1 ? route.fulfill({ status: 403, body: 'over' }) : route.continue()));
  await page.goto(`${gate.url}/console/org/sounds/files/${sound.file_id}`);
  await page.waitForFunction(() => document.querySelector('audio')?.readyState >= 1);
  assert.equal(signings, 2);

  await page.goto(`${gate.url}/console/org/sounds/files/${noise.file_id}`);
  await page.getByText('This browser cannot play audio/wav.').waitFor();
  assert.equal(signings, 4, 'no address is signed for ever');
  expect();
}
