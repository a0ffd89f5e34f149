// The size of the next part of an upload, from the speed of the last.

const MIB = 1 << 20;
const LEAST = MIB;
const MOST = 32 * MIB;
const FIRST = 8 * MIB;
/** The time that one part takes. A break costs at most this time. */
const TARGET_MS = 4000;
const STEP = 256 << 10;

/** The sizes of parts: 8 MiB at first, then 1 to 32 MiB by the measured speed. */
export class PartSize {
  #bytes = FIRST;
  #most = MOST;

  /** The size of the next part, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Notes that the server stored a part of `bytes` after `ms`. */
  stored(bytes: number, ms: number): void {
    // A short last part says little about the speed.
    if (bytes < this.#bytes / 2) return;
    const wanted = (bytes / Math.max(ms, 1)) * TARGET_MS;
    this.#set(Math.min(wanted, this.#bytes * 2));
  }

  /** Notes that a part broke off. */
  broken(): void {
    this.#set(this.#bytes / 2);
  }

  /** Notes that a proxy refuses a body of this size. Returns false if the parts cannot become smaller. */
  refused(): boolean {
    if (this.#bytes <= LEAST) return false;
    this.#most = Math.max(LEAST, this.#bytes / 2);
    this.#set(this.#most);
    return true;
  }

  #set(bytes: number): void {
    this.#bytes = Math.max(LEAST, Math.min(this.#most, Math.round(bytes / STEP) * STEP));
  }
}
