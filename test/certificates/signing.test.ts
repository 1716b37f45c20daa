import { afterAll, beforeAll, expect, test } from 'vitest';
import { digestOf, publicKey, readCertificate, type Signer } from '../../src/certificates/certificate.js';
import { checkCertificates } from '../../src/certificates/check.js';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { removeOldBarriers } from '../../src/db/tables/barriers.js';
import { listCertificates, listSigningKeys, removeOldCertificates } from '../../src/db/tables/certificates.js';
import { stampChanges } from '../../src/db/tables/change-batches.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { approveHold } from '../../src/mirror/holds.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';
import { signAll, someSigner } from './certificate-fixture.js';

const NIGHTS = 4;

let database: TestDatabase;
let sandbox: Sandbox;
let harness: SyncHarness;
let signers: Signer[];
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 9 }, (_, n) => ({ name: `C${n}`, employees: 24, departments: 4 })),
  });
  database = await testDatabase();
  const { employees, departments } = ENTRIES;
  harness = syncHarness(database.db, sandbox, endpointsOf({ employees, departments }));
  signers = [await someSigner(), await someSigner()];
});

afterAll(async () => {
  await harness.close();
  await sandbox.stop();
  await database.close();
});

async function onboard(): Promise<CompanyKey> {
  return harness.onboard(sandbox.companies[next++]!.companyId);
}

/** What one worker signs when its sweep comes. */
async function sign(signer = signers[0]!): Promise<void> {
  await stampChanges(database.db);
  await signAll(database.db, signer);
}

/** Those of a company that are signed, the oldest first. */
async function certificatesOf(company: CompanyKey, resource?: string) {
  const { data } = await listCertificates(database.db, { ...company, limit: 500, ...(resource && { resource }) });
  return data.map(({ jws }) => ({ jws, ...readCertificate(jws) })).toReversed();
}

async function findingsOf(texts: readonly string[]) {
  const keys = (await listSigningKeys(database.db)).map(publicKey);
  return (
    await checkCertificates(
      texts.map((jws, n) => ({ where: String(n), jws })),
      { keys },
    )
  ).findings;
}

test('while two workers sign beside walks, each verified walk has one certificate, and each list one chain', async () => {
  const companies = [await onboard(), await onboard(), await onboard()];
  const walking = new AbortController();
  const workers = signers.map(async (signer) => {
    while (!walking.signal.aborted) await sign(signer);
    await sign(signer);
  });
  for (let night = 0; night < NIGHTS; night++) {
    for (const company of companies) {
      sandbox.list(company.companyId, 'employees').change(night);
      await harness.sync(company, { mode: 'full' });
    }
  }
  walking.abort();
  await Promise.all(workers);

  const walks = await database.db.prisma.walk.findMany({ where: { verified: true }, select: { id: true } });
  const certificates = (await Promise.all(companies.map((company) => certificatesOf(company)))).flat();
  expect(certificates).toHaveLength(companies.length * 2 * NIGHTS);
  expect(certificates.map(({ statement }) => statement.walk_id).toSorted()).toEqual(walks.map(({ id }) => id).toSorted());
  expect(await findingsOf(certificates.map(({ jws }) => jws))).toEqual([]);
  for (const company of companies) {
    const chain = await certificatesOf(company, 'employees');
    expect(chain.map(({ statement }) => statement.previous)).toEqual([
      null,
      ...chain.slice(0, -1).map(({ jws }) => digestOf(jws)),
    ]);
  }
});

test('a certificate says what the walk says, and which part of the feed lies behind it', async () => {
  const company = await onboard();
  await harness.sync(company, { mode: 'full' });
  sandbox.list(company.companyId, 'employees').change(3);
  const run = await harness.sync(company, { mode: 'full' });
  await sign();
  const [first, second] = await certificatesOf(company, 'employees');
  const walk = await database.db.prisma.walk.findFirstOrThrow({ where: { runId: run.id, resource: 'employees' } });
  expect(second!.statement).toEqual({
    ...company,
    companyId: undefined,
    company_id: company.companyId,
    resource: 'employees',
    run_id: run.id,
    walk_id: walk.id,
    proof: walk.proof,
    started_at: walk.startedAt!.toISOString(),
    finished_at: walk.finishedAt!.toISOString(),
    verified_at: walk.passStartedAt!.toISOString(),
    received: 24,
    total_records: 24,
    records: 24,
    held: 0,
    inserted: 0,
    updated: 1,
    unchanged: 23,
    deleted: 0,
    feed: { after: first!.statement.feed.through, through: expect.any(Number) },
    catalogue: walk.fingerprint,
    grant_number: 1,
    previous: digestOf(first!.jws),
  });
  const { rows } = await database.db.pool.query<{ op: string }>(
    `SELECT op FROM mirror.changes WHERE company_id = $1 AND resource = 'employees' AND seq > $2 AND seq <= $3`,
    [company.companyId, second!.statement.feed.after, second!.statement.feed.through],
  );
  expect(rows).toEqual([{ op: 'update' }]);
});

test('a walk that proved nothing has none', async () => {
  const company = await onboard();
  const run = await harness.sync(company, { mode: 'full' }, { stopAfterPages: 1 });
  await harness.runs.cancel(run.id);
  await sign();
  expect(await certificatesOf(company)).toEqual([]);
});

test('what a hold keeps is told apart from what was received', async () => {
  const company = await onboard();
  await harness.sync(company, { mode: 'full' });
  sandbox.list(company.companyId, 'employees').remove(0, 14);
  for (const night of [1, 2]) {
    await harness.sync(company, { mode: 'full' });
    await sign();
    const { statement } = (await certificatesOf(company, 'employees')).at(-1)!;
    expect({ night, ...statement }).toMatchObject({ night, received: 10, total_records: 10, records: 24, held: 14 });
  }
  const { id } = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } });
  await approveHold(database.db, id);
  await harness.sync(company, { mode: 'full' });
  await sign();
  const { statement } = (await certificatesOf(company, 'employees')).at(-1)!;
  expect(statement).toMatchObject({ received: 10, records: 10, held: 0 });
});

test('what is decided after the walk changes nothing of what is signed later', async () => {
  const company = await onboard();
  await harness.sync(company, { mode: 'full' });
  sandbox.list(company.companyId, 'employees').remove(0, 24);
  await harness.sync(company, { mode: 'full' });
  const { id } = await database.db.prisma.hold.findFirstOrThrow({ where: { ...company, status: 'open' } });
  await approveHold(database.db, id);
  await sign();
  expect((await certificatesOf(company, 'employees')).at(-1)!.statement).toMatchObject({
    received: 0,
    records: 24,
    held: 24,
    deleted: 0,
  });
});

test('retention keeps the barrier of what is not signed yet, and the newest certificate of each list', async () => {
  const company = await onboard();
  for (let night = 0; night < 3; night++) await harness.sync(company, { mode: 'full' });
  await stampChanges(database.db);
  const age = (table: string) =>
    database.db.pool.query(`UPDATE muster.${table} SET verified_at = now() - interval '500 days' WHERE company_id = $1`, [
      company.companyId,
    ]);
  await age('barriers');
  await removeOldBarriers(database.db, { days: 30, limit: 1_000, which: 'all' });
  await sign();
  expect(await certificatesOf(company, 'employees')).toHaveLength(3);
  await removeOldBarriers(database.db, { days: 30, limit: 1_000, which: 'all' });
  expect(await database.db.prisma.barrier.count({ where: company })).toBe(2);

  await age('certificates');
  expect(await removeOldCertificates(database.db, { days: 600, limit: 1_000 })).toBe(0);
  expect(await removeOldCertificates(database.db, { days: 400, limit: 1_000 })).toBe(4);
  const [kept] = await certificatesOf(company, 'employees');
  await harness.sync(company, { mode: 'full' });
  await sign();
  const chain = await certificatesOf(company, 'employees');
  expect(chain.map(({ statement }) => statement.previous)).toEqual([kept!.statement.previous, digestOf(kept!.jws)]);
  expect(await findingsOf(chain.map(({ jws }) => jws))).toEqual([]);
});

test('a company that is removed leaves what is signed, goes on with its chain when it comes back, and its certificates go by age', async () => {
  const company = await onboard();
  await harness.sync(company, { mode: 'full' });
  await sign();
  await harness.sync(company, { mode: 'full' }); // nobody signs this one before the removal
  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'somebody', role: 'admin' }));
  await sign();
  const left = await certificatesOf(company, 'employees');
  expect(left).toHaveLength(1);
  expect(await database.db.prisma.certificate.count({ where: { ...company, jws: null } })).toBe(0);

  await harness.onboard(company.companyId);
  await harness.sync(company, { mode: 'full' });
  await sign();
  const chain = await certificatesOf(company, 'employees');
  expect(chain).toHaveLength(2);
  expect(await findingsOf(chain.map(({ jws }) => jws))).toEqual([]);

  await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'somebody', role: 'admin' }));
  await database.db.pool.query(`UPDATE muster.certificates SET verified_at = now() - interval '500 days' WHERE company_id = $1`, [
    company.companyId,
  ]);
  await removeOldCertificates(database.db, { days: 400, limit: 1_000 });
  expect(await certificatesOf(company)).toEqual([]);
});
