import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { claimRun, type RunClaim } from '../../src/db/tables/runs.js';
import { removeCompany } from '../../src/erasure/company-removal.js';
import { writeCompanyRecord } from '../../src/mirror/company-record.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';
import { onboard } from './mirror-fixture.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.close());

async function claimedRun(company: CompanyKey): Promise<RunClaim> {
  const { id } = await database.db.prisma.run.create({ data: { ...company, trigger: 'nightly', mode: 'resume' } });
  return (await claimRun(database.db, { id, worker: 'slow' }))!;
}

const kept = (company: CompanyKey) => database.db.prisma.company.findFirst({ where: company });

test.each(['[]', '"x"', 'null', '{"name":', 'canary <html>', '{"name":"\\u0000"}', ''])(
  'what is no record replaces none, and stands in no message: %s',
  async (text) => {
    const company = await onboard(database.db);
    const run = await claimedRun(company);
    await writeCompanyRecord(database.db, { run, company }, '{"name":"Nordlia","n":1}');
    const error = await writeCompanyRecord(database.db, { run, company }, text).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'malformed_response' });
    expect(JSON.stringify([String(error), error])).not.toContain('canary');
    expect(await kept(company)).toMatchObject({ name: 'Nordlia', data: { n: 1 } });
  },
);

describe('a worker that was frozen with an answer in its hands', () => {
  test('does not write over what its successor wrote', async () => {
    const company = await onboard(database.db);
    const run = await claimedRun(company);
    await database.db.prisma.run.update({ where: { id: run.id }, data: { holder: null } });
    const successor = (await claimRun(database.db, { id: run.id, worker: 'quick' }))!;
    await writeCompanyRecord(database.db, { run: successor, company }, '{"name":"New"}');
    await writeCompanyRecord(database.db, { run, company }, '{"name":"Old"}');
    expect(await kept(company)).toMatchObject({ name: 'New' });
  });

  test('does not write while its run is being taken over', async () => {
    const company = await onboard(database.db);
    const run = await claimedRun(company);
    let written: Promise<void> | undefined;
    await inTransaction(database.db, async (tx) => {
      await tx.run.update({ where: { id: run.id }, data: { epoch: { increment: 1 } } });
      written = writeCompanyRecord(database.db, { run, company }, '{"name":"Old"}');
      const waits = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      await waitFor(async () => (await database.db.pool.query(waits)).rows.length === 1);
    });
    await written;
    expect(await kept(company)).toMatchObject({ name: null, data: null });
  });

  test('does not write what was received before the company was removed', async () => {
    const company = await onboard(database.db);
    const run = await claimedRun(company);
    await inTransaction(database.db, (tx) => removeCompany(tx, company, { name: 'test', role: 'admin' }));
    await database.db.prisma.company.create({ data: company });
    await writeCompanyRecord(database.db, { run, company }, '{"name":"Old"}');
    expect(await kept(company)).toMatchObject({ name: null, data: null });
  });
});
