import { isDeepStrictEqual } from 'node:util';
import type { Database } from '../../src/db/connection/database.js';
import type { Resource } from '../../src/sandbox/company-spec.js';
import type { Deployment } from '../process/deployment.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { replayedRows } from '../support/replayed-feed.js';
import { waitFor } from '../support/wait-for.js';

/** Resolves when no run is queued or running, and none is asked for. */
export async function everyRunEnds({ pool }: Database): Promise<void> {
  const areOver = async () => {
    const { rows } = await pool.query(
      `SELECT FROM muster.run_requests UNION ALL SELECT FROM muster.run_request_lists UNION ALL SELECT FROM muster.runs WHERE status IN ('queued', 'running') LIMIT 1`,
    );
    return rows.length === 0;
  };
  await waitFor(areOver, { intervalMs: 250, what: 'every run to end' });
}

/**
 * The lists whose rows are not the service's records, and those whose change feed, replayed, does not give the rows: a line each. Throws where
 * the feed has a change twice, or without the one before it.
 */
export async function findMirrorFaults({ database, sandbox }: Deployment, lists: readonly Resource[]): Promise<string[]> {
  const { db } = database;
  const faults: string[] = [];
  for (const { companyId, name } of sandbox.companies) {
    for (const list of lists) {
      const rows = await mirrored(db, list, companyId);
      const records = upstream(sandbox, list, companyId);
      const living = (await replayedRows(db, list, companyId)).filter(({ deleted }) => !deleted);
      const replayed = living.map(({ data }) => data).toSorted();
      if (!isDeepStrictEqual(rows, records)) faults.push(`${list} of ${name}: ${difference(rows, records)}`);
      if (!isDeepStrictEqual(replayed, rows)) faults.push(`feed of ${list} of ${name}: ${difference(replayed, rows)}`);
    }
  }
  return faults;
}

function difference(some: readonly string[], others: readonly string[]): string {
  const [extra, missing] = [some.filter((each) => !others.includes(each)), others.filter((each) => !some.includes(each))];
  return `${some.length} for ${others.length}, too many ${extra.slice(0, 2).join()}, missing ${missing.slice(0, 2).join()}`;
}
