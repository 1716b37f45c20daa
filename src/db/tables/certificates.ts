// muster.certificates and muster.signing_keys: the facts of each verified walk, signed, and the public keys they were signed with. The step that ends
// the walk writes the facts under the lock of the list, with the id of its barrier, so that the certificates of a list are in the order of its walks.
// One signer at a time, under a named lock, signs facts whose barrier has its number. Removal and signer lock unsigned facts by id.
//
//   facts -> jws   signed; never changed again, and removed by age alone
import { type CompanyKey, ENVIRONMENTS } from '../../core/company.js';
import { type Certificate, Prisma, type SigningKey } from '../../generated/prisma/client.js';
import type { Database } from '../connection/database.js';
import type { Transaction } from '../connection/transaction.js';
import { type Page, type PageQuery, pageOf, readNumberedStart } from '../statements/cursor.js';
import { type OfCompanies, rowsOfCompanies } from '../statements/newest-page.js';
import { isOf } from './connections.js';
import { isOfList, type ListKey } from './lists.js';

/** The facts of a verified walk at its end. Times are as PostgreSQL writes them in JSON. */
export interface WalkFacts {
  readonly run_id: string;
  readonly walk_id: string;
  readonly proof: string;
  readonly started_at: string;
  readonly finished_at: string;
  readonly verified_at: string;
  readonly received: number;
  readonly total_records: number | null;
  readonly records: number;
  /** Rows kept by the hold that this walk opened. */
  readonly held?: number;
  readonly inserted: number;
  readonly updated: number;
  readonly unchanged: number;
  readonly deleted: number;
  /** The fingerprint of the catalogue entry. */
  readonly catalogue: string;
  /** The grant under which the list was proved. */
  readonly grant_number?: number;
}

/** SQL: how many rows the open holds of `walk` keep. The same statement closes the holds of earlier walks. */
function heldRows(list: ListKey): Prisma.Sql {
  return Prisma.sql`(
      SELECT COALESCE(sum(h.count), 0)::int FROM muster.holds h WHERE ${isOfList(list)} AND h.status = 'open' AND h.walk_id = walk.id)`;
}

/** SQL: stores what `walk` has proved (`proved`), with the id of its `barrier`. */
export function recordCertificate(
  list: ListKey,
  { proof, finishedAt }: { proof: string | null; finishedAt: Date | null },
): Prisma.Sql {
  const { environment, companyId, resource } = list;
  return Prisma.sql`certificate AS (
    INSERT INTO muster.certificates (id, environment, company_id, resource, verified_at, facts)
    SELECT barrier.id, ${environment}, ${companyId}::uuid, ${resource}, proved.last_verified_at, jsonb_build_object(
      'run_id', walk.run_id, 'walk_id', walk.id, 'proof', ${proof}::text, 'started_at', walk.started_at,
      'finished_at', ${finishedAt}::timestamptz, 'verified_at', proved.last_verified_at, 'received', walk.received,
      'total_records', walk.total_records, 'records', proved.records, 'held', ${heldRows(list)}, 'inserted', walk.inserted, 'updated', walk.updated,
      'unchanged', walk.unchanged, 'deleted', walk.deleted, 'catalogue', walk.fingerprint)
        || jsonb_strip_nulls(jsonb_build_object('grant_number', walk.grant_number))
    FROM walk CROSS JOIN proved CROSS JOIN barrier)`;
}

/** Whether any facts wait to be signed, with or without a number in the feed. */
export async function hasUnsigned(db: Pick<Database, 'prisma'>): Promise<boolean> {
  const [row] = await db.prisma.$queryRaw<{ any: boolean }[]>`
    SELECT (SELECT id FROM muster.certificates WHERE jws IS NULL ORDER BY id LIMIT 1) IS NOT NULL AS any`;
  return row!.any;
}

export interface UnsignedCertificate extends ListKey {
  readonly id: bigint;
  readonly facts: WalkFacts;
  /** The barrier's number, a bigint in decimal. */
  readonly seq: string;
  /** The newest signed certificate of the list. */
  readonly previous: string | null;
}

/**
 * Locks the first facts that can be signed. No walk of a list is passed over: an earlier barrier gets its number before or with a later one.
 * The caller holds the signer's lock.
 */
export function findUnsigned(tx: Transaction, { limit }: { limit: number }): Promise<UnsignedCertificate[]> {
  return tx.$queryRaw`
    SELECT c.id, c.environment, c.company_id::text AS "companyId", c.resource, c.facts, b.seq::text AS seq, p.jws AS previous
    FROM muster.certificates c JOIN muster.barriers b ON b.id = c.id
    LEFT JOIN LATERAL (
      SELECT jws FROM muster.certificates p
      WHERE p.environment = c.environment AND p.company_id = c.company_id AND p.resource = c.resource AND p.jws IS NOT NULL
      ORDER BY p.id DESC LIMIT 1) p ON true
    WHERE c.jws IS NULL AND b.number IS NOT NULL
    ORDER BY c.id LIMIT ${limit}::int FOR UPDATE OF c`;
}

/** Keeps what was signed, in the transaction that has read it. */
export async function writeSigned(
  tx: Transaction,
  signed: readonly { readonly id: bigint; readonly jws: string }[],
): Promise<void> {
  await tx.$executeRaw`
    UPDATE muster.certificates c SET jws = s.jws, facts = NULL
    FROM unnest(${signed.map(({ id }) => id)}::bigint[], ${signed.map(({ jws }) => jws)}::text[]) AS s(id, jws) WHERE c.id = s.id`;
}

/** Stores a public key before any reader can see what it has signed. Returns whether it is new. */
export async function addSigningKey(tx: Transaction, { kid, x }: Pick<SigningKey, 'kid' | 'x'>): Promise<boolean> {
  const added = await tx.$executeRaw`
    INSERT INTO muster.signing_keys (kid, x) VALUES (${kid}, ${x}) ON CONFLICT (kid) DO NOTHING`;
  return added > 0;
}

/** Every key that has signed, the oldest first. */
export function listSigningKeys(db: Pick<Database, 'prisma'>): Promise<SigningKey[]> {
  return db.prisma.signingKey.findMany({ orderBy: [{ firstUsedAt: 'asc' }, { kid: 'asc' }] });
}

export interface CertificateRow extends Pick<Certificate, 'id'> {
  readonly jws: string;
}

export type CertificateFilter = Partial<ListKey> &
  PageQuery &
  OfCompanies & {
    /** Certificates with this `verified_at` or a later one. */
    readonly since?: Date | undefined;
    /** Certificates with an earlier `verified_at`. */
    readonly until?: Date | undefined;
  };

/**
 * Signed certificates, newest first. Throws `invalid_request` for a cursor that no response gave. Every filter uses an index that begins with the
 * environment: without a filter both environments are looked up. A company has few enough certificates to sort. The migration says why the order is by -id.
 */
export async function listCertificates(
  db: Database,
  { limit, cursor, ...filter }: CertificateFilter,
): Promise<Page<CertificateRow>> {
  const start = readNumberedStart(cursor);
  const { environment, companyId, companies, resource, since, until } = filter;
  const isFiltered = [environment, companyId, companies, resource].some((value) => value !== undefined);
  const fixed = [
    Prisma.sql`t.jws IS NOT NULL`,
    ...(companyId === undefined ? [] : [Prisma.sql`t.company_id = ${companyId}::uuid`]),
    ...(resource === undefined ? [] : [Prisma.sql`t.resource = ${resource}`]),
    ...provedWithin({ since, until }, Prisma.sql`t`),
    ...(start ? [positionFrom(start, isFiltered)] : []),
  ];
  const source = isOfOneTime(filter) ? certificatesOfTime(filter) : Prisma.sql`muster.certificates`;
  const [oldestFirst, newestFirst] = isFiltered ? ['-t.id DESC', '-t.id'] : ['t.id', 't.id DESC'];
  const end = Prisma.sql`ORDER BY ${Prisma.raw(start?.isBefore ? oldestFirst : newestFirst)} LIMIT ${limit + 1}::int`;
  const rowsWith = (more: readonly Prisma.Sql[]) => Prisma.sql`
    SELECT t.* FROM ${source} t WHERE ${Prisma.join([...fixed, ...more], ' AND ')} ${end}`;
  const inEnvironments = () => Prisma.sql`
    SELECT t.* FROM unnest(${environment ? [environment] : ENVIRONMENTS}::text[]) AS chosen(environment)
    CROSS JOIN LATERAL (${rowsOfCompanies(companies, (more) => rowsWith([Prisma.sql`t.environment = chosen.environment`, ...more]), end)}) t ${end}`;
  const rows = await db.prisma.$queryRaw<CertificateRow[]>`
    SELECT id, jws FROM (${isFiltered ? inEnvironments() : rowsWith([])}) found ORDER BY id DESC`;
  return pageOf(rows, limit, ({ id }) => String(id), start ?? null);
}

/** Without a company, all certificates of a short time are fewer than those that would be read in the order of their ids. */
function isOfOneTime({ companyId, companies, since, until }: Omit<CertificateFilter, 'limit'>): boolean {
  return companyId === undefined && companies === undefined && since !== undefined && until !== undefined;
}

/** OFFSET has the planner take the index on verified_at: it does not know that ids and times go together. */
function certificatesOfTime(filter: Pick<CertificateFilter, 'since' | 'until'>): Prisma.Sql {
  return Prisma.sql`(
    SELECT * FROM muster.certificates d WHERE ${Prisma.join(provedWithin(filter, Prisma.sql`d`), ' AND ')} OFFSET 0)`;
}

function provedWithin({ since, until }: Pick<CertificateFilter, 'since' | 'until'>, table: Prisma.Sql): Prisma.Sql[] {
  return [
    ...(since === undefined ? [] : [Prisma.sql`${table}.verified_at >= ${since}`]),
    ...(until === undefined ? [] : [Prisma.sql`${table}.verified_at < ${until}`]),
  ];
}

/** The signed certificate with this id. */
export function findCertificate(db: Pick<Database, 'prisma'>, id: bigint): Promise<CertificateRow | null> {
  return db.prisma.certificate.findFirst({
    where: { id, jws: { not: null } },
    select: { id: true, jws: true },
  }) as Promise<CertificateRow | null>;
}

function positionFrom({ position, isBefore }: { position: bigint; isBefore: boolean }, isNegated: boolean): Prisma.Sql {
  if (isNegated) return isBefore ? Prisma.sql`-t.id < ${-position}::bigint` : Prisma.sql`-t.id > ${-position}::bigint`;
  return isBefore ? Prisma.sql`t.id > ${position}::bigint` : Prisma.sql`t.id < ${position}::bigint`;
}

/** Deletes unsigned facts too: without its barriers the company has no place in the feed. Signed certificates stay, as the audit does. */
export async function removeUnsigned(tx: Transaction, company: CompanyKey): Promise<void> {
  await tx.$executeRaw`
    DELETE FROM muster.certificates WHERE id IN (
      SELECT id FROM muster.certificates WHERE ${isOf(company)} AND jws IS NULL ORDER BY id FOR UPDATE)`;
}

/**
 * Removes certificates of walks older than this many days, at most `limit`, and returns how many. The newest of each list of an onboarded
 * company stays, since the next one names it.
 */
export function removeOldCertificates(db: Database, { days, limit }: { days: number; limit: number }): Promise<number> {
  return db.prisma.$executeRaw`
    DELETE FROM muster.certificates WHERE id IN (
      SELECT c.id FROM muster.certificates c
      WHERE c.verified_at < now() - ${days}::int * interval '1 day' AND c.jws IS NOT NULL AND (
        EXISTS (
          SELECT FROM muster.certificates n
          WHERE n.environment = c.environment AND n.company_id = c.company_id AND n.resource = c.resource AND n.id > c.id AND n.jws IS NOT NULL)
        OR NOT EXISTS (SELECT FROM muster.connections o WHERE o.environment = c.environment AND o.company_id = c.company_id))
      ORDER BY c.verified_at LIMIT ${limit}::int)`;
}
