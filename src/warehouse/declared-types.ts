import type { Catalogue } from '../catalogue/endpoint.js';
import type { Database } from '../db/connection/database.js';
import { inTransaction } from '../db/connection/transaction.js';
import * as log from '../db/tables/schema-columns.js';
import { openLogs, writeLog } from './log-storage.js';

/**
 * Takes the declared types of the catalogue over into the log. Returns whether that is done; false while another process has the log. Of processes with
 * different catalogues, the last one to start wins.
 */
export function declareTypes(db: Database, catalogue: Catalogue): Promise<boolean> {
  return inTransaction(db, async (tx) => {
    if ((await log.lockSchemaLog(tx)) === undefined) return false;
    const declaring = catalogue.endpoints.filter(({ columns }) => columns).map(({ resource }) => resource);
    const resources = [...new Set([...declaring, ...(await log.resourcesWithDeclared(tx))])].toSorted();
    const logs = await openLogs(tx, catalogue, resources, []);
    for (const [n, resource] of resources.entries()) {
      logs[n]!.declare(new Date());
      await writeLog(tx, resource, logs[n]!);
    }
    return true;
  });
}
