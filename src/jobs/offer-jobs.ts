import { randomUUID } from 'node:crypto';
import type { Job, Queue } from 'bullmq';
import { systemClock } from '../core/clock.js';

export interface OfferedJob {
  readonly name: string;
  readonly data: object;
  /** While a job with this key waits or runs, no second one is added. */
  readonly key: string;
  /** Time before the job may start; at most `LONGEST_DELAY_MS`. */
  readonly delayMs?: number;
}

export const LONGEST_DELAY_MS = 20_000;
/** A delayed job that is due later than this was added by a worker whose clock was fast. Clocks may differ by half a minute. */
const LATEST_MS = LONGEST_DELAY_MS + 30_000;
/**
 * The number of refused jobs that are looked up at once. More are looked up only if some of these were lost. Callers offer the longest due first, so a lost job
 * is soon among them.
 */
const LOOKED_UP = 10;

/**
 * Adds a job for each key that has none. BullMQ refuses a job whose key another one has, even if that one never starts: Redis may have lost the list
 * that the job was in (evicted, or deleted by a person) and kept its data and its key. Such lost jobs are replaced.
 */
export async function offerJobs(queue: Queue, offered: readonly OfferedJob[]): Promise<void> {
  const refused = await add(queue, offered);
  const replaced: OfferedJob[] = [];
  for (let at = 0; at < refused.length; at += LOOKED_UP) {
    const some = refused.slice(at, at + LOOKED_UP);
    const areLost = await Promise.all(some.map(({ by }) => isLost(queue, by)));
    const lost = some.filter((_, n) => areLost[n]);
    if (lost.length === 0) break;
    // A removed job frees its key. BullMQ does not remove a job that a worker still has.
    await Promise.all(lost.map(({ by }) => queue.remove(by)));
    replaced.push(...lost.map(({ job }) => job));
  }
  if (replaced.length > 0) await add(queue, replaced);
}

/** Returns the refused jobs, each with the id of the job that has its key. */
async function add(queue: Queue, offered: readonly OfferedJob[]): Promise<{ job: OfferedJob; by: string }[]> {
  // BullMQ returns the id of the job that has the key. With ids of our own we see that it is another job. Its own ids come from a counter that Redis
  // may lose; a new job would then overwrite an older one.
  const ids = offered.map(() => randomUUID());
  const added: Job[] = await queue.addBulk(
    offered.map(({ name, data, key, delayMs }, n) => ({
      name,
      data,
      opts: { jobId: ids[n]!, deduplication: { id: key }, ...(delayMs === undefined ? {} : { delay: delayMs }) },
    })),
  );
  return added.flatMap(({ id }, n) => (id === ids[n] ? [] : [{ job: offered[n]!, by: id! }]));
}

/** Whether no worker will start the job, or only much too late. */
async function isLost(queue: Queue, id: string): Promise<boolean> {
  const state = await queue.getJobState(id);
  if (state !== 'delayed') return state !== 'waiting' && state !== 'active';
  const job = await queue.getJob(id);
  return job !== undefined && job.timestamp + job.delay > systemClock.now() + LATEST_MS;
}
