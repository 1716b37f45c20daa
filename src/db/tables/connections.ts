// muster.connections: the onboarded companies and what each may do (docs/states.md). Onboarding inserts a row, removal deletes it, refreshes
// end and restore the authorization, requests for runs set the next sync. Lock order: the connection is the first row that any writer locks.
// A writer of several connections locks them in the order of their keys, or passes over the ones that are locked.
import type { CompanyKey, Environment } from '../../core/company.js';
import { type Connection, Prisma, type Token } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { isOnSchedule } from './active-runs.js';

export type ConnectionStatus = 'active' | 'reauthorization_required' | 'paused';

/** Why a company must authorize again. */
export type ReauthorizationReason =
  /** The service refused the refresh token. */
  | 'token_refused'
  /** An answer was lost, and the token that was sent then is refused or unanswered now. */
  | 'refresh_outcome_unknown'
  /** The service answered a refresh with another company's token. */
  | 'token_for_another_company'
  /** API calls are refused although the token was just renewed. */
  | 'access_token_refused'
  /** This database was a copy, whose tokens were deleted. */
  | 'detached'
  /** It was removed after the backup was taken that this database was restored from. */
  | 'removed_after_backup';

/** The last refresh, if it failed: the code of the failure, and the status and error code of the answer. */
export interface FailedRefresh {
  readonly refreshFailure: string | null;
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  /** When it is tried again; null for a company that must authorize again. */
  readonly retryAt: Date | null;
}

/** The quiet hours of a company as they are stored; null: those of the installation. */
export type OwnQuietHours = Pick<Connection, 'quietHours'>;

/** A connection with its company's name and the times of its access token. */
export interface ConnectionRow
  extends CompanyKey,
    Pick<Connection, 'paused' | 'reauthorizationReason' | 'nextSyncAt' | 'grantNumber' | 'authorizedAt'>,
    OwnQuietHours,
    Pick<Token, 'expiresAt' | 'refreshedAt'>,
    FailedRefresh {
  readonly name: string | null;
  readonly status: ConnectionStatus;
}

/**
 * Connections from `source`, with what belongs to their rows, by look-ups (docs/internals/planner.md); `more` begins with a comma.
 */
export function selectFrom(source: Prisma.Sql, more = Prisma.empty): Prisma.Sql {
  return Prisma.sql`
  SELECT environment, company_id::text AS "companyId", m.name, c.status, c.paused, c.reauthorization_reason AS "reauthorizationReason",
         t.expires_at AS "expiresAt", t.refreshed_at AS "refreshedAt", c.next_sync_at AS "nextSyncAt",
         c.grant_number AS "grantNumber", c.authorized_at AS "authorizedAt", c.quiet_hours AS "quietHours",
         CASE WHEN t.transient_failures > 0 THEN t.last_failure END AS "refreshFailure", 
         CASE WHEN t.transient_failures > 0 OR c.reauthorization_reason IS NOT NULL THEN t.last_status END AS "lastStatus",
         CASE WHEN t.transient_failures > 0 OR c.reauthorization_reason IS NOT NULL THEN t.last_error END AS "lastError",
         CASE WHEN t.transient_failures > 0 AND c.reauthorization_reason IS NULL THEN t.refresh_at END AS "retryAt"${more}
  FROM ${source} c
  LEFT JOIN LATERAL (SELECT expires_at, refreshed_at, refresh_at, transient_failures, last_failure, last_status, last_error FROM muster.tokens
    WHERE environment = c.environment AND company_id = c.company_id LIMIT 1) t ON TRUE
  LEFT JOIN LATERAL (SELECT name FROM mirror.companies WHERE environment = c.environment AND company_id = c.company_id LIMIT 1) m ON TRUE`;
}

/** The condition that a row belongs to the company. */
export function isOf({ environment, companyId }: CompanyKey): Prisma.Sql {
  return Prisma.sql`environment = ${environment} AND company_id = ${companyId}::uuid`;
}

/** The condition that a row of this table is of the company; undefined: of any that has the quiet hours of the installation. */
export function isQuietWith(company: CompanyKey | undefined, table: 'muster.runs' | 'muster.tokens'): Prisma.Sql {
  if (company) return isOf(company);
  const row = Prisma.raw(table);
  return Prisma.sql`(SELECT TRUE FROM muster.connections c
    WHERE c.environment = ${row}.environment AND c.company_id = ${row}.company_id AND c.quiet_hours IS NULL)`;
}

/** Rows of a FROM, `asked`: environment and company_id of each company. */
export function rowsOf(companies: readonly CompanyKey[]): Prisma.Sql {
  const environments = companies.map(({ environment }) => environment);
  const ids = companies.map(({ companyId }) => companyId);
  return Prisma.sql`unnest(${environments}::text[], ${ids}::uuid[]) AS asked(environment, company_id)`;
}

export async function findConnection(db: Database, company: CompanyKey): Promise<ConnectionRow | undefined> {
  const [row] = await db.prisma.$queryRaw<ConnectionRow[]>`${selectFrom(Prisma.sql`muster.connections`)} WHERE ${isOf(company)}`;
  return row;
}

/** The grant that a connection has now. */
export type ConnectionGrant = Pick<Connection, 'grantNumber' | 'grantClaims' | 'authorizedAt'>;

const GRANT = Prisma.sql`grant_number AS "grantNumber", grant_claims AS "grantClaims", authorized_at AS "authorizedAt"`;

/** Inserts and locks the connection, or ends its need to authorize again. It keeps its grant. */
export async function authorizeConnection(
  tx: Transaction,
  { environment, companyId }: CompanyKey,
): Promise<ConnectionGrant & { readonly created: boolean }> {
  const [row] = await tx.$queryRaw<[ConnectionGrant & { created: boolean }]>`
    INSERT INTO muster.connections AS c (environment, company_id) VALUES (${environment}, ${companyId}::uuid)
    ON CONFLICT (environment, company_id) DO UPDATE SET reauthorization_reason = NULL,
      status_changed_at = CASE WHEN c.reauthorization_reason IS NULL THEN c.status_changed_at ELSE now() END
    RETURNING xmax = 0 AS created, ${GRANT}`;
  return row;
}

/** Locks the connection as lockConnection does, and returns its grant; undefined when it is not there. */
export async function lockGrant(tx: Transaction, company: CompanyKey): Promise<ConnectionGrant | undefined> {
  const [row] = await tx.$queryRaw<ConnectionGrant[]>`SELECT ${GRANT} FROM muster.connections WHERE ${isOf(company)} FOR UPDATE`;
  return row;
}

/** Begins the next grant of a connection, or stores what the tokens of its grant claim. The caller has locked it. Returns the grant's number. */
export async function recordConnectionGrant(
  tx: Transaction,
  { company, isNew, claims }: { company: CompanyKey; isNew: boolean; claims: string | null },
): Promise<number> {
  const [row] = await tx.$queryRaw<[{ grantNumber: number }]>`
    UPDATE muster.connections SET grant_number = grant_number + ${isNew ? 1 : 0}::int, grant_claims = ${claims},
      authorized_at = CASE WHEN ${isNew}::boolean THEN now() ELSE authorized_at END
    WHERE ${isOf(company)} RETURNING grant_number AS "grantNumber"`;
  return row.grantNumber;
}

/** Hashes of claims made with another key than this one, each with the encrypted access token that carries the claims. */
export function findOldClaims(
  db: Pick<Database, 'prisma'>,
  { currentKey }: { currentKey: string },
): Promise<(CompanyKey & { readonly claims: string; readonly accessToken: string | null })[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id::text AS "companyId", grant_claims AS claims, access_token AS "accessToken"
    FROM muster.connections LEFT JOIN muster.tokens USING (environment, company_id)
    WHERE grant_claims IS NOT NULL AND NOT starts_with(grant_claims, ${`v1.${currentKey}.`})`;
}

/** Replaces such a hash unless it has changed since it was read. Null: the claims are not known any more. */
export async function replaceClaims(
  db: Pick<Database, 'prisma'>,
  { company, claims, again }: { company: CompanyKey; claims: string; again: string | null },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.connections SET grant_claims = ${again} WHERE ${isOf(company)} AND grant_claims = ${claims}`;
}

/** Keeps the company from being removed until the transaction ends. Returns false where there is none. */
export async function shareConnection(tx: Transaction, company: CompanyKey): Promise<boolean> {
  return (await tx.$queryRaw<unknown[]>`SELECT 1 FROM muster.connections WHERE ${isOf(company)} FOR SHARE`).length > 0;
}

/** Keeps the connection from being removed or changed until the transaction ends. False when it is not there. */
export async function lockConnection(tx: Transaction, company: CompanyKey): Promise<boolean> {
  const rows = await tx.$queryRaw<unknown[]>`SELECT 1 FROM muster.connections WHERE ${isOf(company)} FOR UPDATE`;
  return rows.length > 0;
}

/** Ends the authorization, or restores it (null). Returns whether it was `from` until now. */
export async function changeAuthorization(
  tx: Transaction,
  change: { company: CompanyKey; from: ReauthorizationReason | null; to: ReauthorizationReason | null; at: Date },
): Promise<boolean> {
  const changed = await tx.$executeRaw`
    UPDATE muster.connections SET reauthorization_reason = ${change.to}, status_changed_at = ${change.at}
    WHERE ${isOf(change.company)} AND reauthorization_reason IS NOT DISTINCT FROM ${change.from}`;
  return changed > 0;
}

/** Pauses or resumes. Does nothing where the company already is in that state. */
export async function setPaused(
  db: Database,
  { company, paused, at }: { company: CompanyKey; paused: boolean; at: Date },
): Promise<void> {
  await db.prisma.$executeRaw`
    UPDATE muster.connections SET paused = ${paused}, status_changed_at = ${at} WHERE ${isOf(company)} AND paused <> ${paused}`;
}

/** Sets the quiet hours of the company; null: those of the installation. The caller has locked the connection. */
export async function setQuietHours(tx: Transaction, company: CompanyKey, quietHours: string | null): Promise<void> {
  await tx.$executeRaw`UPDATE muster.connections SET quiet_hours = ${quietHours} WHERE ${isOf(company)}`;
}

/**
 * The companies among these that must authorize again. `change` names the authorization that was lost: by the connection, and by the
 * epoch of its token, which every stored pair moves.
 */
export function findLostAuthorizations(db: Database, companies: CompanyKey[]): Promise<(CompanyKey & { change: string })[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id::text AS "companyId", concat_ws('|', c.id, t.epoch) AS change
    FROM muster.connections c LEFT JOIN muster.tokens t USING (environment, company_id)
    JOIN ${rowsOf(companies)} USING (environment, company_id)
    WHERE c.reauthorization_reason IS NOT NULL`;
}

/** When a company's next nightly sync is. */
type PlannedSync = CompanyKey & { readonly at: Date };

/** Rows of a FROM, `planned`: environment, company_id and at of each sync. */
function rowsOfSyncs(syncs: readonly PlannedSync[]): Prisma.Sql {
  const environments = syncs.map(({ environment }) => environment);
  const ids = syncs.map(({ companyId }) => companyId);
  return Prisma.sql`unnest(${environments}::text[], ${ids}::uuid[], ${syncs.map(({ at }) => at)}::timestamptz[])
    AS planned(environment, company_id, at)`;
}

/** A connection as a request for a run finds it. */
export type LockedConnection = CompanyKey &
  Pick<ConnectionRow, 'status' | 'nextSyncAt'> &
  Pick<Connection, 'createdAt'> &
  OwnQuietHours;

/** Locks the connections of these companies, without the ones that are gone, not due or passed over. */
export function lockConnections(
  tx: Transaction,
  { companies, onlyDue, skipLocked }: { companies: readonly CompanyKey[]; onlyDue: boolean; skipLocked: boolean },
): Promise<LockedConnection[]> {
  return tx.$queryRaw`
    SELECT environment, company_id AS "companyId", status, created_at AS "createdAt", next_sync_at AS "nextSyncAt",
      quiet_hours AS "quietHours"
    FROM muster.connections c JOIN ${rowsOf(companies)} USING (environment, company_id)
    WHERE NOT ${onlyDue} OR next_sync_at <= now()
    FOR UPDATE OF c ${skipLocked ? Prisma.sql`SKIP LOCKED` : Prisma.empty}`;
}

/** The caller has locked the connections. */
export async function setNextSyncs(tx: Transaction, { syncs }: { syncs: readonly PlannedSync[] }): Promise<void> {
  if (syncs.length === 0) return;
  await tx.$executeRaw`
    UPDATE muster.connections c SET next_sync_at = planned.at FROM ${rowsOfSyncs(syncs)}
    WHERE c.environment = planned.environment AND c.company_id = planned.company_id`;
}

/** Sets the next sync of a company that has none yet. */
export async function setFirstSync(db: Database, { at, ...company }: PlannedSync): Promise<void> {
  await db.prisma.$executeRaw`UPDATE muster.connections SET next_sync_at = ${at} WHERE ${isOf(company)} AND next_sync_at IS NULL`;
}

/**
 * Active companies whose sync is due by the database's clock `now`, or was never planned. A company waits while a run by the schedules of its lists is
 * queued or running.
 */
export function findDueSyncs(
  db: Database,
  { limit }: { limit: number },
): Promise<(CompanyKey & { readonly nextSyncAt: Date | null; readonly now: Date })[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id AS "companyId", next_sync_at AS "nextSyncAt", now() AS now FROM muster.connections c
    WHERE status = 'active' AND (next_sync_at IS NULL OR next_sync_at <= now()) AND NOT ${isOnSchedule(Prisma.sql`c`)} ORDER BY next_sync_at NULLS FIRST LIMIT ${limit}`;
}

/** Takes back the nightly syncs of at most `limit` companies, where no list is walked every night. Returns how many. */
export function unplanSyncs(db: Database, { limit }: { limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    WITH planned AS (
      SELECT environment, company_id FROM muster.connections WHERE next_sync_at IS NOT NULL
      ORDER BY environment, company_id LIMIT ${limit}::int FOR UPDATE)
    UPDATE muster.connections c SET next_sync_at = NULL FROM planned
    WHERE c.environment = planned.environment AND c.company_id = planned.company_id`;
}

/** The syncs that are not due yet by the database's clock `now`, of all companies, in the order of their keys. */
export function findPlannedSyncs(db: Database): Promise<(PlannedSync & { readonly now: Date })[]> {
  return db.prisma.$queryRaw`
    SELECT environment, company_id AS "companyId", next_sync_at AS at, now() AS now FROM muster.connections
    WHERE next_sync_at > now() ORDER BY environment, company_id`;
}

/**
 * Moves syncs that are not due; returns how many were moved. Locks in the order of the keys, so that several workers that start
 * at once wait for one another and never in a circle.
 */
export function movePlannedSyncs(db: Database, { syncs }: { syncs: readonly PlannedSync[] }): Promise<number> {
  return db.prisma.$executeRaw`
    WITH moved AS (
      SELECT environment, company_id, planned.at FROM muster.connections c JOIN ${rowsOfSyncs(syncs)} USING (environment, company_id)
      WHERE c.next_sync_at > clock_timestamp() AND c.next_sync_at <> planned.at
      ORDER BY environment, company_id FOR UPDATE OF c)
    UPDATE muster.connections c SET next_sync_at = moved.at FROM moved
    WHERE c.environment = moved.environment AND c.company_id = moved.company_id`;
}

/** Restricts to one environment, or to none. */
export function countCompanies(
  db: Pick<Transaction, '$queryRaw'>,
  { environment = null }: { environment?: Environment | null | undefined } = {},
): Promise<{ status: ConnectionStatus; count: number }[]> {
  return db.$queryRaw`
    SELECT status, count(*)::int AS count FROM muster.connections
    WHERE ${environment}::text IS NULL OR environment = ${environment} GROUP BY status`;
}

/** Names the authorization that the company has now: by its connection, and by its token's epoch, which every stored pair moves. */
export async function authorizationOf(tx: Transaction, company: CompanyKey): Promise<string | undefined> {
  const [row] = await tx.$queryRaw<{ name: string }[]>`
    SELECT concat_ws(' ', c.id, t.epoch) AS name FROM muster.connections c LEFT JOIN muster.tokens t USING (environment, company_id)
    WHERE ${isOf(company)}`;
  return row?.name;
}
