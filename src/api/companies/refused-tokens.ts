import type { Counter } from 'prom-client';
import type { Clock } from '../../core/clock.js';
import type { Logger } from '../../observability/logger.js';

/** The log gets at most one line in this time. */
const WINDOW_MS = 60_000;
/** A line names this many addresses; the others are counted together. */
const MOST_ADDRESSES = 20;

/**
 * Counts callers with a wrong token, and logs their addresses and how often each tried: the first attempt at once, further ones once a
 * minute. It never logs the token, which may be a right one with a typo.
 */
export class RefusedTokens {
  readonly #deps: { readonly clock: Clock; readonly logger: Logger; readonly counter: Counter; readonly signal: AbortSignal };
  /** Attempts by address since the last line; undefined if none was made for a minute. */
  #attempts: Map<string, number> | undefined;

  /** Logging ends once `signal` aborts. */
  constructor(deps: { clock: Clock; logger: Logger; counter: Counter; signal: AbortSignal }) {
    this.#deps = deps;
  }

  record(address: string): void {
    const { logger, counter } = this.#deps;
    counter.inc();
    if (this.#attempts) {
      const name = this.#attempts.has(address) || this.#attempts.size < MOST_ADDRESSES ? address : 'others';
      this.#attempts.set(name, (this.#attempts.get(name) ?? 0) + 1);
      return;
    }
    logger.warn({ address }, 'A caller of the admin API sent a wrong token');
    this.#attempts = new Map();
    void this.#summarize();
  }

  async #summarize(): Promise<void> {
    const { clock, logger, signal } = this.#deps;
    while (this.#attempts) {
      await clock.sleep(WINDOW_MS, signal).catch(() => undefined);
      const attempts = this.#attempts;
      const count = [...attempts.values()].reduce((sum, each) => sum + each, 0);
      if (count > 0)
        logger.warn(
          { count, addresses: Object.fromEntries(attempts) },
          'Callers of the admin API sent wrong tokens in the last minute',
        );
      this.#attempts = count > 0 && !signal.aborted ? new Map() : undefined;
    }
  }
}
