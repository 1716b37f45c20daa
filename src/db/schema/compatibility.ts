import type pg from 'pg';
import { MusterError } from '../../core/errors.js';
import { translateDatabaseError } from '../connection/sql-state.js';
import { migrationNames } from './migration-files.js';

/** Throws `process_outdated` if a newer version has changed the database so that this one cannot run alongside it; `database_unavailable`. */
export async function requireCompatible(db: Pick<pg.Pool | pg.Client, 'query'>): Promise<void> {
  const needs = await readNeeds(db);
  if (needs === undefined || (await migrationNames()).includes(needs)) return;
  throw new MusterError(
    'process_outdated',
    `The database belongs to a newer version of Muster (migration ${needs}), and this version cannot run alongside it. Start the newer version in its place.`,
  );
}

/** Undefined before the migration that makes the table. */
async function readNeeds(db: Pick<pg.Pool | pg.Client, 'query'>): Promise<string | undefined> {
  try {
    const made = await db.query<{ made: boolean }>(`SELECT to_regclass('muster.compatibility') IS NOT NULL AS made`);
    if (!made.rows[0]!.made) return undefined;
    const { rows } = await db.query<{ needs: string }>('SELECT needs FROM muster.compatibility');
    return rows[0]!.needs;
  } catch (error) {
    throw translateDatabaseError(error);
  }
}
