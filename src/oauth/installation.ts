import { MusterError } from '../core/errors.js';
import type { Database } from '../db/connection/database.js';
import { readStanding, type Standing } from '../db/tables/installation.js';

/** Throws `database_copied` or `installation_detached` where nothing may be asked of the service from this database. */
export async function requireOurs({ prisma }: Pick<Database, 'prisma'>): Promise<void> {
  const standing = await readStanding(prisma);
  if (standing !== 'ours') throw notOurs(standing);
}

export function notOurs(standing: Exclude<Standing, 'ours'>): MusterError {
  if (standing === 'detached')
    return new MusterError(
      'installation_detached',
      'This database is a copy of an installation (muster detach), and asks nothing of the service. `muster adopt` makes it an installation of its own, whose companies authorize anew.',
    );
  return new MusterError(
    'database_copied',
    'This database is a copy, or a backup that was restored elsewhere, and nobody has said yet what it is: its tokens may be those of another Muster that runs. ' +
      'Where this is the installation from now on, run `muster adopt`; where it is a copy beside it, `muster detach`.',
  );
}
