import type { FastifyInstance } from 'fastify';
import type { Clock } from '../../core/clock.js';
import { MusterError } from '../../core/errors.js';
import type { ReadinessCheck } from './readiness.js';

/**
 * The time between the order to stop and the end of the API: it answers as before, says that it is not ready, and closes each connection with its next
 * response. A load balancer then sends its requests elsewhere before anything is refused.
 */
export class Drain {
  /** Not ready from the order to stop on. */
  readonly check: ReadinessCheck = { name: 'process', check: () => this.#requireNone() };
  readonly #clock: Pick<Clock, 'sleep'>;
  readonly #seconds: number;
  readonly #skipped = new AbortController();
  #drained: Promise<void> | undefined;

  /** `seconds`: what a load balancer needs to notice; 0 if there is none. */
  constructor(clock: Pick<Clock, 'sleep'>, seconds: number) {
    this.#clock = clock;
    this.#seconds = seconds;
  }

  /** Resolves when the API may end. May be called again. */
  stop(): Promise<void> {
    return (this.#drained ??= this.#clock.sleep(this.#seconds * 1_000, this.#skipped.signal).catch(() => {}));
  }

  /** Ends the drain, or the one to come, at once: the process must not go on. */
  skip(): void {
    this.#skipped.abort();
  }

  /** Has each response during the drain close its connection: the requests that would follow on it go to another process. */
  closeConnections(app: FastifyInstance): void {
    app.addHook('onSend', async (_request, reply) => {
      if (this.#drained) reply.header('connection', 'close');
    });
  }

  async #requireNone(): Promise<void> {
    if (this.#drained) throw new MusterError('stopping', 'The process is being stopped.');
  }
}
