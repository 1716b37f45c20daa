// muster.lists: what is known of one list of one company across walks. Whoever writes to a list's rows, in schema mirror or in the ledger,
// locks its row here first (lockList), and nothing that this list shares with other lists before it. A company's connection is locked
// before its lists, a run behind them, a walk behind the run.

import { type CompanyKey, describeCompany, type Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { BY_INDEX } from '../statements/by-index.js';
import { ETAG_TRUST, type EtagUse, etagsFalseSince, etagWalksAfter } from './etag-trust.js';
import { lacksFirstProof } from './unproved-lists.js';

/** One list of one company: what is walked, written and fenced as a whole. */
export interface ListKey extends CompanyKey {
  readonly resource: string;
}

/** The condition that a row belongs to the list. */
export function isOfList({ environment, companyId, resource }: ListKey): Prisma.Sql {
  return Prisma.sql`environment = ${environment} AND company_id = ${companyId}::uuid AND resource = ${resource}`;
}

/**
 * Whether a walk has read the list, `l`, to its end, proved or not. A child list that was walked while there was no parent was never asked for. By a value
 * and not by EXISTS, for which PostgreSQL may read all walks.
 */
const wasRead = (isChild: boolean) => Prisma.sql`((l.last_verified_at IS NOT NULL OR l.unverified_since IS NOT NULL)
  AND (NOT ${isChild}::boolean OR COALESCE((
    SELECT TRUE FROM muster.walks w WHERE w.environment = l.environment AND w.company_id = l.company_id AND w.resource = l.resource
      AND w.status = 'succeeded' AND w.finished_at IS NOT NULL AND w.kind = 'sync' AND w.pages > 0 LIMIT 1), FALSE)))`;

/**
 * The parts of a statement that take the list for a walk: from here on every earlier holder's writes fail. A company that was removed has no
 * list to take, so that a slow worker cannot bring it back. A child list lacks with its parents, whether or not the catalogue calls it optional. A list that is new stands under the privacy rules; `follows_rules` says whether any other does.
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
    RETURNING l.epoch, l.records, l.id_field, l.unstable_since, l.verified_walk_id, l.has_marks, ${wasRead(isChild)} AS was_read,
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
 * The first statement of every transaction that writes to a list's rows: locks the list until it ends, or throws `fenced` when
 * somebody else has taken it since. A statement of its own, because a statement that waits for the lock goes on with the snapshot it
 * had before; steps (runStep) are right without. The statements behind it are planned once and their plans kept (database.ts): a
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

/** Notes that the list changes its order. The caller has locked the list. */
export async function recordUnstable(tx: Transaction, list: ListKey, since: Date): Promise<void> {
  await tx.list.update({ where: { environment_companyId_resource: list }, data: { unstableSince: since } });
}

/** Sets the number of living rows, which is otherwise kept by differences. The caller has locked the list. */
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
 * The parts of a statement that note `walk` as the list's last verified one, here and in mirror.companies, as of the start of its pass, by the
 * database's clock: the time is compared with others that it made.
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

/** The part of a statement that notes that `walk` read the list to its end and proved nothing. The first of several in a row says since when. */
export function recordUnverified(list: ListKey, { etags }: VerifiedWalk): Prisma.Sql {
  return Prisma.sql`unproved AS (
    UPDATE muster.lists l SET unverified_since = COALESCE(l.unverified_since, now()), unavailable_since = NULL, ${etagsFalseSince(etags)}
    FROM walk WHERE ${isOfList(list)})`;
}

/** The reason of walks that found that the company does not have the list. */
export const UNAVAILABLE = 'unavailable';

/** Which of the company's lists it does not have, by the newest walk of each. */
export async function findUnavailable(
  tx: Pick<Transaction, '$queryRaw'>,
  { environment, companyId }: CompanyKey,
): Promise<string[]> {
  const rows = await tx.$queryRaw<{ resource: string }[]>`
    SELECT resource FROM muster.lists
    WHERE environment = ${environment} AND company_id = ${companyId}::uuid AND unavailable_since IS NOT NULL`;
  return rows.map(({ resource }) => resource);
}

/** The part of a statement that notes what such a walk found. The first of several in a row says since when. */
export function recordUnavailable(list: ListKey): Prisma.Sql {
  return Prisma.sql`lacking AS (
    UPDATE muster.lists l SET unavailable_since = COALESCE(l.unavailable_since, now()) FROM walk WHERE ${isOfList(list)})`;
}

/** The newest walk of the list, if it was verified, and under the company's present grant: only then are all of the list's records known. */
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

/** Gives up all that walks have proved of the list, and fences whoever walks it. Returns whether there was such a list. */
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

/** Ends the right of whoever has the list of that walk to write to it. Returns false where the walk has no checkpoint. */
export async function fenceListOfCheckpoint(tx: Transaction, { walkId }: { walkId: string }): Promise<boolean> {
  const moved = await tx.$executeRaw`
    UPDATE muster.lists l SET epoch = l.epoch + 1 FROM muster.walks w
    WHERE w.id = ${walkId}::uuid AND w.checkpoint IS NOT NULL
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource`;
  return moved > 0;
}

/**
 * Takes the list from whoever walks it, for somebody who changes its marks, or what was received of it under a parent: what is known of the list
 * stays known. Makes its row where there is none and `hasMarks` says that walks to come must ask for marks. The caller has locked the connection.
 */
export async function fenceList(tx: Transaction, list: ListKey, hasMarks?: boolean): Promise<void> {
  const { environment, companyId, resource } = list;
  if (hasMarks)
    await tx.$executeRaw`
      INSERT INTO muster.lists (environment, company_id, resource, has_marks)
      VALUES (${environment}, ${companyId}::uuid, ${resource}, true) ON CONFLICT DO NOTHING`;
  await tx.$executeRaw`
    UPDATE muster.lists SET epoch = epoch + 1, has_marks = COALESCE(${hasMarks ?? null}::boolean, has_marks) WHERE ${isOfList(list)}`;
  // The proof of the list stays that of its newest walk, which holds and child lists go by.
  await tx.$executeRaw`
    UPDATE muster.walks w SET epoch = l.epoch FROM muster.lists l
    WHERE w.environment = ${environment} AND w.company_id = ${companyId}::uuid AND w.resource = ${resource} AND w.status = 'succeeded'
      AND l.environment = w.environment AND l.company_id = w.company_id AND l.resource = w.resource AND w.epoch = l.epoch - 1`;
}

/** Notes whether the list has marks left. The caller has locked it. */
export async function recordMarks(tx: Transaction, list: ListKey): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.lists SET has_marks = EXISTS (SELECT FROM muster.marks WHERE ${isOfList(list)}) WHERE ${isOfList(list)}`;
}

/** Counts living rows that are not there any more. The caller has locked the list. */
export async function subtractRecords(tx: Transaction, list: ListKey, records: number): Promise<void> {
  await tx.$executeRaw`UPDATE muster.lists SET records = GREATEST(0, records - ${records}::int) WHERE ${isOfList(list)}`;
}

/** Of the lists of active companies, these resources alone: how many were never proved complete, and how old the oldest proof is. */
export async function measureProofs(
  db: Pick<Transaction, '$queryRaw'>,
  { resources }: { resources: readonly string[] },
): Promise<{ unverified: number; oldestSeconds: number | null }> {
  const [row] = await db.$queryRaw<{ unverified: number; oldestSeconds: number | null }[]>`
    SELECT count(*) FILTER (WHERE l.last_verified_at IS NULL AND l.unavailable_since IS NULL)::int AS unverified,
      extract(epoch FROM now() - min(l.last_verified_at))::float8 AS "oldestSeconds"
    FROM muster.lists l JOIN muster.connections c USING (environment, company_id)
    WHERE c.status = 'active' AND l.resource = ANY(${resources}::text[])`;
  return row!;
}

/** The lists of onboarded companies by what is proved of them. `total` is the sum of `verified`, `late` and `never`: a list counts in one of them. */
export interface ProofCounts {
  readonly total: number;
  readonly verified: number;
  /** Their last proof is too old, or their first one should be there, and nobody has paused their company. */
  readonly late: number;
  /** They were never proved complete, and need not be yet. */
  readonly never: number;
  /** The newest walk that read them to their end proved nothing, whatever was proved before. */
  readonly unverified: number;
  /** Their companies do not have them, as the service says: they count nowhere else. */
  readonly unavailable: number;
  /** They were proved since the night began. */
  readonly ofNight: number;
  /** The oldest last proof, but for paused companies; null where there is none. */
  readonly oldestVerifiedAt: Date | null;
}

/** Counts these resources of every company, in one environment or both, the lists included that no walk has opened yet. */
export async function countProofs(
  db: Pick<Transaction, '$queryRaw'>,
  asked: {
    readonly resources: readonly string[];
    readonly environment?: Environment | undefined;
    readonly staleAfterHours: number;
    readonly nightBeganAt: Date;
  },
): Promise<ProofCounts> {
  const { resources, environment = null, staleAfterHours, nightBeganAt } = asked;
  const isAsked = Prisma.sql`(${environment}::text IS NULL OR c.environment = ${environment})`;
  const isLate = Prisma.sql`(NOT c.paused AND (${isOlderThan(staleAfterHours)} OR ${lacksFirstProof(staleAfterHours)}))`;
  const [row] = await db.$queryRaw<Omit<ProofCounts, 'never'>[]>`
    SELECT count(*) FILTER (WHERE l.unavailable_since IS NULL)::int AS total,
      count(*) FILTER (WHERE ${isLate})::int AS late,
      count(*) FILTER (WHERE l.last_verified_at IS NOT NULL AND NOT ${isLate})::int AS verified,
      count(l.unverified_since)::int AS unverified,
      count(l.unavailable_since)::int AS unavailable,
      count(*) FILTER (WHERE l.last_verified_at >= ${nightBeganAt}::timestamptz)::int AS "ofNight",
      min(l.last_verified_at) FILTER (WHERE NOT c.paused) AS "oldestVerifiedAt"
    FROM muster.connections c CROSS JOIN unnest(${resources}::text[]) AS asked(resource)
    LEFT JOIN muster.lists l ON l.environment = c.environment AND l.company_id = c.company_id AND l.resource = asked.resource
    WHERE ${isAsked}`;
  const { total, late, verified } = row!;
  return { ...row!, never: total - late - verified };
}

/** The condition that the last proof of a list, `l`, is older than so many hours; null where it has none. */
export function isOlderThan(hours: number): Prisma.Sql {
  return Prisma.sql`(l.last_verified_at < now() - ${hours}::int * interval '1 hour')`;
}
