// A line to a server that breaks on demand.
import { once } from 'node:events';
import { connect, createServer } from 'node:net';

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
  /** The line takes no more after a reply like this. For example, the reply to the first part of an upload. */
  holdAt = undefined;

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
      if (this.holdAt?.test(bytes.toString('latin1'))) {
        this.holdAt = undefined;
        this.most = 0;
      }
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
