import { MusterError } from './errors.js';

/**
 * The contract of everything that is started and stopped.
 * `start` resolves when the service does its work; `stop` resolves when it has released every resource.
 * `stop` may be called twice, and before `start` has finished.
 */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}

type Stoppable = Pick<Service, 'name' | 'stop'>;

/** A stop that takes longer is reported: the process may end before it has. */
const LATE_MS = 10_000;

/** Stops services in the reverse order of their start. A service that fails to stop does not keep the others from stopping. */
export class StopStack {
  readonly #onError: (error: unknown, name: string) => void;
  readonly #onLate: (name: string) => void;
  readonly #started: Stoppable[] = [];
  readonly #stopping = new AbortController();
  #stopped: Promise<void> | undefined;

  /** `onError` receives the error that a service threw when it was stopped, and the name of the service; `onLate` the name of one that should have stopped, and has not after ten seconds. */
  constructor(onError: (error: unknown, name: string) => void, onLate: (name: string) => void) {
    this.#onError = onError;
    this.#onLate = onLate;
  }

  /** Aborts when a stop begins, before any service is stopped. */
  get signal(): AbortSignal {
    return this.#stopping.signal;
  }

  /** Throws `stopping` if the stack has been stopped already; the service is then stopped, too. */
  push(service: Stoppable): void {
    this.#started.push(service);
    if (!this.#stopped) return;
    void this.stop();
    throw new MusterError('stopping', 'The start was called off.');
  }

  /** Throws what `push` and the start of the service throw; the service is then stopped with the others. */
  async start(service: Service): Promise<void> {
    this.push(service);
    await service.start();
  }

  /** Resolves when every service has stopped or failed to stop. May be called again, for services that were pushed late. */
  stop(): Promise<void> {
    this.#stopping.abort();
    this.#stopped = (this.#stopped ?? Promise.resolve()).then(() => this.#stopAll());
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    for (let service = this.#started.pop(); service; service = this.#started.pop()) {
      const { name } = service;
      const late = setTimeout(() => this.#onLate(name), LATE_MS);
      try {
        await service.stop();
      } catch (error) {
        this.#onError(error, name);
      } finally {
        clearTimeout(late);
      }
    }
  }
}

/** Rejects with `stopping` once the signal calls a start off. */
export function calledOff(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const callOff = () => reject(new MusterError('stopping', 'The start was called off.'));
    if (signal.aborted) callOff();
    else signal.addEventListener('abort', callOff, { once: true });
  });
}
