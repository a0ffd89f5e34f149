// The clock of the server, from the `Date` of its replies.

/**
 * Estimates the server's time. `Date` has whole seconds, so each reply gives a range for the difference of the clocks.
 * Replies at different moments narrow it.
 */
export class Clock {
  #least = -Infinity;
  #most = Infinity;

  /** Takes a reply into account: `sentMs` and `receivedMs` are the times of this machine. */
  see(date: string | null, sentMs: number, receivedMs: number): void {
    const second = date === null ? NaN : Date.parse(date);
    if (Number.isNaN(second)) return;
    const [least, most] = [second - receivedMs, second + 1000 - sentMs];
    if (least > this.#most || most < this.#least) {
      // A clock was set.
      [this.#least, this.#most] = [least, most];
    } else {
      this.#least = Math.max(this.#least, least);
      this.#most = Math.min(this.#most, most);
    }
  }

  /** Returns the server's time in milliseconds since 1970, or that of this machine before the first reply. */
  now(): number {
    const difference = (this.#least + this.#most) / 2;
    return Date.now() + (Number.isFinite(difference) ? difference : 0);
  }
}
