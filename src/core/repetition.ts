/** Work that is done every so often, and never twice at once: what comes while it is under way is left out. */
export class Repetition {
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

  /** The first time after `everyMs`. Does nothing once it was stopped. */
  start(): void {
    if (this.#isStopped) return;
    this.#timer = setInterval(() => {
      this.#underWay ??= this.#work().finally(() => {
        this.#underWay = undefined;
      });
    }, this.#everyMs);
  }

  /** Resolves when the work under way is done; it does not begin again even before. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    clearInterval(this.#timer);
    await this.#underWay;
  }
}
