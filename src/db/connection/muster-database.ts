import type pg from 'pg';
import { MusterError } from '../../core/errors.js';

/**
 * Throws `invalid_configuration` where the database lacks the tables of schema `muster`: it is a subscriber, which has the mirror alone, or not Muster's at all.
 * The system's own tables say so, since a role may lack every right on the schema.
 */
export async function requireMusterDatabase(db: Pick<pg.ClientBase, 'query'>): Promise<void> {
  const { rows } = await db.query<{ name: string; schemas: string[] }>(
    `SELECT current_database() AS name, ARRAY(SELECT DISTINCT n.nspname::text FROM pg_namespace n JOIN pg_class c ON c.relnamespace = n.oid
       WHERE n.nspname = 'muster' AND c.relname = 'connections' OR n.nspname = 'mirror' AND c.relkind IN ('r', 'p')) AS schemas`,
  );
  const { name, schemas } = rows[0]!;
  if (schemas.includes('muster')) return;
  throw new MusterError(
    'invalid_configuration',
    schemas.includes('mirror')
      ? `The database ${JSON.stringify(name)} has the lists of schema mirror, but not schema muster, with the proofs, the change feed and the columns: it is a ` +
          'subscriber (docs/replication.md). Set DATABASE_URL to the database of the workers, or to a standby of it.'
      : `The database ${JSON.stringify(name)} is not Muster's: it has neither schema muster nor schema mirror. Set DATABASE_URL to the database of the workers, ` +
          'or run `muster migrate`, which makes the tables.',
  );
}
