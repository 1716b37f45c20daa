// muster.holds: deletions held back for a person to decide. A list has at most one open hold of each cause. Lock order: connections, lists,
// runs, walks, holds.
//
//   share   too many rows would go at once. A verified walk opens it; a later one, or a decision, closes it.
//   grant   no verified walk under the present grant has received the rows (held-rows.ts). The first verified walk under the grant opens the hold, each
//           later one renews it under the same id. A decision closes it, or a walk in which nothing is missing.
import { ENVIRONMENTS, type Environment } from '../../core/company.js';
import { MusterError } from '../../core/errors.js';
import { type Hold, Prisma } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { type Page, type PageQuery, pageBySeq } from '../statements/cursor.js';
import { isGiven, newestRows, type OfCompanies, readNewest } from '../statements/newest-page.js';
import type { WalkGrant } from './held-rows.js';
import { isOfList, type ListKey } from './lists.js';

export const HOLD_STATUSES = ['open', 'approved', 'rejected', 'superseded'] as const;
export type HoldStatus = (typeof HOLD_STATUSES)[number];

export const HOLD_CAUSES = ['share', 'grant'] as const;
export type HoldCause = (typeof HOLD_CAUSES)[number];

export interface HoldRow extends Omit<Hold, 'environment' | 'status' | 'cause'> {
  readonly environment: Environment;
  readonly status: HoldStatus;
  readonly cause: HoldCause;
}

export type HoldFilter = Partial<Pick<HoldRow, 'status' | 'cause' | 'environment' | 'companyId'>> & PageQuery & OfCompanies;

/** Throws `hold_not_found`. */
export async function findHold({ hold }: Pick<Transaction, 'hold'>, id: string): Promise<HoldRow> {
  const row = await hold.findUnique({ where: { id } });
  if (!row) throw new MusterError('hold_not_found', `There is no hold ${id}: GET /api/holds lists them.`);
  return row as HoldRow;
}

/** Locks an undecided hold. Throws `hold_not_found`, `hold_not_open`. */
export async function lockOpenHold(tx: Transaction, id: string): Promise<void> {
  await tx.$queryRaw`SELECT 1 FROM muster.holds WHERE id = ${id}::uuid FOR UPDATE`;
  requireOpenHold(await findHold(tx, id));
}

/** Throws `hold_not_open`. */
export function requireOpenHold({ id, status }: Pick<HoldRow, 'id' | 'status'>): void {
  if (status !== 'open') throw new MusterError('hold_not_open', `The hold ${id} is ${status} already.`);
}

/** The person who decides on a hold, and why. */
export interface Decision {
  readonly by?: string;
  readonly reason?: string | undefined;
}

/** Closes one hold, or the open holds of a list, of every cause or of one. Returns whether any was open. */
export async function closeHolds(
  tx: Transaction,
  which: { readonly id: string } | (ListKey & { readonly cause?: HoldCause }),
  status: Exclude<HoldStatus, 'open'>,
  { by, reason }: Decision = {},
): Promise<boolean> {
  const decision = { decidedBy: by ?? null, decisionReason: reason ?? null };
  const { count } = await tx.hold.updateMany({
    where: { ...which, status: 'open' },
    data: { status, closedAt: new Date(), ...decision },
  });
  return count > 0;
}

/** A hold's summary of the rows that wait. */
type Waiting = Pick<Hold, 'runId' | 'walkId' | 'count' | 'living' | 'sample'>;

/**
 * Renews the open hold of cause `grant`, or closes it where nothing is missing. The first verified walk under a grant opens one; a later one does not, since
 * a person has rejected the one that was there. Returns whether one was opened. The caller has locked the list.
 */
export async function renewGrantHold(
  tx: Transaction,
  { environment, companyId, resource }: ListKey,
  waiting: Waiting,
  { number, authorizedAt, isFirst, hasHeldRows }: WalkGrant,
): Promise<boolean> {
  if (!isFirst && !hasHeldRows) return false;
  const grantHold = { environment, companyId, resource, cause: 'grant' } satisfies ListKey & { cause: HoldCause };
  if (waiting.count === 0) {
    await closeHolds(tx, grantHold, 'superseded');
    return false;
  }
  const data = { ...waiting, grantNumber: number, authorizedAt };
  const { count } = await tx.hold.updateMany({ where: { ...grantHold, status: 'open' }, data });
  if (count > 0 || !isFirst) return false;
  await tx.hold.create({ data: { ...grantHold, ...data } });
  return true;
}

/** Removes holds whose walk is gone, at most `limit` of them; as long as it is there, its hold says which rows it left. Returns how many. */
export function removeOldHolds(db: Database, { limit }: { limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.holds WHERE id IN (
      SELECT h.id FROM muster.holds h
      WHERE h.status <> 'open' AND NOT EXISTS (SELECT FROM muster.walks w WHERE w.id = h.walk_id) LIMIT ${limit}::int)`;
}

/** Removes these ids from what holds of the list show. The caller has locked the list. */
export async function eraseFromSamples(tx: Transaction, list: ListKey, ids: readonly string[]): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.holds SET sample = ARRAY(SELECT s.id FROM unnest(sample) WITH ORDINALITY AS s(id, n) WHERE s.id <> ALL(${ids}::text[]) ORDER BY n)
    WHERE ${isOfList(list)} AND sample && ${ids}::text[]`;
}

/** SQL: closes holds of the list that walks before `walk` left open. */
export function supersedeHolds(list: ListKey): Prisma.Sql {
  return Prisma.sql`superseded AS (
    UPDATE muster.holds h SET status = 'superseded', closed_at = now()
    FROM walk WHERE ${isOfList(list)} AND h.status = 'open' AND h.walk_id <> walk.id)`;
}

/** The hold of rows that a walk would have deleted: the open one, or the newest. */
export type HoldOfWalk = Pick<HoldRow, 'id' | 'cause' | 'count' | 'status'>;

/** SQL: that of the walk as JSON, or null; `w` has its list. A list has few holds, and an index finds them. */
const holdOf = (walkId: Prisma.Sql) => Prisma.sql`(
  SELECT jsonb_build_object('id', h.id, 'cause', h.cause, 'count', h.count, 'status', h.status) FROM muster.holds h
  WHERE h.environment = w.environment AND h.company_id = w.company_id AND h.resource = w.resource AND h.walk_id = ${walkId}
  ORDER BY h.status = 'open' DESC, h.seq DESC LIMIT 1)`;

/** SQL: that of walk `w`. */
export const HOLD_OF_WALK = holdOf(Prisma.sql`w.id`);

/** The holds of these walks by the id of the walk; walks without one are left out. */
export async function holdsOfWalks(
  db: Pick<Database, 'prisma'>,
  walks: readonly (ListKey & { readonly walkId: string })[],
): Promise<Map<string, HoldOfWalk>> {
  if (walks.length === 0) return new Map();
  const found = await db.prisma.$queryRaw<{ walkId: string; hold: HoldOfWalk | null }[]>`
    SELECT w.walk_id::text AS "walkId", ${holdOf(Prisma.sql`w.walk_id`)} AS hold
    FROM unnest(${walks.map(({ environment }) => environment)}::text[], ${walks.map(({ companyId }) => companyId)}::uuid[],
      ${walks.map(({ resource }) => resource)}::text[], ${walks.map(({ walkId }) => walkId)}::uuid[]) AS w(environment, company_id, resource, walk_id)`;
  return new Map(found.flatMap(({ walkId, hold }) => (hold ? [[walkId, hold] as const] : [])));
}

/** Newest first. Throws `invalid_request` for a cursor that no response gave. */
export async function listHolds(
  db: Database,
  { status, cause, environment, companyId, companies, limit, cursor }: HoldFilter,
): Promise<Page<HoldRow>> {
  const page = { table: 'holds', companies, limit: limit + 1, cursor } as const;
  const given = [...isGiven('environment', environment), ...isGiven('status', status), ...isGiven('cause', cause)];
  const choices = {
    environment: environment ? [environment] : ENVIRONMENTS,
    status: status ? [status] : HOLD_STATUSES,
    ...(cause && { cause: [cause] }),
  };
  // A company has few enough holds to scan.
  const byCompany = companyId !== undefined && [...isGiven('company_id', companyId, 'uuid'), ...given];
  const newest = newestRows({ ...page, ...(byCompany ? { conditions: byCompany } : given.length > 0 && { choices }) });
  const rows = await readNewest(
    db,
    { companies },
    (tx) => tx.$queryRaw<HoldRow[]>`
    SELECT h.id, h.seq, h.environment, h.company_id AS "companyId", h.resource, h.run_id AS "runId", h.walk_id AS "walkId", h.count, h.living, h.sample,
      h.status, h.cause, h.grant_number AS "grantNumber", h.authorized_at AS "authorizedAt", h.opened_at AS "openedAt", h.closed_at AS "closedAt",
      h.decided_by AS "decidedBy", h.decision_reason AS "decisionReason"
    FROM (${newest}) h ORDER BY h.seq DESC`,
  );
  return pageBySeq(rows, { limit, cursor });
}

/** For how many seconds the oldest open hold has been open; 0 without one. */
export async function measureOldestHold(db: Pick<Transaction, '$queryRaw'>): Promise<number> {
  const [row] = await db.$queryRaw<{ seconds: number }[]>`
    SELECT COALESCE(extract(epoch FROM now() - min(opened_at)), 0)::float8 AS seconds FROM muster.holds WHERE status = 'open'`;
  return row!.seconds;
}

/** Restricts to one environment, or to none. */
export async function countOpenHolds(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: { environment?: Environment | undefined | null } = {},
): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM muster.holds
    WHERE status = 'open' AND (${environment}::text IS NULL OR environment = ${environment})`;
  return row!.count;
}
