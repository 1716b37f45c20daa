import type { Clock } from '../core/clock.js';
import type { Database } from '../db/connection/database.js';
import { recordSweep } from '../db/tables/sweeps.js';
import type { Sweep } from './sweeper.js';

/** How often a process writes that a sweep has ended: some sweeps end every second. */
const RECORD_EVERY_MS = 30_000;

/** Gives sweeps that write to the database when they have ended. One that fails writes nothing. */
export function recordedSweeps(db: Database, clock: Pick<Clock, 'monotonic'>, sweeps: readonly Sweep[]): Sweep[] {
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
