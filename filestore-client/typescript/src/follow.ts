// Follows the log of events over one connection after the other.
import type { Connection, OptionsOf } from './call.js';
import { Problem } from './problem.js';
import { pause, pauseMs } from './retry.js';
import type { EventType, LogEvent } from './schema.js';

/** Which events to follow, and from where. */
export interface FollowOptions {
  /** The id of an event, `start` (the oldest that is kept) or `end` (default: only later events). */
  after?: string | undefined;
  /** Only these types. `file.*` stands for all types that begin with `file.`. */
  types?: readonly (EventType | 'file.*')[] | undefined;
  /** Only events of this organization. */
  organization_id?: string | undefined;
  /** Ends the iteration. */
  signal?: AbortSignal | undefined;
  /**
   * Is called with every place in the log, also past events that you do not see. To continue later, pass the last
   * place as `after`.
   */
  onPlace?: ((id: string) => void) | undefined;
  /** Is called when a connection is open (true) and when it has ended or failed (false). */
  onConnected?: ((isConnected: boolean) => void) | undefined;
}

/** The shortest silence after which a connection counts as broken. The server sends a comment every 15 s. */
const SILENCE_MS = 45_000;
/** Pauses after a failure. The server itself asks for two seconds when it ends a stream in good order. */
const PAUSES = { attempts: Infinity, baseMs: 500, capMs: 30_000, longestRetryAfterS: Infinity };

/**
 * Follows the log of events. The iteration ends when `signal` is aborted.
 *
 * After a break, it connects again and continues after the last event. It fails with a {@link Problem} if no retry can
 * help. With the code `events_gone`, the log no longer has your place: read the records again, and follow from `end`.
 *
 * ```ts
 * for await (const event of follow(server, { types: ['file.ready'], after: saved, signal })) {
 *   await handle(event.data.file_id);
 *   saved = event.id;
 * }
 * ```
 */
export async function* follow(server: Connection, options: FollowOptions = {}): AsyncGenerator<LogEvent, void, void> {
  const { signal, onConnected } = options;
  const place: Place = { after: options.after ?? 'end', id: undefined, retryMs: 2000 };
  let failures = 0;
  while (!signal?.aborted) {
    let wait;
    try {
      for await (const event of stream(server, options, place, () => (failures = 0))) yield event;
      // Jitter, because the server ended all its streams in the same moment.
      wait = Math.random() * place.retryMs;
    } catch (error) {
      if (signal?.aborted) return;
      if (!(error instanceof Problem) || !error.isTemporary) throw error;
      failures += 1;
      wait = pauseMs(PAUSES, failures, error);
    } finally {
      onConnected?.(false);
    }
    await pause(wait, signal).catch(() => undefined);
  }
}

interface Place {
  /** Where the first connection begins. */
  after: string;
  /** The last id that the server has sent. */
  id: string | undefined;
  retryMs: number;
}

/** Yields the events of one connection. */
async function* stream(
  server: Connection,
  options: FollowOptions,
  place: Place,
  alive: () => void,
): AsyncGenerator<LogEvent, void, void> {
  // Ends the connection when the caller stops to iterate, and after a silence.
  const own = new AbortController();
  const end = () => own.abort(options.signal?.reason);
  options.signal?.addEventListener('abort', end);
  let watch: ReturnType<typeof setTimeout> | undefined;
  const listen = () => {
    clearTimeout(watch);
    watch = setTimeout(() => own.abort(), SILENCE_MS);
  };
  try {
    listen();
    if (place.after === 'end') {
      // The end moves, and a stream without events might break before it tells where it began.
      const query = { after: 'end', organization_id: options.organization_id };
      place.after = (await server.call('GET', '/events', { query, signal: own.signal, attempts: 1 })).data.next;
      options.onPlace?.(place.after);
    }
    const response = await server.request('GET', '/events', request(options, place, own.signal));
    if (!response.headers.get('Content-Type')?.startsWith('text/event-stream') || !response.body) {
      throw new Problem({ status: response.status, detail: 'the reply is not an event stream' });
    }
    options.onConnected?.(true);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const blocks = new Blocks();
    for (;;) {
      listen();
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      for (const block of blocks.read(value)) {
        if (block.data !== undefined) yield parsed(block.data);
        // After the event: a caller that stops within its loop gets the event again.
        if (block.id !== undefined && block.id !== place.id) {
          place.id = block.id;
          options.onPlace?.(block.id);
        }
      }
      place.retryMs = Math.min(blocks.retryMs ?? place.retryMs, 60_000);
    }
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw new Problem({ code: 'unreachable', detail: 'the stream of events broke off', cause: error });
  } finally {
    clearTimeout(watch);
    options.signal?.removeEventListener('abort', end);
    own.abort();
  }
}

function parsed(text: string): LogEvent {
  try {
    return JSON.parse(text) as LogEvent;
  } catch (error) {
    throw new Problem({ status: 200, detail: 'the stream of events has an event that is not JSON', cause: error });
  }
}

function request(options: FollowOptions, place: Place, signal: AbortSignal): OptionsOf<'GET', '/events'> {
  const { types, organization_id } = options;
  return {
    query: { after: place.after, types: types?.join(','), organization_id },
    headers: { Accept: 'text/event-stream', 'Last-Event-ID': place.id },
    signal,
    attempts: 1,
  };
}

/** A block with an id, or with data. */
export interface Block {
  id: string | undefined;
  data: string | undefined;
}

/** Reads the text of an event stream, however it is cut (WHATWG HTML section 9.2.6). */
export class Blocks {
  /** The pause that the server wants before the next connection, in milliseconds. */
  retryMs: number | undefined;
  #rest = '';
  #id: string | undefined;
  #data: string | undefined;
  #isEmpty = true;

  /** Reads more text. Returns the blocks that it completes. */
  read(text: string): Block[] {
    this.#rest += text;
    const complete: Block[] = [];
    // A CR at the end can be the first half of CRLF, so it waits for the next text.
    const lines = this.#rest.split(/\r\n|\n|\r(?=[^])/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const block = this.#line(line);
      if (block) complete.push(block);
    }
    return complete;
  }

  #line(line: string): Block | undefined {
    if (line === '') {
      const block = this.#isEmpty ? undefined : { id: this.#id, data: this.#data };
      [this.#data, this.#isEmpty] = [undefined, true];
      return block;
    }
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (name === 'id' && !value.includes('\0')) {
      this.#id = value === '' ? undefined : value;
      this.#isEmpty = false;
    } else if (name === 'data') {
      this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
      this.#isEmpty = false;
    } else if (name === 'retry' && /^\d+$/.test(value)) {
      this.retryMs = Number(value);
    }
    return undefined;
  }
}
