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
  /** Of the active companies, each night; undefined: nobody is verified by night. */
  readonly share: number | undefined;
  readonly clock: Pick<Clock, 'now'>;
  readonly logger: Logger;
}

/**
 * Each call asks for second readings of the companies whose turn it is this night, as soon as their sync of the night has ended. PostgreSQL keeps
 * the turns: nobody has a second one before all had one. A turn that is lost to a crash between the request and its note is had twice.
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
          // Paused, removed or without authorization since a moment ago: others have their turn.
          if (!isMusterError(error)) throw error;
          logger.debug({ err: error }, 'a second reading could not be asked for');
        }
        await recordVerifyTurns(db, { companies: [company] });
      }
    }
  };
}
