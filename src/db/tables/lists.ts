// muster.lists: what is known of one list of one company across walks. Whoever writes to a list's rows, in schema mirror or in the ledger,
// locks its row here first (lockList), and nothing that this list shares with other lists before it. A company's connection is locked
// before its lists, a run behind them, a walk behind the run.

import { type CompanyKey, describeCompany } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import type { List } from '../../generated/prisma/client.js';
import type { Database } from '../database.js';
import type { Transaction } from '../transaction.js';

/** One list of one company: what is walked, written and fenced as a whole. */
export interface ListKey extends CompanyKey {
  readonly resource: string;
}

type TakenList = Pick<List, 'epoch' | 'idField' | 'unstableSince'>;

/**
 * Takes the list for a walk: from here on every earlier holder's writes fail. A company that was removed has no list to
 * take, so that a slow worker cannot bring it back.
 */
export async function takeList(tx: Transaction, list: ListKey, runId: string): Promise<TakenList> {
  const [row] = await tx.$queryRaw<TakenList[]>`
    INSERT INTO muster.lists AS l (environment, company_id, resource, epoch, last_run_id)
    SELECT c.environment, c.company_id, ${list.resource}, 1, ${runId}::uuid
    FROM (SELECT environment, company_id FROM muster.connections
          WHERE environment = ${list.environment} AND company_id = ${list.companyId}::uuid FOR SHARE) c
    ON CONFLICT (environment, company_id, resource) DO UPDATE SET epoch = l.epoch + 1, last_run_id = EXCLUDED.last_run_id
    RETURNING epoch, id_field AS "idField", unstable_since AS "unstableSince"`;
  if (!row) throw fenced(list, 'the company was removed');
  return row;
}

/**
 * The first statement of everything that writes to a list's rows: locks the list until the transaction ends, or throws `fenced` when
 * somebody else has taken it since. A statement of its own, because a statement that waits for the lock goes on with the snapshot it
 * had before. The statements behind it are planned once and their plans kept (database.ts): a plan made while the list's table
 * was small must not scan all of it once it is large. `force_generic_plan` is for a statement that is long to plan, and whose plan does
 * not depend on its values: PostgreSQL would plan it five times a connection before it keeps a plan.
 */
export async function lockList(
  tx: Transaction,
  list: ListKey,
  epoch: bigint,
  plans: 'auto' | 'force_generic_plan' = 'auto',
): Promise<void> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', ${plans}, true) FROM muster.lists
    WHERE environment = ${list.environment} AND company_id = ${list.companyId}::uuid AND resource = ${list.resource} AND epoch = ${epoch}
    FOR UPDATE`;
  if (rows.length === 0) throw fenced(list, 'another worker has taken it over');
}

/** The error of a worker that may not write to the list any more. */
export function fenced(list: ListKey, why: string): MusterError {
  return new MusterError('fenced', `The list ${list.resource} of ${describeCompany(list)} is no longer ours to write: ${why}.`);
}

/** Fixes which record member is the id. The caller has locked the list. */
export async function fixIdField(tx: Transaction, list: ListKey, idField: string): Promise<void> {
  await tx.list.update({ where: { environment_companyId_resource: list }, data: { idField } });
}

/** Notes that the list changes its order. The caller has locked the list. */
export async function noteUnstable(tx: Transaction, list: ListKey, since: Date): Promise<void> {
  await tx.list.update({ where: { environment_companyId_resource: list }, data: { unstableSince: since } });
}

/** Sets the number of living rows, which is otherwise kept by differences. The caller has locked the list. */
export async function setRecords(tx: Transaction, list: ListKey, records: number): Promise<void> {
  await tx.list.updateMany({ where: list, data: { records } });
}

/**
 * Notes the walk as the list's last verified one, here and in mirror.companies, as of the start of its pass, by the database's clock: the
 * time is compared with others that it made. `parents`: when the parents of a child list were verified, which is no later than the list itself.
 */
export async function noteVerified(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
  { walkId, parents }: { readonly walkId: string; readonly parents: Date | null },
): Promise<void> {
  await tx.$executeRaw`
    WITH proved AS (
      UPDATE muster.lists l SET last_verified_at = LEAST(w.pass_started_at, ${parents}::timestamptz), verified_walk_id = w.id
      FROM muster.walks w
      WHERE w.id = ${walkId}::uuid AND l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}
      RETURNING last_verified_at
    )
    UPDATE mirror.companies SET verified_at = verified_at || jsonb_build_object(${resource}::text, proved.last_verified_at) FROM proved
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
}

/** The newest walk of the list, if it was verified: only then are all of the list's records known. */
export async function findProof(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
): Promise<{ walkId: string; verifiedAt: Date } | undefined> {
  const [row] = await tx.$queryRaw<{ walkId: string; verifiedAt: Date }[]>`
    SELECT w.id AS "walkId", l.last_verified_at AS "verifiedAt"
    FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id AND w.epoch = l.epoch
    WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}`;
  return row;
}

/** Gives up all that walks have proved of the list, and fences whoever walks it. Returns whether there was such a list. */
export async function resetList(tx: Transaction, { environment, companyId, resource }: ListKey): Promise<boolean> {
  const lists = await tx.$executeRaw`
    UPDATE muster.lists SET epoch = epoch + 1, id_field = NULL, verified_walk_id = NULL, last_verified_at = NULL, unstable_since = NULL
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}`;
  await tx.$executeRaw`
    UPDATE mirror.companies SET verified_at = verified_at - ${resource}::text
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
  return lists > 0;
}

/** Ends the right of whoever has the list of that walk to write to it. Returns false where the walk has no checkpoint. */
export async function fenceListOfCheckpoint(tx: Transaction, { walkId }: { walkId: string }): Promise<boolean> {
  const moved = await tx.$executeRaw`
    UPDATE muster.lists l SET epoch = l.epoch + 1 FROM muster.walks w
    WHERE w.id = ${walkId}::uuid AND w.checkpoint IS NOT NULL
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource`;
  return moved > 0;
}

/** Of the lists of active companies, these resources alone: how many were never proved complete, and how old the oldest proof is. */
export async function measureProofs(
  db: Database,
  { resources }: { resources: readonly string[] },
): Promise<{ unverified: number; oldestSeconds: number | null }> {
  const [row] = await db.prisma.$queryRaw<{ unverified: number; oldestSeconds: number | null }[]>`
    SELECT count(*) FILTER (WHERE l.last_verified_at IS NULL)::int AS unverified,
      extract(epoch FROM now() - min(l.last_verified_at))::float8 AS "oldestSeconds"
    FROM muster.lists l JOIN muster.connections c USING (environment, company_id)
    WHERE c.status = 'active' AND l.resource = ANY(${resources}::text[])`;
  return row!;
}

/** These resources of these companies, in both environments, by the resource's name. */
export function findLists(
  db: Database,
  { companyIds, resources }: { readonly companyIds: readonly string[]; readonly resources: readonly string[] },
): Promise<List[]> {
  return db.prisma.list.findMany({
    where: { companyId: { in: [...companyIds] }, resource: { in: [...resources] } },
    orderBy: { resource: 'asc' },
  });
}
