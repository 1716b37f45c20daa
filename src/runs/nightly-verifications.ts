import type { Clock } from '../core/clock.js';
import { ENVIRONMENTS } from '../core/company.js';
import { isMusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { readStanding } from '../db/tables/installation.js';
import { findVerifyTurns, recordVerifyTurns } from '../db/tables/second-readings.js';
import type { Logger } from '../observability/logger.js';
import type { Runs } from './runs.js';
import { nightsAround, type Schedule } from './schedule.js';

interface NightlyVerificationsDependencies {
  readonly db: Database;
  readonly runs: Pick<Runs, 'requestVerification'>;
  readonly schedule: Schedule;
  /** The share of active companies verified each night; undefined: none. */
  readonly share: number | undefined;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
}

/**
 * Each call requests verification reads of the companies whose turn it is this night, as soon as their nightly sync has ended. PostgreSQL
 * keeps the turns: no company has a second turn before all have had one. After a crash between request and record, a turn is repeated.
 */
export function nightlyVerifications({ db, runs, schedule, share, clock, logger }: NightlyVerificationsDependencies) {
  return async (): Promise<void> => {
    if (share === undefined || (await readStanding(db.prisma)) !== 'ours') return;
    const nightBeganAt = new Date(nightsAround(schedule, clock.now()).began);
    for (const environment of ENVIRONMENTS) {
      for (const company of await findVerifyTurns(db, { environment, share, nightBeganAt })) {
        try {
          await runs.requestVerification({ company, trigger: 'nightly_verify' });
        } catch (error) {
          // The company was paused, was removed or lost its authorization a moment ago: its turn is over.
          if (!isMusterError(error)) throw error;
          logger.debug({ err: error }, 'a verification read could not be requested');
        }
        await recordVerifyTurns(db, { companies: [company] });
      }
    }
  };
}
