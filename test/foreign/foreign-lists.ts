import { afterAll, beforeAll } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from '../walks/company-fixture.js';
import { foreignHarness } from '../walks/sync-harness.js';
import type { ForeignService } from './foreign-service.js';
import { startJsonServer } from './json-server.js';
import { startODataServer } from './odata-server.js';

export type ForeignName = 'odata' | 'json';

/** Servers that others wrote, and a database, for the tests of one file. */
export function foreignLists() {
  let database: TestDatabase;
  let services: Record<ForeignName, ForeignService>;
  beforeAll(async () => {
    database = await testDatabase();
    services = { odata: await startODataServer(), json: await startJsonServer() };
  });
  afterAll(async () => {
    await services.odata.stop();
    await services.json.stop();
    await database.close();
  });
  return {
    service: (name: ForeignName) => services[name],
    get database() {
      return database;
    },
    /** Syncs of these lists of a server. */
    async harness(name: ForeignName, entries: Record<string, object>) {
      const endpoints = endpointsOf(entries);
      await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
      return foreignHarness(database.db, services[name].url, endpoints);
    },
  };
}
