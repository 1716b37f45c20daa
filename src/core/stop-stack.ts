import { MusterError } from './errors.js';
import type { Service } from './service.js';

type Stoppable = Pick<Service, 'name' | 'stop'>;

/** What was started, to be stopped in the reverse order; a part that fails to stop does not keep the others from it. */
export class StopStack {
  readonly #onError: (error: unknown, name: string) => void;
  readonly #parts: Stoppable[] = [];
  #stopped: Promise<void> | undefined;

  /** `onError` is told what the part of that name threw when it was stopped; nobody else is. */
  constructor(onError: (error: unknown, name: string) => void) {
    this.#onError = onError;
  }

  /** Throws `stopping` when all was stopped meanwhile; the part is then stopped, too. */
  push(part: Stoppable): void {
    this.#parts.push(part);
    if (!this.#stopped) return;
    void this.stop();
    throw new MusterError('stopping', 'The start was called off.');
  }

  /** Throws like `push`, and what the start of the service throws: it is then stopped with the others. */
  async start(service: Service): Promise<void> {
    this.push(service);
    await service.start();
  }

  /** Resolves when every part has stopped or failed to. May be called again, for what came late. */
  stop(): Promise<void> {
    this.#stopped = (this.#stopped ?? Promise.resolve()).then(() => this.#stopAll());
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    for (let part = this.#parts.pop(); part; part = this.#parts.pop()) {
      try {
        await part.stop();
      } catch (error) {
        this.#onError(error, part.name);
      }
    }
  }
}
