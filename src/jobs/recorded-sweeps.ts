import type { Clock } from '../core/clock.js';
import type { Database } from '../db/connection/database.js';
import { addSweeps, recordSweep } from '../db/tables/sweeps.js';
import type { Sweep } from './sweeper.js';

/** A process records the end of a sweep at most this often: some sweeps end every second. */
const RECORD_EVERY_MS = 30_000;

/** Wraps sweeps so that the end of each is recorded in the database. A sweep that fails records nothing, and is late some time after the first worker has started. */
export async function recordedSweeps(db: Database, clock: Pick<Clock, 'monotonic'>, sweeps: readonly Sweep[]): Promise<Sweep[]> {
  await addSweeps(
    db,
    sweeps.map(({ name }) => name),
  );
  return sweeps.map((sweep) => {
    let recordedAt = -Infinity;
    return {
      ...sweep,
      async run() {
        await sweep.run();
        if (clock.monotonic() - recordedAt < RECORD_EVERY_MS) return;
        await recordSweep(db, sweep);
        recordedAt = clock.monotonic();
      },
    };
  });
}
