// A real server, and a line to it that breaks.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';

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

/**
 * A line to the server. `budgets` has the breaks to come: after so many bytes of the clients, or, if the number is
 * negative, after so many bytes of the server.
 */
export class Line {
  #listener = createServer((client) => this.#carry(client));
  #open = new Set();
  #target;
  budgets = [];
  breaks = 0;
  /** Bytes of the clients that went through. */
  carried = 0;
  /** Bytes of the clients after which the line takes no more. */
  most = Infinity;

  static async to(server) {
    const line = new Line();
    line.#target = server;
    line.#listener.listen(0, '127.0.0.1');
    await once(line.#listener, 'listening');
    return line;
  }

  get url() {
    return `http://127.0.0.1:${this.#listener.address().port}`;
  }

  /** Breaks all connections now. */
  cut() {
    for (const socket of this.#open) socket.resetAndDestroy();
  }

  async end() {
    this.cut();
    this.#listener.close();
    await once(this.#listener, 'close');
  }

  #carry(client) {
    const server = connect(this.#target.port, '127.0.0.1');
    const sockets = [client, server];
    const broken = () => {
      this.breaks += 1;
      this.budgets.shift();
      for (const socket of sockets) socket.resetAndDestroy();
    };
    client.on('data', (bytes) => {
      this.carried += bytes.length;
      const left = this.budgets[0] ?? Infinity;
      if (left >= 0 && bytes.length >= left) {
        // The server still gets the bytes before the break.
        server.write(bytes.subarray(0, left), () => broken());
        client.pause();
        return;
      }
      if (left >= 0 && left !== Infinity) this.budgets[0] = left - bytes.length;
      if (this.carried > this.most) client.pause();
      else if (!server.write(bytes)) {
        client.pause();
        server.once('drain', () => client.resume());
      }
    });
    server.on('data', (bytes) => {
      const left = this.budgets[0] ?? Infinity;
      if (left < 0) {
        if (bytes.length >= -left) return broken();
        this.budgets[0] = left + bytes.length;
      }
      client.write(bytes);
    });
    for (const socket of sockets) {
      this.#open.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#open.delete(socket);
        for (const other of sockets) other.destroy();
      });
    }
  }
}
