/** Work that is done at intervals, and never twice at once: an interval that ends while the work is under way starts nothing. */
export class PeriodicTask {
  readonly #everyMs: number;
  readonly #work: () => Promise<void>;
  #timer: NodeJS.Timeout | undefined;
  #underWay: Promise<void> | undefined;
  #isStopped = false;

  /** `work` must not throw. */
  constructor(everyMs: number, work: () => Promise<void>) {
    this.#everyMs = everyMs;
    this.#work = work;
  }

  /** The work is done for the first time after `everyMs`. A start after the stop does nothing. */
  start(): void {
    if (this.#isStopped) return;
    this.#timer = setInterval(() => {
      this.#underWay ??= this.#work().finally(() => {
        this.#underWay = undefined;
      });
    }, this.#everyMs);
  }

  /** From the call on no work begins. Resolves when the work under way is done. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#underWay;
  }
}
