import { PeriodicTask } from '../core/periodic-task.js';
import type { Service } from '../core/service.js';
import type { Database } from '../db/connection/database.js';
import { addCounts, foldCounts, replaceCounts, type StoredCounts } from '../db/tables/work-counts.js';
import type { Logger } from './logger.js';
import { countsOf, sumCounts, type WorkMetrics } from './work-metrics.js';

/** A process that is killed loses what it counted in this time. */
const WRITE_EVERY_MS = 5_000;
/** A process in which nothing happens writes still, well within the hour after which it would count as gone. */
const IDLE_WRITES = 120;

/**
 * Stores what this process has counted (db/tables/work-counts.ts): every few seconds, and when it stops. Each write has the whole counts, so one that is
 * repeated, because its answer was lost, counts nothing twice. Counts never fall, but may lack the last seconds of a process that was killed.
 */
export class WorkCounts implements Service {
  readonly name = 'work counts';
  readonly #db: Database;
  readonly #work: WorkMetrics;
  readonly #logger: Logger;
  readonly #process: string;
  readonly #writes = new PeriodicTask(WRITE_EVERY_MS, () => this.write());
  /** How often this process was taken for gone: it goes on under another name each time. */
  #lives = 0;
  #hasRow = false;
  #written: string | undefined;
  #skipped = 0;

  /** `process` names this process in the database, unlike any other. */
  constructor(db: Database, { work, process, logger }: { work: WorkMetrics; process: string; logger: Logger }) {
    this.#db = db;
    this.#work = work;
    this.#logger = logger;
    this.#process = process;
  }

  async start(): Promise<void> {
    this.#writes.start();
  }

  /** Stores the counts a last time, and adds them to those of processes that are gone. */
  async stop(): Promise<void> {
    await this.#writes.stop();
    await this.write();
    if (!this.#hasRow) return;
    this.#hasRow = false;
    await foldCounts(this.#db, { process: this.#name, sum }).catch((error: unknown) =>
      this.#logger.debug(
        { err: error },
        'the counts of this process stay where they are; a worker adds them up within an hour or two',
      ),
    );
  }

  /** Never throws. Writes nothing where nothing has changed. */
  async write(): Promise<void> {
    try {
      const metrics = await countsOf(this.#work.registry);
      if (metrics === this.#written && (this.#skipped += 1) < IDLE_WRITES) return;
      const counts = { process: this.#name, metrics };
      if (!this.#hasRow) await addCounts(this.#db, counts);
      else if (!(await replaceCounts(this.#db, counts))) return this.#beginAnew();
      this.#hasRow = true;
      this.#written = metrics;
      this.#skipped = 0;
    } catch (error) {
      this.#logger.debug({ err: error }, 'the counts could not be stored; trying again');
    }
  }

  get #name(): string {
    return `${this.#process}/${this.#lives}`;
  }

  /** This process was frozen for so long that its counts were added to the total: it counts from 0, or they would be there twice. */
  #beginAnew(): void {
    this.#work.reset();
    this.#lives += 1;
    this.#hasRow = false;
    this.#written = undefined;
  }
}

/** Adds the counts of processes that are gone to the total. */
export function foldGoneCounts(db: Pick<Database, 'prisma'>): Promise<void> {
  return foldCounts(db, { sum });
}

async function sum(counts: readonly StoredCounts[]): Promise<string> {
  return countsOf(sumCounts(counts));
}
