import { Readable } from 'node:stream';
import type { Clock } from '../../core/clock.js';
import type { RunSight } from './run-watch.js';

/** A comment is sent after so long a silence: proxies end connections that are silent for a minute. */
const SILENCE_MS = 15_000;

/**
 * What one watcher is sent of a run, as server-sent events: `run` when it has moved, the last one when it is over. A reader that is slower than
 * the run misses what lies between, and never the newest: nothing but that waits for it.
 */
export class RunStream extends Readable {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #newest: RunSight | undefined;
  #sent: RunSight | undefined;
  #sentAt: number;
  #isWanted = false;
  #isWithdrawn = false;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    // One byte that waits is enough to wait with the next event.
    super({ highWaterMark: 1 });
    this.#clock = clock;
    this.#sentAt = clock.monotonic();
  }

  /** The run as it is now; undefined when there is no such run any more. */
  tell(sight: RunSight | undefined): void {
    if (this.destroyed) return;
    if (sight) this.#newest = sight;
    else if (this.#newest) this.#newest = { ...this.#newest, isOver: true };
    this.#send();
  }

  /** Ends the stream with the newest that is known; what nobody has read by then is dropped. */
  endWithin(ms: number): void {
    this.tell(undefined);
    this.#destroyAfter(ms);
  }

  /** Ends the stream, and tells nothing more of the run. */
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
