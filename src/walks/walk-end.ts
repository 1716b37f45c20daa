import type { Endpoint } from '../catalogue/endpoint.js';
import type { Transaction } from '../db/transaction.js';
import { Prisma } from '../generated/prisma/client.js';
import type { ListKey } from '../mirror/list-fence.js';
import { reconcile } from '../mirror/reconcile.js';
import { recordEvent } from '../notifications/record-event.js';
import { holdWalk, type OpenWalk } from './open-walk.js';
import { provedParents } from './proved-parents.js';
import type { Verdict } from './verification.js';

export type WalkOutcome = Exclude<Verdict, { kind: 'another-pass' }>;

/** Ends a walk that read its list to the end, with the deletions that it proved and the ledgers that nobody refers to any more. */
export async function endWalk(
  tx: Transaction,
  walk: OpenWalk,
  proved: WalkOutcome,
  endpoint: Endpoint,
  now: number,
): Promise<void> {
  await holdWalk(tx, walk);
  const { list } = walk;
  const parents = endpoint.parent === undefined ? undefined : await parentsVerifiedAt(tx, list, endpoint.parent, now);
  const outcome: WalkOutcome =
    parents === null && proved.kind === 'verified' ? { kind: 'unverified', reason: 'parents_unverified' } : proved;
  const keysDigest = walk.memory.digest;
  if (outcome.kind === 'verified') {
    const verified = { list, runId: walk.runId, walkId: walk.id, pass: walk.pass, keysDigest };
    const { held, wasHeld } = await reconcile(tx, verified, endpoint.deleteGuard);
    if (held > 0 && !wasHeld) await recordDeletionsHeld(tx, walk, held);
    await noteVerified(tx, walk, parents);
  }
  await clearLedgers(tx, list);
  await tx.walk.update({
    where: { id: walk.id },
    data: {
      status: 'succeeded',
      keysDigest,
      reusable: outcome.kind === 'verified' && walk.memory.isSteady && endpoint.parent === undefined,
      checkpoint: Prisma.DbNull,
      finishedAt: new Date(now),
      verified: outcome.kind === 'verified',
      ...(outcome.kind === 'verified' ? { proof: outcome.proof } : { unverifiedReason: outcome.reason }),
    },
  });
}

/** Parents that were proved longer ago may lack some that have come since. */
const PARENTS_MAX_AGE_MS = 6 * 3_600_000;

/**
 * When the parents were last verified, if that was by their newest walk and not long ago: only then are all of them known,
 * and a child that was not received is gone. Else null.
 */
async function parentsVerifiedAt(tx: Transaction, list: ListKey, parent: string, now: number): Promise<Date | null> {
  const proved = await provedParents(tx, list, parent);
  return proved && proved.verifiedAt.getTime() > now - PARENTS_MAX_AGE_MS ? proved.verifiedAt : null;
}

/** People are told of a hold when it opens; that a later walk replaced it is no news. */
async function recordDeletionsHeld(tx: Transaction, { id, runId, list }: OpenWalk, count: number): Promise<void> {
  const details = { resource: list.resource, run_id: runId, count };
  await recordEvent(tx, { type: 'deletions_held', company: list, change: id, details });
}

/** As of the pass's start, by the database's clock: the time is compared with others that it made. */
async function noteVerified(tx: Transaction, { id, list }: OpenWalk, parents: Date | undefined | null): Promise<void> {
  const { environment, companyId, resource } = list;
  await tx.$executeRaw`
    WITH proved AS (
      UPDATE muster.lists l SET last_verified_at = LEAST(w.pass_started_at, ${parents ?? null}::timestamptz), verified_walk_id = w.id
      FROM muster.walks w
      WHERE w.id = ${id}::uuid AND l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}
      RETURNING last_verified_at
    )
    UPDATE mirror.companies SET verified_at = verified_at || jsonb_build_object(${resource}::text, proved.last_verified_at) FROM proved
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
}

/**
 * The ledger of the last verified walk stays: holds and the next walk refer to it. No part of the statement sees what another
 * deletes, and so each asks for what is kept. By NOT IN, for which PostgreSQL makes a hash table: of NOT EXISTS it may make a comparison
 * of each row with each that is kept, as long as it does not know how many these are.
 */
async function clearLedgers(tx: Transaction, { environment, companyId, resource }: ListKey): Promise<void> {
  await tx.$executeRaw`
    WITH verified AS (
      SELECT verified_walk_id AS id FROM muster.lists
      WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}
    ), kept AS MATERIALIZED (
      SELECT DISTINCT c.id, c.base_id, c.keys_id
      FROM verified v JOIN muster.walk_pages p ON p.walk_id = v.id JOIN muster.page_contents c ON c.id = p.content_id
    ), pages AS (
      DELETE FROM muster.walk_pages p USING muster.walks w, verified v
      WHERE p.walk_id = w.id AND w.environment = ${environment} AND w.company_id = ${companyId}::uuid AND w.resource = ${resource}
        AND p.walk_id IS DISTINCT FROM v.id
    ), contents AS (
      DELETE FROM muster.page_contents c
      WHERE c.environment = ${environment} AND c.company_id = ${companyId}::uuid AND c.resource = ${resource}
        AND c.id NOT IN (SELECT id FROM kept) AND c.id NOT IN (SELECT base_id FROM kept WHERE base_id IS NOT NULL)
    )
    DELETE FROM muster.page_keys k
    WHERE k.environment = ${environment} AND k.company_id = ${companyId}::uuid AND k.resource = ${resource}
      AND k.id NOT IN (SELECT keys_id FROM kept)`;
}
