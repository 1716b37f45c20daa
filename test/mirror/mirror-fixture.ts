import { randomUUID } from 'node:crypto';
import type { CompanyKey, Environment } from '../../src/core/company.js';
import type { TextSlice } from '../../src/core/text-slice.js';
import type { Database } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { type ListKey, lockList } from '../../src/db/tables/lists.js';
import type { WalkWrite } from '../../src/mirror/page-parameters.js';
import type { PageToWrite } from '../../src/mirror/page-values.js';
import { writePages } from '../../src/mirror/page-writer.js';
import { type Reconciliation, reconcile } from '../../src/mirror/reconcile.js';
import { KeyHashes } from '../../src/pagers/key-hashes.js';

export interface Written {
  readonly list: ListKey;
  readonly walkId: string;
  readonly runId: string;
  readonly epoch: bigint;
}

export async function onboard(db: Database, environment: Environment = 'test'): Promise<CompanyKey> {
  const company: CompanyKey = { environment, companyId: randomUUID() };
  await db.prisma.connection.create({ data: company });
  await db.prisma.company.create({ data: company });
  return company;
}

/** A walk of the list as the walk store opens it. */
export async function openWalk(db: Database, company: CompanyKey, resource = 'employees'): Promise<Written> {
  const list = { ...company, resource };
  return inTransaction(db, async (tx) => {
    const run = await tx.run.create({ data: { ...company, trigger: 'manual', mode: 'full', status: 'succeeded' } });
    const { epoch } = await tx.list.upsert({
      where: { environment_companyId_resource: list },
      create: { ...list, epoch: 1n, lastRunId: run.id },
      update: { epoch: { increment: 1 }, lastRunId: run.id },
    });
    const { grantNumber } = await tx.connection.findFirstOrThrow({ where: company });
    const walk = await tx.walk.create({
      data: { ...list, runId: run.id, position: 0, status: 'running', epoch, grantNumber, passStartedAt: new Date() },
    });
    return { list, walkId: walk.id, runId: run.id, epoch };
  });
}

/** One page of records, given by their texts; the id is the member `id`. */
export function write(
  db: Database,
  walk: Written,
  texts: readonly string[],
  { number = 0, newFrom, ...more }: Partial<PageToWrite & WalkWrite> = {},
): Promise<void> {
  return writeTogether(db, walk, [{ texts, number, newFrom }], more);
}

/** Pages that share a commit. */
export async function writeTogether(
  db: Database,
  walk: Written,
  pages: readonly (Pick<PageToWrite, 'number' | 'newFrom'> & { readonly texts: readonly string[] })[],
  more: Partial<WalkWrite> = {},
): Promise<void> {
  const received = new Set(pages.flatMap(({ texts }) => texts.map(idOf))).size;
  const { pages: pagesBefore } = await db.prisma.walk.findUniqueOrThrow({ where: { id: walk.walkId } });
  const counts = { pagesBefore, checkpoint: {}, received, duplicates: 0 };
  await writePages(
    db,
    { ...walk, pass: 1, ...counts, ...more },
    pages.map(({ texts, ...page }) => ({ ...page, ...pageOf(texts) })),
  );
}

function pageOf(texts: readonly string[]): Pick<PageToWrite, 'records' | 'rejected' | 'ledger'> {
  const ids = texts.map(idOf);
  return {
    records: texts.map((text, position) => ({ id: ids[position]!, position, ...sliceOf(text) })),
    rejected: [],
    ledger: { kind: 'new', ids, keys: KeyHashes.of(ids).words },
  };
}

function sliceOf(text: string): TextSlice {
  const source = Buffer.from(text);
  return { source, start: 0, end: source.length };
}

function idOf(text: string): string {
  return String((JSON.parse(text) as { id: unknown }).id);
}

/** Somebody authorizes again. */
export async function newGrant(db: Database, company: CompanyKey): Promise<void> {
  await db.prisma.connection.updateMany({ where: company, data: { grantNumber: { increment: 1 }, authorizedAt: new Date() } });
}

/** A whole walk that was verified. */
export async function verifiedWalk(
  db: Database,
  company: CompanyKey,
  texts: readonly string[],
  guard = { share: 0.2, rows: 10 },
): Promise<Written & Reconciliation> {
  const walk = await openWalk(db, company);
  await write(db, walk, texts);
  const outcome = await inTransaction(db, async (tx) => {
    await lockList(tx, walk.list, walk.epoch);
    const found = await reconcile(tx, { ...walk, pass: 1 }, guard);
    // As the statement that ends a verified walk does.
    const { grantNumber } = await tx.walk.findUniqueOrThrow({ where: { id: walk.walkId } });
    await tx.list.updateMany({ where: walk.list, data: { grantNumber: grantNumber! } });
    return found;
  });
  return { ...walk, ...outcome };
}

export const records = (count: number, from = 1): string[] =>
  Array.from({ length: count }, (_, n) => `{"id":"r${from + n}","n":${from + n}}`);
