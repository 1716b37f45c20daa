import type { FastifyReply } from 'fastify';
import type { Clock } from '../../core/clock.js';
import { MusterError } from '../../core/errors.js';
import type { Database } from '../../db/connection/database.js';
import { LargerPage, PAGE_BYTES } from '../../db/tables/feed.js';

/** A page takes so many times its bytes: as rows of the driver, as texts that are sent, and in the socket. */
const COPIES = 3;
/** A refused reader is asked to come back after so many seconds. */
const RETRY_SECONDS = 5;

export interface LargeResponseLimits {
  /** The bytes that all large responses of the process may take together, from the query until the last byte is sent. */
  readonly largeResponseBytes: number;
  /** A reader waits so long for its turn. */
  readonly largeResponseMs: number;
}

export interface LargeListDependencies {
  readonly db: Database;
  readonly largeResponses: LargeResponses;
}

/** A reader that waits for `bytes` of memory. `begin` says that it has them. */
interface Turn {
  readonly bytes: number;
  readonly begin: () => void;
}

/**
 * Bounds the memory of the large responses of one process. Each response is bounded (`PAGE_BYTES`), but a reader may take minutes to receive it.
 * Readers wait for their turn in the order of arrival, before anything is read for them and without a connection to the database.
 */
export class LargeResponses {
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #limits: LargeResponseLimits;
  #used = 0;
  readonly #waiting: Turn[] = [];

  constructor(clock: Pick<Clock, 'sleep'>, limits: LargeResponseLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /**
   * Reads a page once there is memory for it. The memory is free again when the response has been sent or its connection has ended. `read` gets the number
   * of bytes that it may read; it throws `LargerPage` where a single record has more, and is called again once there is memory for that. `sizeOf` returns
   * the bytes of the page. Throws `overloaded` where the turn does not come in time.
   */
  async read<Page>(
    reply: FastifyReply,
    read: (mostBytes: number) => Promise<Page>,
    sizeOf: (page: Page) => number,
  ): Promise<Page> {
    const over = new AbortController();
    // An injected call has no connection that closes.
    for (const event of ['finish', 'close'] as const) reply.raw.once(event, () => over.abort());
    for (let mostBytes = PAGE_BYTES; ; ) {
      const reserved = this.#costOf(mostBytes);
      await this.#take(reserved, reply, over.signal);
      try {
        const page = await read(mostBytes);
        this.#keep(Math.min(reserved, this.#costOf(sizeOf(page))), reserved, over.signal);
        return page;
      } catch (error) {
        this.#give(reserved);
        if (!(error instanceof LargerPage)) throw error;
        mostBytes = error.bytes;
      }
    }
  }

  /** A page that needs more than there is for all gets all of it. */
  #costOf(bytes: number): number {
    return Math.min(bytes * COPIES, this.#limits.largeResponseBytes);
  }

  async #take(bytes: number, reply: FastifyReply, over: AbortSignal): Promise<void> {
    const granted = new AbortController();
    const turn: Turn = { bytes, begin: () => granted.abort() };
    this.#waiting.push(turn);
    this.#grant();
    if (granted.signal.aborted) return;
    await this.#clock.sleep(this.#limits.largeResponseMs, AbortSignal.any([granted.signal, over])).catch(() => {});
    if (granted.signal.aborted) return;
    this.#waiting.splice(this.#waiting.indexOf(turn), 1);
    this.#grant();
    reply.header('retry-after', RETRY_SECONDS);
    throw new MusterError(
      'overloaded',
      'This process has as many large answers under way as it has memory for: try again soon, or ask for fewer records (limit).',
    );
  }

  /** Keeps so many of the reserved bytes until the response has ended. */
  #keep(bytes: number, reserved: number, over: AbortSignal): void {
    this.#give(reserved - bytes);
    if (over.aborted) this.#give(bytes);
    else over.addEventListener('abort', () => this.#give(bytes), { once: true });
  }

  #give(bytes: number): void {
    this.#used -= bytes;
    this.#grant();
  }

  #grant(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (!next || this.#used + next.bytes > this.#limits.largeResponseBytes) return;
      this.#waiting.shift();
      this.#used += next.bytes;
      next.begin();
    }
  }
}
