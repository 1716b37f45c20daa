import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeRejected } from '../../src/api/runs/rejected-members.js';
import type { IssueRow } from '../../src/db/tables/issues.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';
import { sweepOf } from './issue-world.js';

// A list whose id the catalogue names wrongly, from its first walk on.

let database: TestDatabase;
let sandbox: Sandbox;
let misnamed: SyncHarness;
let mended: SyncHarness;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'one', employees: 24, departments: 4 }] });
  database = await testDatabase();
  const { employees, departments } = ENTRIES;
  misnamed = syncHarness(database.db, sandbox, endpointsOf({ employees: { ...employees, id: ['nothere'] }, departments }));
  mended = syncHarness(database.db, sandbox, endpointsOf({ employees, departments }));
});
afterAll(async () => {
  await misnamed.close();
  await mended.close();
  await sandbox.stop();
  await database.close();
});

async function issueOfEmployees(): Promise<IssueRow> {
  await sweepOf(database.db)();
  return (await database.db.prisma.issue.findFirstOrThrow({ where: { cause: 'never_proved' } })) as IssueRow;
}

test('a list all of whose records are rejected is told at once, with the names of their members and none of their values', async () => {
  const { companyId } = sandbox.companies[0]!;
  const company = await misnamed.onboard(companyId);
  const run = await misnamed.sync(company, { mode: 'full' });
  expect(run.walks.find(({ resource }) => resource === 'employees')).toMatchObject({
    verified: false,
    unverified_reason: 'rejected_records',
  });
  const issue = await issueOfEmployees();
  expect(issue).toMatchObject({ resource: 'employees', severity: 'action', status: 'ongoing', sample: [companyId] });
  const told = await database.db.prisma.notification.findFirstOrThrow({ where: { type: 'never_proved' } });
  expect(told.details).toMatchObject({ cause: 'never_proved', resource: 'employees', count: 1, issue_status: 'ongoing' });

  const said = (await describeRejected(database.db, issue))!;
  const rows = await database.db.prisma.rejectedRecord.findMany();
  const records = rows.map(({ text }) => JSON.parse(Buffer.from(text, 'base64').toString()) as Record<string, unknown>);
  expect(said).toContain('no_id');
  expect(new Set(records.map((record) => record.uid)).size).toBe(24);
  for (const name of Object.keys(records[0]!)) expect(said).toContain(JSON.stringify(name));
  for (const record of records)
    for (const value of Object.values(record).filter((each) => typeof each === 'string' && each.length > 8))
      expect(said).not.toContain(value);
  expect(await describeRejected(database.db, { ...issue, cause: 'list_late' })).toBeUndefined();

  await mended.sync(company, { mode: 'full' });
  const ended = await issueOfEmployees();
  expect([ended.id, ended.status]).toEqual([issue.id, 'resolved']);
  expect(await describeRejected(database.db, ended)).toBeUndefined();
});

test('a record of which only the beginning is kept, and one with many members, are described by what is known', async () => {
  const { companyId } = sandbox.companies[0]!;
  const issue: IssueRow = { ...(await issueOfEmployees()), status: 'ongoing', sample: [companyId] };
  const walk = await database.db.prisma.walk.findFirstOrThrow({
    where: { companyId, resource: 'employees' },
    orderBy: { startedAt: 'desc' },
  });
  await database.db.prisma.walk.update({ where: { id: walk.id }, data: { rejected: 2 } });
  const keep = (text: string) =>
    database.db.prisma.rejectedRecord.create({
      data: { walkId: walk.id, pass: 1, page: 0, position: 0, reason: 'no_id', text: Buffer.from(text).toString('base64') },
    });
  await keep('{"cut":"of');
  expect(await describeRejected(database.db, issue)).toBe('Records of employees are rejected: no_id.');
  await keep(JSON.stringify(Object.fromEntries(Array.from({ length: 50 }, (_, n) => ['k'.repeat(n + 30), n]))));
  const said = (await describeRejected(database.db, issue))!;
  expect(said).toContain(', and 10 more');
  expect(said).toContain(`"${'k'.repeat(60)}…"`);
});
