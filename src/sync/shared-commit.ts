import type { Clock } from '../core/clock.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';
import type { KnownPage, OpenWalk, WalkStore } from './walk-store.js';

/** Pages that share a commit, and how long the first of them waits for it: what a crash makes the next worker ask for again. */
const PAGES_AT_ONCE = 16;
const WAIT_MS = 200;

export interface SharedCommitDependencies {
  readonly store: Pick<WalkStore, 'commitKnownPages'>;
  readonly clock: Pick<Clock, 'monotonic'>;
}

/** Pages that need no comparing, on their way into the ledger: a commit each would take longer than receiving them. */
export class SharedCommit {
  readonly #walk: OpenWalk;
  readonly #deps: SharedCommitDependencies;
  #pages: KnownPage[] = [];
  #checkpoint: WalkCheckpoint | undefined;
  #since = 0;

  constructor(walk: OpenWalk, deps: SharedCommitDependencies) {
    this.#walk = walk;
    this.#deps = deps;
  }

  /** Takes a page with the checkpoint behind it, and commits when enough wait. */
  async add(page: KnownPage, checkpoint: WalkCheckpoint): Promise<void> {
    const now = this.#deps.clock.monotonic();
    if (this.#pages.length === 0) this.#since = now;
    this.#pages.push(page);
    this.#checkpoint = checkpoint;
    if (this.#pages.length >= PAGES_AT_ONCE || now - this.#since >= WAIT_MS) await this.commit();
  }

  async commit(): Promise<void> {
    const [pages, checkpoint] = [this.#pages, this.#checkpoint];
    this.#pages = [];
    if (checkpoint && pages.length > 0) await this.#deps.store.commitKnownPages(this.#walk, { pages, checkpoint });
  }
}
