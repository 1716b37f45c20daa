import type { Clock } from '../core/clock.js';

/** Prometheus gives a scrape up after ten seconds, and a part of the installation that hangs counts as missing after five. */
const DEADLINE_MS = 6_000;

/** The readings that began together. */
interface Scrape {
  /** Aborts at the deadline, or when all readings have ended. */
  readonly over: AbortController;
  /** Rejects at the deadline. */
  readonly deadline: Promise<never>;
  lastTurn: Promise<unknown>;
  unsettled: number;
}

/**
 * The readings of a scrape have one deadline. A reading that has not ended by then rejects, and those that wait for their turn never begin. The next
 * scrape waits for none of them: otherwise a database that hangs once would silence all later scrapes.
 */
export class ScrapeReadings {
  readonly #clock: Pick<Clock, 'sleep'>;
  #scrape: Scrape | undefined;

  constructor(clock: Pick<Clock, 'sleep'>) {
    this.#clock = clock;
  }

  /** Reads now. */
  now<T>(read: () => Promise<T>): Promise<T> {
    return settle(this.#current(), read());
  }

  /** Reads after the scrape's earlier turns. */
  inTurn<T>(read: () => Promise<T>): Promise<T> {
    const scrape = this.#current();
    const turn = scrape.lastTurn.then(() => {
      scrape.over.signal.throwIfAborted();
      return read();
    });
    scrape.lastTurn = turn.catch(() => {});
    return settle(scrape, turn);
  }

  #current(): Scrape {
    if (this.#scrape && !this.#scrape.over.signal.aborted) return this.#scrape;
    const over = new AbortController();
    const deadline = this.#clock.sleep(DEADLINE_MS, over.signal).then(() => {
      over.abort();
      throw over.signal.reason;
    });
    deadline.catch(() => {}); // also rejects when all readings have ended
    this.#scrape = { over, deadline, lastTurn: Promise.resolve(), unsettled: 0 };
    return this.#scrape;
  }
}

async function settle<T>(scrape: Scrape, reading: Promise<T>): Promise<T> {
  scrape.unsettled += 1;
  try {
    return await Promise.race([reading, scrape.deadline]);
  } finally {
    scrape.unsettled -= 1;
    if (scrape.unsettled === 0) scrape.over.abort();
  }
}
