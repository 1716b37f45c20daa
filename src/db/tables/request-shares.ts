// muster.request_shares: what each worker asks of an environment's API. A worker writes its own row; if requests at once are limited, it
// does so under the lock of the environment's budget (lockBudget), so that the shares never exceed the limit.
import type { Environment } from '../../core/company.js';
import type { RequestShare } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';

type Client = Pick<Database['prisma'] | Transaction, '$executeRaw' | '$queryRaw'>;

export type Share = Pick<RequestShare, 'worker' | 'wanted' | 'held' | 'waiting' | 'used' | 'refused'>;

/** Longer than a running worker is ever silent: afterwards its share belongs to the others. */
export const SHARE_TIMEOUT_SECONDS = 6;

export async function reportShare(
  client: Client,
  { environment, ...share }: Share & { environment: Environment },
): Promise<void> {
  const { worker, wanted, held, waiting, used, refused } = share;
  await client.$executeRaw`
    INSERT INTO muster.request_shares (environment, worker, wanted, held, waiting, used, refused)
    VALUES (${environment}, ${worker}, ${wanted}, ${held}, ${waiting}, ${used}, ${refused})
    ON CONFLICT (environment, worker) DO UPDATE SET wanted = EXCLUDED.wanted, held = EXCLUDED.held, waiting = EXCLUDED.waiting,
      used = EXCLUDED.used, refused = EXCLUDED.refused, seen_at = clock_timestamp()`;
}

/** Shares of the running workers, by worker name, and the database's time in seconds. */
export async function readShares(
  client: Client,
  { environment }: { environment: Environment },
): Promise<{ shares: Pick<Share, 'worker' | 'wanted' | 'held'>[]; now: number }> {
  const rows = await client.$queryRaw<(Pick<Share, 'worker' | 'wanted' | 'held'> & { now: number })[]>`
    SELECT worker, wanted, held, extract(epoch FROM clock_timestamp())::float8 AS now FROM muster.request_shares
    WHERE environment = ${environment} AND seen_at > clock_timestamp() - make_interval(secs => ${SHARE_TIMEOUT_SECONDS}::float8)
    ORDER BY worker`;
  return { shares: rows.map(({ worker, wanted, held }) => ({ worker, wanted, held })), now: rows[0]?.now ?? 0 };
}

/** Deletes rows of processes that ended long ago. */
export async function removeOldShares(client: Client): Promise<void> {
  await client.$executeRaw`DELETE FROM muster.request_shares WHERE seen_at < now() - interval '1 hour'`;
}
