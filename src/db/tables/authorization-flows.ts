// muster.authorization_flows: the flows that connect links have started. A state is random, and kept as a hash. A flow goes with its link,
// and a day after its start. Rows are inserted, ended once, and deleted; no lock is taken after the lock of a flow.
import type { AuthorizationFlow } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';

export type AuthorizationFlowRow = Omit<AuthorizationFlow, 'endedAt'>;

/** At most this many flows of one link are kept, the newest: people preview, scan and open a link many times. */
const MOST_OF_A_LINK = 20;

/** False, and nothing inserted, when the link is gone. */
export async function insertAuthorizationFlow(db: Database, flow: AuthorizationFlowRow): Promise<boolean> {
  const { stateHash, linkId, epoch, keyId, startedAt } = flow;
  const inserted = await db.prisma.$executeRaw`
    INSERT INTO muster.authorization_flows (state_hash, link_id, epoch, key_id, started_at)
    SELECT ${stateHash}, id, ${epoch}::int, ${keyId}, ${startedAt}::timestamptz FROM muster.connect_links WHERE id = ${linkId}::uuid`;
  await db.prisma.$executeRaw`
    DELETE FROM muster.authorization_flows WHERE state_hash IN (
      SELECT state_hash FROM muster.authorization_flows WHERE link_id = ${linkId}::uuid
      ORDER BY started_at DESC, state_hash OFFSET ${MOST_OF_A_LINK}::int)`;
  return inserted > 0;
}

export async function findAuthorizationFlow(db: Database, stateHash: string): Promise<AuthorizationFlowRow | undefined> {
  return (await db.prisma.authorizationFlow.findUnique({ where: { stateHash } })) ?? undefined;
}

/** Writes down that the browser came back without a code. True for the first time only. */
export async function endAuthorizationFlow(db: Database, { stateHash, at }: { stateHash: string; at: Date }): Promise<boolean> {
  const { count } = await db.prisma.authorizationFlow.updateMany({ where: { stateHash, endedAt: null }, data: { endedAt: at } });
  return count > 0;
}

/** Deletes the flows that were started more than a day ago: until then, their page can say that they took too long. */
export async function removeOldAuthorizationFlows(db: Database): Promise<void> {
  await db.prisma.$executeRaw`DELETE FROM muster.authorization_flows WHERE started_at < now() - interval '1 day'`;
}
