import { Repetition } from '../core/repetition.js';
import type { Logger } from '../observability/logger.js';
import type { ClaimedRun, RunClaims } from './run-claims.js';

/** Why work on a held run was interrupted. */
export type Interruption = 'cancelled' | 'paused' | 'lost' | 'stopping';

/** A claimed run while this process works on it. */
export interface HeldRun {
  readonly run: ClaimedRun;
  /** Aborts when the work must end at once. */
  readonly signal: AbortSignal;
  readonly interruption: Interruption | undefined;
}

/** A third of the holder's timeout: two beats may be late before anybody takes the run. */
const HEARTBEAT_MS = 1_500;

/** Keeps the claims of this process alive, and tells the work on a run when it was cancelled, paused or taken over. */
export class RunHolder {
  readonly name = 'run holder';
  readonly #claims: RunClaims;
  readonly #logger: Logger;
  readonly #held = new Map<string, Held>();
  readonly #heartbeat = new Repetition(HEARTBEAT_MS, () => this.#beat());

  constructor(claims: RunClaims, logger: Logger) {
    this.#claims = claims;
    this.#logger = logger;
  }

  async start(): Promise<void> {
    this.#heartbeat.start();
  }

  async stop(): Promise<void> {
    await this.#heartbeat.stop();
  }

  /** Claims the run and works on it. Undefined when it is not to be had. */
  async hold<T>(id: string, work: (held: HeldRun) => Promise<T>): Promise<T | undefined> {
    const run = await this.#claims.claim(id);
    if (!run) return undefined;
    // This process itself may have been frozen for so long that its own claim lapsed.
    this.#held.get(id)?.interrupt('lost');
    const held = new Held(run);
    this.#held.set(id, held);
    try {
      return await work(held);
    } finally {
      if (this.#held.get(id) === held) this.#held.delete(id);
    }
  }

  /** Ends all work at once: what is committed stays, and the runs are let go of. */
  interruptAll(): void {
    for (const held of this.#held.values()) held.interrupt('stopping');
  }

  async #beat(): Promise<void> {
    if (this.#held.size === 0) return;
    const asked = [...this.#held.values()];
    try {
      const alive = new Map((await this.#claims.heartbeat(asked.map(({ run }) => run.id))).map((row) => [row.id, row]));
      for (const held of asked) {
        const row = alive.get(held.run.id);
        if (row?.epoch !== held.run.epoch) held.interrupt('lost');
        else if (row.cancelRequested) held.interrupt('cancelled');
        else if (row.paused) held.interrupt('paused');
      }
    } catch (error) {
      this.#logger.warn({ err: error }, 'heartbeat failed; trying again');
    }
  }
}

class Held implements HeldRun {
  readonly #abort = new AbortController();
  interruption: Interruption | undefined;

  constructor(readonly run: ClaimedRun) {}

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  interrupt(why: Interruption): void {
    this.interruption ??= why;
    this.#abort.abort(new Error(`run ${why}`));
  }
}
