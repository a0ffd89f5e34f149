// A real server, and a line to it that breaks.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

export { Line } from './line.mjs';

const program = process.env.FILESTORE_SERVER;
assert.ok(program, 'FILESTORE_SERVER names the program of the server');

export const PLACE = { organization_id: '42', sub_system: 'films' };

export function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

/** Asks over the admin socket, which needs no key. */
export async function administer(server, name, body) {
  const headers = { 'Content-Type': 'application/json', Host: 'localhost' };
  const call = request({ socketPath: server.socket, path: `/api/v1/admin/${name}`, method: 'POST', headers });
  call.end(JSON.stringify(body));
  const [reply] = await once(call, 'response');
  const text = (await reply.toArray()).join('');
  assert.ok(reply.statusCode < 300, text);
  return JSON.parse(text);
}

/** Random bytes as a `File`, as a page gets it from an input. */
export function fileOf(size, name = 'grüße.bin', lastModified = 1_700_000_000_000) {
  const bytes = randomBytes(size);
  return { bytes, file: new File([bytes], name, { lastModified }) };
}

/** Waits until `test` holds. */
export async function until(test, what) {
  const deadline = Date.now() + 30_000;
  while (!(await test())) {
    assert.ok(Date.now() < deadline, `not within 30 s: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The program of the server, in a temporary directory. It can be killed, and started again at the same port. */
export class Server {
  #dir;
  #child;
  #config;
  port = 0;

  static async start(config = '') {
    const server = new Server();
    server.#dir = await mkdtemp(path.join(tmpdir(), 'filestore-typescript-'));
    server.#config = config;
    await server.start();
    return server;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Path of the admin socket. */
  get socket() {
    return path.join(this.#dir, 'data', 'admin.sock');
  }

  async start() {
    const config = path.join(this.#dir, 'filestore.toml');
    await writeFile(config, this.#config);
    const args = ['--config', config, '--listen', `127.0.0.1:${this.port}`, '--data-dir', path.join(this.#dir, 'data')];
    this.#child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    let log = '';
    this.#child.stderr.on('data', (text) => (log = (log + text).slice(-4000)));
    for await (const text of createInterface({ input: this.#child.stdout })) {
      const at = text.match(/http:\/\/127\.0\.0\.1:(\d+)/);
      if (at) {
        this.port = Number(at[1]);
        this.#child.stdout.resume();
        return;
      }
    }
    throw new Error(`the server does not listen: ${log}`);
  }

  async kill(signal = 'SIGKILL') {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill(signal);
    await once(this.#child, 'exit');
  }

  async end() {
    await this.kill();
    await rm(this.#dir, { recursive: true, force: true });
  }
}
