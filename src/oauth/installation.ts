import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { readStanding, type Standing } from '../db/tables/installation.js';

/** Throws `database_copied` or `installation_detached` if this database may not be used for requests to the service. */
export async function requireOurs({ prisma }: Pick<Database, 'prisma'>): Promise<void> {
  const standing = await readStanding(prisma);
  if (standing !== 'ours') throw notOurs(standing);
}

export function notOurs(standing: Exclude<Standing, 'ours'>): MusterError {
  if (standing === 'detached')
    return new MusterError(
      'installation_detached',
      'This database is a detached copy of an installation (muster detach), and sends no requests to the service. `muster adopt` makes it an installation of its own, whose companies authorize again.',
    );
  return new MusterError(
    'database_copied',
    'This database is a copy, or a backup that was restored elsewhere. Another running Muster may use the same tokens, so you must decide: ' +
      'run `muster adopt` if this is the installation from now on, or `muster detach` if it is only a copy.',
  );
}
