import type { Clock } from '../../core/clock.js';
import type { ShownRun } from '../../db/tables/run-list.js';
import type { Logger } from '../../observability/logger.js';
import { presentRun } from './run-model.js';

/** Any worker may change a run in the database, so watched runs are read this often. */
const READ_MS = 500;

/** A run as it was read, for all its watchers. */
export interface RunSight {
  /** The run as the API shows it, as JSON text. */
  readonly text: string;
  readonly isOver: boolean;
}

/** Called with the run at every reading; with undefined if the run no longer exists. */
type Watcher = (sight: RunSight | undefined) => void;

interface RunWatchDependencies {
  readonly clock: Clock;
  readonly logger: Logger;
  /** The runs with these ids, in any order. */
  readonly findRuns: (ids: readonly string[]) => Promise<readonly ShownRun[]>;
}

interface Watched {
  readonly watchers: Set<Watcher>;
  newest: RunSight;
}

/**
 * Reads all watched runs in one query, however many watchers there are, and nothing while there is none. If a reading fails, the next one
 * makes up for it.
 */
export class RunWatch {
  readonly #deps: RunWatchDependencies;
  readonly #watched = new Map<string, Watched>();
  /** First readings under way, by run. */
  readonly #looks = new Map<string, Promise<RunSight | undefined>>();
  #reading: AbortController | undefined;

  constructor(deps: RunWatchDependencies) {
    this.#deps = deps;
  }

  /** The run as it is now, or as last read if it is watched; undefined if there is none. Concurrent calls share one reading. */
  async see(id: string): Promise<RunSight | undefined> {
    const watched = this.#watched.get(id);
    if (watched) return watched.newest;
    let look = this.#looks.get(id);
    if (!look) {
      look = this.#look(id).finally(() => this.#looks.delete(id));
      this.#looks.set(id, look);
    }
    return look;
  }

  /** `seen` is what `see` gave. Returns a function that ends the watch; it may be called twice. */
  watch(id: string, seen: RunSight, watcher: Watcher): () => void {
    const watched = this.#watched.get(id) ?? { watchers: new Set(), newest: seen };
    this.#watched.set(id, watched);
    watched.watchers.add(watcher);
    if (!this.#reading) {
      this.#reading = new AbortController();
      void this.#read(this.#reading.signal);
    }
    return () => {
      if (!watched.watchers.delete(watcher) || watched.watchers.size > 0) return;
      this.#watched.delete(id);
      if (this.#watched.size > 0) return;
      this.#reading?.abort();
      this.#reading = undefined;
    };
  }

  async #look(id: string): Promise<RunSight | undefined> {
    const [run] = await this.#deps.findRuns([id]);
    return run && sightOf(run);
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { clock, logger, findRuns } = this.#deps;
    for (;;) {
      await clock.sleep(READ_MS, signal).catch(() => undefined);
      if (signal.aborted) return;
      try {
        const ids = [...this.#watched.keys()];
        const sights = new Map((await findRuns(ids)).map((run) => [run.id, sightOf(run)]));
        for (const id of ids) {
          const watched = this.#watched.get(id);
          if (!watched) continue;
          const sight = sights.get(id);
          if (sight) watched.newest = sight;
          for (const notify of watched.watchers) notify(sight);
        }
      } catch (error) {
        logger.debug({ err: error }, 'The watched runs could not be read');
      }
    }
  }
}

function sightOf(run: ShownRun): RunSight {
  return { text: JSON.stringify(presentRun(run)), isOver: run.status !== 'queued' && run.status !== 'running' };
}
