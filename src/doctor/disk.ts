import { statfs } from 'node:fs/promises';
import { readServerState } from '../db/connection/server-state.js';
import { measureFeed } from '../db/tables/overdue.js';
import { type Check, duration, type Finding, ok, problem, size, warning } from './check.js';
import type { DatabaseAccess } from './database-access.js';

export interface DiskNeeds {
  readonly access: DatabaseAccess;
  readonly changeRetentionDays: number | undefined;
  /** The folder of the embedded database; undefined where the database is elsewhere, with a disk that cannot be seen from here. */
  readonly home: string | undefined;
}

const DAY = 86_400;
/** Retention looks once an hour, and removes whole batches. */
const LATE_SECONDS = 2 * DAY;
/** A feed without retention is reported from this size on, where it is this share of the database. */
const LARGE_BYTES = 1e9;
const LARGE_PART = 0.5;

const LITTLE_BYTES = 1e9;
const LITTLE_PART = 0.05;

/** Measures the database and its change feed, and the room that is left. */
export function checkDisk({ access, changeRetentionDays: days, home }: DiskNeeds): Check {
  return {
    name: 'disk',
    look: async () => [
      ...(home === undefined ? [] : await room(home)),
      ...(await access.read(async (db) => {
        const [{ databaseBytes }, feed] = [await readServerState(db), await measureFeed(db)];
        return [feedFinding(feed, databaseBytes, days)];
      })),
    ],
  };
}

function feedFinding(
  { bytes, oldestSeconds }: { readonly bytes: number; readonly oldestSeconds: number | null },
  databaseBytes: number,
  days: number | undefined,
): Finding {
  const back = oldestSeconds === null ? '' : `, back to ${duration(oldestSeconds)} ago`;
  const found = `the database takes ${size(databaseBytes)}, of which the change feed ${size(bytes)}${back}`;
  if (days === undefined) {
    if (bytes < LARGE_BYTES || bytes < LARGE_PART * databaseBytes) return ok(found);
    return warning(
      `${found}; it is kept for ever`,
      'Set CHANGE_RETENTION_DAYS, if no consumer reads it from its beginning (docs/retention.md).',
    );
  }
  if ((oldestSeconds ?? 0) < days * DAY + LATE_SECONDS) return ok(`${found}; it is kept for ${days} days`);
  return warning(
    `${found}, and should be kept for ${days} days`,
    'See that a worker runs with the same CHANGE_RETENTION_DAYS; one that has been set just now takes hours.',
  );
}

async function room(home: string): Promise<Finding[]> {
  const state = await statfs(home).catch(() => undefined);
  if (!state) return []; // not made yet
  const [free, all] = [state.bavail * state.bsize, state.blocks * state.bsize];
  const found = `${size(free)} of ${size(all)} are free on the disk of ${home}`;
  if (free >= LITTLE_BYTES && free >= LITTLE_PART * all) return [ok(found)];
  return [problem(found, 'Make room: a PostgreSQL without any stops.')];
}
