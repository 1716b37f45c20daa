/** Few enough for a slow service that is still unknown. A quick one answers them within milliseconds. */
const FIRST = 4;
const MOST = 256;
/** Responses that widen the window by one, while it is not known to be too wide. */
const ANSWERS_A_STEP = 3;
/** Responses slower by this much and twice as slow as before show that more requests would only wait at the service. */
const SLOWER_MS = 100;

/**
 * The number of concurrent requests of this process, if no limit is set: few at first, more as quick responses
 * arrive. A failure halves it, once for all requests sent before; from then on it widens by one for each full window of responses.
 */
export class InFlightWindow {
  #size: number;
  /** Above this size the window widens slowly, because it was too wide once. */
  #careful = MOST;
  #narrowedAt = -Infinity;
  #usualMs = 0;
  #quickestMs = Infinity;

  /** `remembered`: the size that worked before. */
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

  /** A request sent at `sentAt` was refused or timed out. Both times are of the same clock. */
  narrow(sentAt: number, now: number): void {
    if (sentAt < this.#narrowedAt) return;
    this.#narrowedAt = now;
    this.#size = Math.max(1, this.#size / 2);
    this.#careful = this.#size;
  }
}
