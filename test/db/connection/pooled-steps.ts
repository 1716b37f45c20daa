import type pg from 'pg';
import type { Database } from '../../../src/db/connection/database.js';
import { runPooledStep } from '../../../src/db/connection/pooled-step.js';
import { PoolerAdapter } from '../../../src/db/connection/pooler-adapter.js';

/** Takes steps by connections of the pool as if a pooler stood between. */
export function pooledSteps(pool: pg.Pool): Pick<Database, 'steps'> {
  const adapter = new PoolerAdapter(pool, { isPooled: () => true }).connect();
  return { steps: { queryRaw: async (query) => runPooledStep(await adapter, query) } };
}
