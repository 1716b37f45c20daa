import type { Clock } from '../core/clock.js';
import { type CompanyKey, companyNotFound } from '../core/company.js';
import type { QuietHours } from '../core/quiet-hours.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import { lockConnection, setQuietHours } from '../db/tables/connections.js';
import { moveQuietRefreshes } from '../db/tables/quiet-tokens.js';
import { moveQuietRuns } from '../db/tables/run-releases.js';

interface QuietHoursInForce {
  readonly quiet: QuietHours;
  readonly clock: Clock;
}

/**
 * Gives the company quiet hours of its own: windows as quietWindowsText writes them, `none`, or null for those of the installation. Its runs and its
 * refresh that wait for the end of the former ones wait for the end of these, or go on at once; a run under way learns of them within two seconds.
 * Throws `company_not_found`.
 */
export function changeQuietHours(
  db: Database,
  { company, quietHours }: { readonly company: CompanyKey; readonly quietHours: string | null },
  { quiet, clock }: QuietHoursInForce,
): Promise<void> {
  return inTransaction(db, async (tx) => {
    if (!(await lockConnection(tx, company))) throw companyNotFound(company);
    await setQuietHours(tx, company, quietHours);
    const until = endOf(quietHours, { quiet, clock });
    await moveQuietRuns(tx, { company, until });
    await moveQuietRefreshes(tx, { company, until });
  });
}

/** Moves what waits for the end of the quiet hours of the installation, which may have changed since the previous process. */
export async function followQuietHours(db: Database, inForce: QuietHoursInForce): Promise<void> {
  const until = endOf(null, inForce);
  await moveQuietRuns(db.prisma, { company: undefined, until });
  await moveQuietRefreshes(db.prisma, { company: undefined, until });
}

function endOf(quietHours: string | null, { quiet, clock }: QuietHoursInForce): Date | null {
  const end = quiet.endOf(quietHours, clock.now());
  return end === undefined ? null : new Date(end);
}
