import type { Logger } from 'pino';
import type { Clock } from '../../core/clock.js';
import type { Transaction } from '../connection/transaction.js';
import { type LockName, readHeldLock, tryLock } from './locks.js';

/** Longer than any sweep takes. */
const LONG_SECONDS = 60;
const SAID_EVERY_MS = 60_000;

/** The lock of a sweep that one process at a time makes. If it is never free, the log says which session has it: no other sign would show. */
export class SweepLock {
  readonly #name: LockName;
  readonly #clock: Pick<Clock, 'monotonic'>;
  readonly #logger: Logger;
  #saidAt = -Infinity;

  constructor(name: LockName, clock: Pick<Clock, 'monotonic'>, logger: Logger) {
    this.#name = name;
    this.#clock = clock;
    this.#logger = logger;
  }

  /** False while another process has it. The lock ends with the transaction. */
  async take(tx: Transaction): Promise<boolean> {
    if (await tryLock(tx, this.#name)) return true;
    const { seconds, holders } = await readHeldLock(tx, this.#name);
    const now = this.#clock.monotonic();
    if (seconds < LONG_SECONDS || now - this.#saidAt < SAID_EVERY_MS) return false;
    this.#saidAt = now;
    const who = holders.map(({ pid, application }) => `${pid} (${application || 'no name'})`).join(', ') || 'unknown';
    this.#logger.warn(
      { lock: this.#name, seconds: Math.round(seconds), holders },
      `the sweep of ${this.#name} has waited for its lock for ${Math.round(seconds)} s. Processes of PostgreSQL that may hold it: ${who}. ` +
        'Where one of them is stuck, end it: SELECT pg_terminate_backend(…)',
    );
    return false;
  }
}
