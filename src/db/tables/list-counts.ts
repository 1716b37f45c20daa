// The lists of onboarded companies, counted by proof and by state (list-states.ts). Overview, status, metrics, doctor and the pages of the companies take
// their numbers from here, so that one question has one number. Reads only, and locks nothing.
import type pg from 'pg';
import type { Environment } from '../../core/company.js';
import type { StaleAfterHours } from '../../core/stale-after.js';
import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import type { ConnectionStatus } from './connections.js';
import { countsFrom, LIST, LIST_STATES, type ListProofState, type ListState, NEWEST, proofOf, stateOf } from './list-states.js';
import { lacksFirstProof } from './unproved-lists.js';

/** The lists by their proof; `total` is the sum of `verified`, `late` and `never`. */
export interface ProofCounts extends Readonly<Record<ListProofState, number>> {
  readonly total: number;
  /** Lists of `never` whose first proof is overdue, and whose company is not paused. */
  readonly firstProofOverdue: number;
  /** The newest walk that read them to their end proved nothing, regardless of earlier proofs. */
  readonly unverified: number;
}

export interface CountedLists {
  /** The lists of the catalogue. Others are no longer walked. */
  readonly resources: readonly string[];
  /** Both if absent. */
  readonly environment?: Environment | undefined;
  readonly staleAfterHours: StaleAfterHours;
}

/** SQL: every list, requested or not; `p.proof` is its proof. `lookups` are further joins. */
function countedLists({ resources, environment, staleAfterHours }: CountedLists, lookups = Prisma.empty): Prisma.Sql {
  return Prisma.sql`muster.connections c CROSS JOIN unnest(${resources}::text[]) AS asked(resource)
    LEFT JOIN ${LIST} ${lookups}
    CROSS JOIN LATERAL (SELECT ${proofOf(staleAfterHours)} AS proof) p
    WHERE (${environment ?? null}::text IS NULL OR c.environment = ${environment ?? null}::text)`;
}

const isOverdue = (staleAfterHours: StaleAfterHours) => Prisma.sql`(NOT c.paused AND ${lacksFirstProof(staleAfterHours)})`;

const proofCounts = (staleAfterHours: StaleAfterHours) => Prisma.sql`
  count(*) FILTER (WHERE p.proof <> 'unavailable')::int AS total,
  count(*) FILTER (WHERE p.proof = 'verified')::int AS verified,
  count(*) FILTER (WHERE p.proof = 'late')::int AS late,
  count(*) FILTER (WHERE p.proof = 'never')::int AS never,
  count(*) FILTER (WHERE p.proof = 'unavailable')::int AS unavailable,
  count(*) FILTER (WHERE ${isOverdue(staleAfterHours)})::int AS "firstProofOverdue",
  count(l.unverified_since)::int AS unverified`;

export interface ProofSummary extends ProofCounts {
  /** The oldest last proof, without paused companies and unavailable lists; null where there is none. */
  readonly oldestVerifiedAt: Date | null;
  /** Its age by the clock of the database. */
  readonly oldestSeconds: number | null;
}

const OLDEST = Prisma.sql`min(l.last_verified_at) FILTER (WHERE NOT c.paused AND p.proof <> 'unavailable')`;

/** Counts the lists by proof. Reads no walk. */
export async function countProofs(db: Pick<Transaction, '$queryRaw'>, counted: CountedLists): Promise<ProofSummary> {
  const [row] = await db.$queryRaw<ProofSummary[]>`
    SELECT ${proofCounts(counted.staleAfterHours)},
      ${OLDEST} AS "oldestVerifiedAt", extract(epoch FROM now() - ${OLDEST})::float8 AS "oldestSeconds"
    FROM ${countedLists(counted)}`;
  return row!;
}

/** How many of the lists were proved since a night began, by whatever run; lists with a schedule of their own, in time by it. */
export async function countProvedSince(
  db: Pick<Transaction, '$queryRaw'>,
  { since, ...counted }: CountedLists & { readonly since: Date },
): Promise<number> {
  const [row] = await db.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM ${countedLists(counted)} AND l.last_verified_at >= ${countsFrom(since, counted.staleAfterHours)}`;
  return row!.count;
}

export interface ListCounts extends ProofCounts {
  readonly environment: Environment;
  readonly resource: string;
  readonly states: Readonly<Record<ListState, number>>;
}

/** Counts the lists by environment and resource, by proof and by state: with two look-ups for each list. A list has one row a company, so each count is of companies, too. */
export function countListStates(db: Pick<Transaction, '$queryRaw'>, counted: CountedLists): Promise<ListCounts[]> {
  return countBy(db, counted, Prisma.sql`c.environment, asked.resource`);
}

/** Counts them by the status of the company as well. */
export function countListStatesByStatus(
  db: Pick<Transaction, '$queryRaw'>,
  counted: CountedLists,
): Promise<(ListCounts & { readonly status: ConnectionStatus })[]> {
  return countBy(db, counted, Prisma.sql`c.environment, asked.resource, c.status`);
}

function countBy<Counts>(db: Pick<Transaction, '$queryRaw'>, counted: CountedLists, keys: Prisma.Sql): Promise<Counts[]> {
  return db.$queryRaw<Counts[]>`
    SELECT ${keys}, ${proofCounts(counted.staleAfterHours)}, ${countsOfStates()} AS states
    FROM ${countedLists(counted, Prisma.sql`LEFT JOIN ${NEWEST} CROSS JOIN LATERAL (SELECT ${stateOf(counted.staleAfterHours)} AS state) s`)}
    GROUP BY ${keys} ORDER BY ${keys}`;
}

function countsOfStates(): Prisma.Sql {
  const counts = LIST_STATES.map((state) => Prisma.sql`${state}::text, count(*) FILTER (WHERE s.state = ${state})::int`);
  return Prisma.sql`jsonb_build_object(${Prisma.join(counts)})`;
}

/** The lists that are late, and those that were never proved, as `muster doctor` tells of them. Ages are by the clock of the database. */
export interface MissingProofs {
  readonly late: number;
  readonly lateCompanies: number;
  readonly oldestSeconds: number | null;
  readonly never: number;
  readonly neverCompanies: number;
  readonly firstProofOverdue: number;
}

/** Measures over a plain connection. */
export async function measureMissingProofs(db: Pick<pg.ClientBase, 'query'>, counted: CountedLists): Promise<MissingProofs> {
  const companies = Prisma.sql`count(DISTINCT (c.environment, c.company_id))`;
  const { rows } = await db.query<MissingProofs>(
    Prisma.sql`SELECT * FROM (
      SELECT ${proofCounts(counted.staleAfterHours)}, ${companies} FILTER (WHERE p.proof = 'late')::int AS "lateCompanies",
        ${companies} FILTER (WHERE p.proof = 'never')::int AS "neverCompanies",
        extract(epoch FROM now() - min(l.last_verified_at) FILTER (WHERE p.proof = 'late'))::float8 AS "oldestSeconds"
      FROM ${countedLists(counted)}) counts`,
  );
  return rows[0]!;
}
