/** Counts events within the last `spanMs`, in `steps` equal parts. */
export class RollingCount {
  readonly #stepMs: number;
  readonly #counts: number[];
  #step = 0;

  constructor(spanMs: number, steps: number) {
    this.#stepMs = spanMs / steps;
    this.#counts = Array.from({ length: steps }, () => 0);
  }

  add(now: number): void {
    this.#forget(now);
    this.#counts[this.#step % this.#counts.length]! += 1;
  }

  total(now: number): number {
    this.#forget(now);
    return this.#counts.reduce((sum, count) => sum + count, 0);
  }

  #forget(now: number): void {
    const step = Math.floor(now / this.#stepMs);
    for (let next = Math.max(this.#step + 1, step - this.#counts.length + 1); next <= step; next += 1)
      this.#counts[next % this.#counts.length] = 0;
    this.#step = Math.max(this.#step, step);
  }
}
