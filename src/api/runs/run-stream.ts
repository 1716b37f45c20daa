import { Readable } from 'node:stream';
import type { Clock } from '../../core/clock.js';
import type { RunSight } from './run-watch.js';

/** A comment is sent after this long a silence: proxies end connections that are silent for a minute. */
const SILENCE_MS = 15_000;

/**
 * Server-sent events of a run for one watcher: a `run` event whenever the run changes, the last one when it is over. A slow reader misses
 * states in between but never the newest, which is the only one that waits for it.
 */
export class RunStream extends Readable {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #newest: RunSight | undefined;
  #sent: RunSight | undefined;
  #sentAt: number;
  #isWanted = false;
  #isWithdrawn = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    // While one byte waits for the reader, the next event waits too.
    super({ highWaterMark: 1 });
    this.#clock = clock;
    this.#sentAt = clock.monotonic();
  }

  /** Takes the run as it is now; undefined if the run no longer exists. */
  update(sight: RunSight | undefined): void {
    if (this.destroyed) return;
    if (sight) this.#newest = sight;
    else if (this.#newest) this.#newest = { ...this.#newest, isOver: true };
    this.#send();
  }

  /** Ends the stream with the newest known state; events not read in time are dropped. */
  endWithin(ms: number): void {
    this.update(undefined);
    this.#destroyAfter(ms);
  }

  /** Ends the stream without another event. */
  withdraw(ms: number): void {
    if (this.destroyed || this.#isWithdrawn) return;
    this.#isWithdrawn = true;
    this.push(null);
    this.#destroyAfter(ms);
  }

  #destroyAfter(ms: number): void {
    const timer = setTimeout(() => this.destroy(), ms);
    this.once('close', () => clearTimeout(timer));
  }

  override _read(): void {
    this.#isWanted = true;
    this.#send();
  }

  #send(): void {
    if (!this.#isWanted || !this.#newest || this.#isWithdrawn) return;
    const { text, isOver } = this.#newest;
    if (text !== this.#sent?.text) this.#write(`event: run\ndata: ${text}\n\n`);
    else if (isOver) this.push(null);
    else if (this.#clock.monotonic() - this.#sentAt >= SILENCE_MS) this.#write(': still here\n\n');
    this.#sent = this.#newest;
  }

  #write(text: string): void {
    this.#isWanted = false;
    this.#sentAt = this.#clock.monotonic();
    this.push(text);
  }
}
