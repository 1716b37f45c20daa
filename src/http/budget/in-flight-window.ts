/** Small enough that a slow service refuses few while it is not known, and a quick one has them back within milliseconds. */
const FIRST = 4;
const MOST = 256;
/** As many answers as widen the window by one, while it is not known to be too wide. */
const ANSWERS_A_STEP = 3;
/** Answers that are slower than this, and twice as slow as they were, say that more at once would only wait at the service. */
const SLOWER_MS = 100;

/**
 * How many requests of this process may be under way at once, where nobody has set it: few at first, and more as quick answers
 * come. What fails halves it, once for all that were under way then; from there on it widens by one for each of its widths.
 */
export class InFlightWindow {
  #size: number;
  /** From here on it widens slowly: above, it was too wide once. */
  #careful = MOST;
  #narrowedAt = -Infinity;
  #usualMs = 0;
  #quickestMs = Infinity;

  /** `remembered`: what went well before. */
  constructor(remembered: number = FIRST) {
    this.#size = Math.min(MOST, Math.max(FIRST, remembered));
  }

  get size(): number {
    return Math.floor(this.#size);
  }

  /** `isFull`: whether a wider window would have been used. */
  answered(ms: number, isFull: boolean): void {
    this.#usualMs = this.#usualMs === 0 ? ms : this.#usualMs + (ms - this.#usualMs) / 8;
    this.#quickestMs = Math.min(this.#quickestMs, this.#usualMs);
    if (!isFull || this.#usualMs > Math.max(2 * this.#quickestMs, this.#quickestMs + SLOWER_MS)) return;
    const step = this.#size < this.#careful ? 1 / ANSWERS_A_STEP : 1 / this.#size;
    this.#size = Math.min(MOST, this.#size + step);
  }

  /** A request that left at `sentAt` was refused, or got no answer in time. Both times by the same clock. */
  narrow(sentAt: number, now: number): void {
    if (sentAt < this.#narrowedAt) return;
    this.#narrowedAt = now;
    this.#size = Math.max(1, this.#size / 2);
    this.#careful = this.#size;
  }
}
