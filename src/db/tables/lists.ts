// muster.lists: the state of one list of one company across walks. A writer of a list's rows, in schema mirror or in the ledger,
// locks its row here first (lockList), and locks nothing that other lists share before it. Lock order: the company's connection,
// its lists, the run, the walk.

import { type CompanyKey, describeCompany } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { nightlyHours, ownHours, type StaleAfterHours } from '../../core/stale-after.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';
import { ETAG_TRUST, type EtagUse, etagsFalseSince, etagWalksAfter } from './etag-trust.js';

/** One list of one company: the unit of walking, writing and fencing. */
export interface ListKey extends CompanyKey {
  readonly resource: string;
}

/** SQL: a row belongs to the list. */
export function isOfList({ environment, companyId, resource }: ListKey): Prisma.Sql {
  return Prisma.sql`environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}`;
}

/**
 * SQL: a walk has read list `l` to its end, proved or not. A child list walked without parents was never requested. A value,
 * not EXISTS (docs/internals/planner.md).
 */
const wasRead = (isChild: boolean) => Prisma.sql`((l.last_verified_at IS NOT NULL OR l.unverified_since IS NOT NULL)
  AND (NOT ${isChild}::boolean OR COALESCE((
    SELECT TRUE FROM muster.walks w WHERE w.environment = l.environment AND w.company_id = l.company_id AND w.resource = l.resource
      AND w.status = 'succeeded' AND w.finished_at IS NOT NULL AND w.kind = 'sync' AND w.pages > 0 LIMIT 1), FALSE)))`;

/**
 * SQL: parts that take the list for a walk: every write of an earlier holder fails afterwards. A removed company has no
 * list to take, so a slow worker cannot bring it back. A company without the parent list lacks the child list too, optional or not. A new list gets the
 * current privacy rules; `follows_rules` says whether an existing one has them.
 */
export function takeList(
  { environment, companyId, resource }: ListKey,
  { runId, rules, isOptional, isChild }: { runId: string; rules: Prisma.Sql; isOptional: boolean; isChild: boolean },
): Prisma.Sql {
  return Prisma.sql`connection AS (
    SELECT environment, company_id, grant_number FROM muster.connections
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid FOR SHARE
  ), list AS (
    INSERT INTO muster.lists AS l (environment, company_id, resource, epoch, last_run_id, privacy, has_marks)
    SELECT environment, company_id, ${resource}::text, 1, ${runId}::uuid, ${rules}, EXISTS (
      SELECT FROM muster.marks m
      WHERE m.environment = connection.environment AND m.company_id = connection.company_id AND m.resource = ${resource}) FROM connection
    ON CONFLICT (environment, company_id, resource) DO UPDATE SET epoch = l.epoch + 1, last_run_id = EXCLUDED.last_run_id,
      unavailable_since = CASE WHEN ${isOptional || isChild}::boolean THEN l.unavailable_since END
    RETURNING l.epoch, l.records, l.last_verified_at, l.id_field, l.unstable_since, l.verified_walk_id, l.has_marks, ${wasRead(isChild)} AS was_read,
      l.unavailable_since IS NOT NULL AS was_unavailable, ${ETAG_TRUST} AS etag_trust,
      l.privacy IS NOT DISTINCT FROM ${rules} AS follows_rules)`;
}

/** The record member that is the id, once a page has shown it. */
export async function findIdField(
  db: Pick<Transaction, 'list'>,
  { environment, companyId, resource }: ListKey,
): Promise<string | null> {
  const key = { environment, companyId, resource };
  return (await db.list.findUnique({ where: { environment_companyId_resource: key } }))?.idField ?? null;
}

/**
 * The first statement of every transaction that writes to a list's rows: locks the list until the end, or throws `fenced` if
 * another worker has taken it. It must be a statement of its own, because a statement that waits for a lock goes on with its old
 * snapshot; steps (runStep) are right without it. Later statements of the transaction keep their plans (database.ts): a
 * plan made while the list's table was small must not scan all of it once it is large.
 */
export async function lockList(tx: Transaction, list: ListKey, epoch: bigint): Promise<void> {
  const rows = await tx.$queryRaw<unknown[]>`
    SELECT ${BY_INDEX} FROM muster.lists
    WHERE environment = ${list.environment} AND company_id = ${list.companyId}::uuid AND resource = ${list.resource} AND epoch = ${epoch}
    FOR UPDATE`;
  if (rows.length === 0) throw fenced(list, 'another worker has taken it over');
}

/** The error of a worker that may not write to the list any more. */
export function fenced(list: ListKey, why: string): MusterError {
  return new MusterError('fenced', `The list ${list.resource} of ${describeCompany(list)} is no longer ours to write: ${why}.`);
}

/** Records that the list changes its order. The caller has locked the list. */
export async function recordUnstable(tx: Transaction, list: ListKey, since: Date): Promise<void> {
  await tx.list.update({ where: { environment_companyId_resource: list }, data: { unstableSince: since } });
}

/** Sets the number of living rows, which other statements only change by a difference. The caller has locked the list. */
export async function setRecords(tx: Transaction, list: ListKey, records: number): Promise<void> {
  await tx.list.updateMany({ where: list, data: { records } });
}

export interface VerifiedWalk {
  readonly etags: EtagUse;
  /** When the parents of a child list were verified, which is no later than the list itself. */
  readonly parents: Date | null;
  /** Paths of the privacy rules that found nothing. */
  readonly unmatchedRules: readonly string[];
}

/**
 * SQL: parts that record `walk` as the list's last verified one, here and in mirror.companies, as of the start of its pass, by the
 * database's clock: the time is compared with others of the same clock.
 */
export function recordVerified(list: ListKey, { parents, unmatchedRules, etags }: VerifiedWalk): Prisma.Sql {
  const { environment, companyId, resource } = list;
  return Prisma.sql`proved AS (
    UPDATE muster.lists l SET last_verified_at = LEAST(walk.pass_started_at, ${parents}::timestamptz), verified_walk_id = walk.id,
      grant_number = COALESCE(walk.grant_number, l.grant_number), unverified_since = NULL, unavailable_since = NULL, privacy_stage = NULLIF(l.privacy_stage, 'walk'),
      unmatched_rules = CASE WHEN walk.records > 0 THEN ${unmatchedRules}::text[] ELSE '{}' END,
      etag_walks = ${etagWalksAfter(etags, [environment, companyId, resource])},
      read_whole_at = CASE WHEN ${etags.isUsed}::boolean THEN l.read_whole_at ELSE walk.pass_started_at END, ${etagsFalseSince(etags)}
    FROM walk WHERE ${isOfList(list)}
    RETURNING l.last_verified_at, l.records
  ), shown AS (
    UPDATE mirror.companies SET verified_at = verified_at || jsonb_build_object(${resource}::text, proved.last_verified_at)
    FROM proved WHERE environment = ${environment} AND company_id = ${companyId}::uuid)`;
}

/** SQL: records that `walk` read the list to its end and proved nothing. The first of several in a row says since when. */
export function recordUnverified(list: ListKey, { etags }: VerifiedWalk): Prisma.Sql {
  return Prisma.sql`unproved AS (
    UPDATE muster.lists l SET unverified_since = COALESCE(l.unverified_since, now()), unavailable_since = NULL, ${etagsFalseSince(etags)}
    FROM walk WHERE ${isOfList(list)})`;
}

/** The reason of walks of a list that the company does not have. */
export const UNAVAILABLE = 'unavailable';

/** The lists that the company does not have, by the newest walk of each. */
export async function findUnavailable(
  tx: Pick<Transaction, '$queryRaw'>,
  { environment, companyId }: CompanyKey,
): Promise<string[]> {
  const rows = await tx.$queryRaw<{ resource: string }[]>`
    SELECT resource FROM muster.lists
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND unavailable_since IS NOT NULL`;
  return rows.map(({ resource }) => resource);
}

/** SQL: records the finding of such a walk. The first of several in a row says since when. */
export function recordUnavailable(list: ListKey): Prisma.Sql {
  return Prisma.sql`lacking AS (
    UPDATE muster.lists l SET unavailable_since = COALESCE(l.unavailable_since, now()) FROM walk WHERE ${isOfList(list)})`;
}

/** The newest walk of the list, if it was verified under the company's present grant: only then all records of the list are known. */
export async function findProof(
  tx: Pick<Transaction, '$queryRaw'>,
  { environment, companyId, resource }: ListKey,
): Promise<{ walkId: string; verifiedAt: Date } | undefined> {
  const [row] = await tx.$queryRaw<{ walkId: string; verifiedAt: Date }[]>`
    SELECT w.id AS "walkId", l.last_verified_at AS "verifiedAt"
    FROM muster.lists l JOIN muster.walks w ON w.id = l.verified_walk_id AND w.epoch = l.epoch
    JOIN muster.connections c ON c.environment = l.environment AND c.company_id = l.company_id AND c.grant_number = w.grant_number
    WHERE l.environment = ${environment} AND l.company_id = ${companyId}::uuid AND l.resource = ${resource}`;
  return row;
}

/** Discards everything that walks have proved of the list, and fences a walk under way. Returns whether there was such a list. */
export async function resetList(tx: Transaction, { environment, companyId, resource }: ListKey): Promise<boolean> {
  const lists = await tx.$executeRaw`
    UPDATE muster.lists SET epoch = epoch + 1, id_field = NULL, verified_walk_id = NULL, last_verified_at = NULL, unstable_since = NULL,
      unverified_since = NULL, unavailable_since = NULL, etag_walks = 0, read_whole_at = NULL, etags_false_since = NULL, begun_at = now()
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}`;
  await tx.$executeRaw`
    UPDATE mirror.companies SET verified_at = verified_at - ${resource}::text
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid`;
  return lists > 0;
}

/** Fences the holder of the list of that walk. Returns false where the walk has no checkpoint. */
export async function fenceListOfCheckpoint(tx: Transaction, { walkId }: { walkId: string }): Promise<boolean> {
  const moved = await tx.$executeRaw`
    UPDATE muster.lists l SET epoch = l.epoch + 1 FROM muster.walks w
    WHERE w.id = ${walkId}::uuid AND w.checkpoint IS NOT NULL
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource`;
  return moved > 0;
}

/**
 * Fences a walk under way, for a caller that changes the list's suppressions or what was received under a parent; the list's proofs
 * stay. Creates the row if it is missing and `hasSuppressions` says that later walks must check suppressions. The caller has locked the connection.
 */
export async function fenceList(tx: Transaction, list: ListKey, hasSuppressions?: boolean): Promise<void> {
  const { environment, companyId, resource } = list;
  if (hasSuppressions)
    await tx.$executeRaw`
      INSERT INTO muster.lists (environment, company_id, resource, has_marks)
      VALUES (${environment}, ${companyId}::uuid, ${resource}, true) ON CONFLICT DO NOTHING`;
  await tx.$executeRaw`
    UPDATE muster.lists SET epoch = epoch + 1, has_marks = COALESCE(${hasSuppressions ?? null}::boolean, has_marks) WHERE ${isOfList(list)}`;
  // The list's proof stays that of its newest walk, to which holds and child lists refer.
  await tx.$executeRaw`
    UPDATE muster.walks w SET epoch = l.epoch FROM muster.lists l
    WHERE w.environment = ${environment} AND w.company_id = ${companyId}::uuid AND w.resource = ${resource} AND w.status = 'succeeded'
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource AND w.epoch = l.epoch - 1`;
}

/** Records whether the list has suppressions left. The caller has locked it. */
export async function recordSuppressions(tx: Transaction, list: ListKey): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.lists SET has_marks = EXISTS (SELECT FROM muster.marks WHERE ${isOfList(list)}) WHERE ${isOfList(list)}`;
}

/** Subtracts living rows that are gone. The caller has locked the list. */
export async function subtractRecords(tx: Transaction, list: ListKey, records: number): Promise<void> {
  await tx.$executeRaw`UPDATE muster.lists SET records = GREATEST(0, records - ${records}::int) WHERE ${isOfList(list)}`;
}

/** Whether every list of the resource that has records was proved complete. */
export async function areAllProved(tx: Transaction, { resource }: Pick<ListKey, 'resource'>): Promise<boolean> {
  return (await tx.list.count({ where: { resource, records: { gt: 0 }, lastVerifiedAt: null } })) === 0;
}

/** SQL: after how long without a proof the list named `resource` is late, as an interval. */
export function staleAfter(hours: StaleAfterHours, resource = Prisma.sql`asked.resource`): Prisma.Sql {
  const own = Object.entries(ownHours(hours)).map(
    ([name, some]) => Prisma.sql`WHEN ${name}::text THEN ${Math.round(some * 3_600)}::int * interval '1 second'`,
  );
  const nightly = Prisma.sql`${nightlyHours(hours)}::int * interval '1 hour'`;
  return own.length === 0
    ? Prisma.sql`(${nightly})`
    : Prisma.sql`(CASE ${resource} ${Prisma.join(own, ' ')} ELSE ${nightly} END)`;
}

/** SQL: the last proof of list `l`, named `resource`, is too old; null where it has none. */
export function isTooOld(hours: StaleAfterHours): Prisma.Sql {
  return Prisma.sql`(l.last_verified_at < now() - ${staleAfter(hours)})`;
}
