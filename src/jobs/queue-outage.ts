import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from '../observability/logger.js';

const ASK_EVERY_MS = 1_000;
const ANSWER_MS = 5_000;

/**
 * Every connection of the queue reports its own error at every attempt, many times a second. This asks the queue itself:
 * while it does not answer there is one outage, logged once at its begin and once at its end.
 */
export class QueueOutage {
  readonly #ping: () => Promise<unknown>;
  readonly #server: string;
  readonly #logger: Logger;
  #isAsked = false;
  #lasts = false;
  #closed = false;

  constructor(server: string, ping: () => Promise<unknown>, logger: Logger) {
    this.#server = server;
    this.#ping = ping;
    this.#logger = logger;
  }

  /** Takes an error of the queue: part of an outage, or logged by itself. One that comes while the queue is asked adds nothing. */
  async report(error: Error, of: object = {}): Promise<void> {
    if (this.#closed || this.#lasts || this.#isAsked) return;
    this.#isAsked = true;
    const answered = await this.#answers();
    this.#isAsked = false;
    if (answered) {
      this.#logger.warn({ err: error, ...of }, 'queue error');
      return;
    }
    if (this.#closed) return;
    this.#lasts = true;
    this.#logger.warn(
      { err: error },
      `the connection of the queue to ${this.#server} is lost; it is tried again until it is back`,
    );
    await this.#end();
  }

  close(): void {
    this.#closed = true;
  }

  async #end(): Promise<void> {
    while (!this.#closed) {
      await sleep(ASK_EVERY_MS, undefined, { ref: false });
      if (!(await this.#answers())) continue;
      this.#lasts = false;
      this.#logger.info(`the connection of the queue to ${this.#server} is back`);
      return;
    }
  }

  #answers(): Promise<boolean> {
    const late = sleep(ANSWER_MS, false, { ref: false });
    const answer = this.#ping().then(
      () => true,
      () => false,
    );
    return Promise.race([answer, late]);
  }
}
