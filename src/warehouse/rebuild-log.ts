import { type Catalogue, flattenLevels } from '../catalogue/endpoint.js';
import type { Database } from '../db/connection/database.js';
import * as log from '../db/tables/schema-columns.js';
import { recordTypeMismatches, type Sighting, sightingsIn } from '../db/tables/schema-sightings.js';
import { Prisma } from '../generated/prisma/client.js';
import { mirrorTable, tableOf } from '../mirror/mirror-table.js';
import { openLogs, writeLog } from './log-storage.js';

/** Counting a list of many millions takes minutes, and only other sweeps of the log wait for it. */
const TIMEOUT_MS = 3_600_000;

/**
 * Counts a resource again from the living records of the mirror. Names, types and positions stay; keys that the log lacks get
 * columns. Does nothing while another process has the log: the request stays.
 */
export async function rebuildLog(db: Database, catalogue: Catalogue, resource: string): Promise<void> {
  await db.prisma.$transaction(
    async (tx) => {
      if ((await log.lockSchemaLog(tx)) === undefined) return;
      const table = tableOf({ resource });
      const [there] = await tx.$queryRaw<{ there: boolean }[]>`
        SELECT to_regclass(${mirrorTable(resource)}) IS NOT NULL AS there, set_config('enable_seqscan', 'on', true)`;
      let wantsAnother = false;
      if (there!.there) {
        const record = Prisma.sql`record AS (
          SELECT ${resource}::text AS resource, environment, company_id, NULL::uuid AS run_id, changed_at, data
          FROM ${table} WHERE deleted_at IS NULL AND jsonb_typeof(data) = 'object')`;
        const sightings = await tx.$queryRaw<Sighting[]>`WITH ${record} ${sightingsIn(flattenLevels(catalogue))}`;
        const [columns] = await openLogs(tx, catalogue, [resource], sightings);
        columns!.forgetCounts();
        columns!.count(sightings);
        columns!.decideAll();
        await writeLog(tx, resource, columns!);
        wantsAnother = columns!.wantsRebuild;
        await log.forgetTypeMismatches(tx, { resource });
        const { mismatches } = columns!;
        if (mismatches.length > 0) await tx.$executeRaw`WITH ${record} ${recordTypeMismatches(mismatches)}`;
      }
      await log.recordRebuilt(tx, { resource });
      if (wantsAnother) await log.askForRebuild(tx, [resource]);
    },
    { timeout: TIMEOUT_MS, maxWait: 30_000 },
  );
}
