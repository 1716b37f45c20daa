import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { removeOldRecords } from '../../src/jobs/retention.js';

import { onboard, openWalk, records, type Written, write } from '../mirror/mirror-fixture.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
beforeEach(() => emptyTables(database.db, 'muster.runs', 'muster.lists', 'muster.holds', 'muster.connections', 'muster.audit'));
afterAll(() => database.close());

const tidy = () => removeOldRecords(database.db, { runDays: 90, auditDays: 400 });

/** A run of one walk that ended so many days ago; `proves`: it is the list's last verified walk. */
async function ended(
  company: CompanyKey,
  days: number,
  { resource = 'employees', proves = false }: { resource?: string; proves?: boolean } = {},
): Promise<Written> {
  const walk = await openWalk(database.db, company, resource);
  await write(database.db, walk, records(3));
  await database.db.pool.query(
    `INSERT INTO muster.rejected_records (walk_id, pass, page, position, reason, text) VALUES ($1, 1, 0, 0, 'no_id', '')`,
    [walk.walkId],
  );
  await database.db.pool.query(
    `WITH run AS (UPDATE muster.runs SET finished_at = now() - $2::int * interval '1 day' WHERE id = $1)
     UPDATE muster.walks SET finished_at = now() - $2::int * interval '1 day', status = 'succeeded' WHERE run_id = $1`,
    [walk.runId, days],
  );
  if (proves)
    await database.db.prisma.list.update({
      where: { environment_companyId_resource: walk.list },
      data: { verifiedWalkId: walk.walkId },
    });
  return walk;
}

async function ids(sql: string): Promise<string[]> {
  return (await database.db.pool.query<{ id: string }>(sql)).rows.map(({ id }) => id).toSorted();
}

const runsLeft = () => ids('SELECT id FROM muster.runs');
const idsOf = (...walks: Written[]) => walks.map(({ runId }) => runId).toSorted();

test('old runs go with all that belongs to them, but for the newest, the last of each list, and those that proved a list', async () => {
  const company = await onboard(database.db);
  await ended(company, 300);
  const lastOfDepartments = await ended(company, 250, { resource: 'departments' });
  const proof = await ended(company, 200, { proves: true });
  await ended(company, 150);
  const recent = await ended(company, 80);
  const running = await openWalk(database.db, company);
  await database.db.pool.query(`UPDATE muster.runs SET status = 'running' WHERE id = $1`, [running.runId]);
  await tidy();
  expect(await runsLeft()).toEqual(idsOf(lastOfDepartments, proof, recent, running));
  expect(await ids('SELECT DISTINCT run_id AS id FROM muster.walks')).toEqual(await runsLeft());
  expect(await ids('SELECT DISTINCT walk_id AS id FROM muster.walk_pages')).toEqual(
    [lastOfDepartments, proof, recent].map(({ walkId }) => walkId).toSorted(),
  );
  // Of the others only what the newest walk of a list has rejected is shown.
  expect(await ids('SELECT DISTINCT walk_id AS id FROM muster.rejected_records')).toEqual([lastOfDepartments.walkId]);
});

test('the only run of a company stays, until the company is removed', async () => {
  const [company, other] = [await onboard(database.db), await onboard(database.db)];
  const only = await ended(company, 500);
  await ended(other, 500);
  await database.db.prisma.connection.deleteMany({ where: other });
  await database.db.prisma.list.deleteMany({ where: other });
  await tidy();
  expect(await runsLeft()).toEqual(idsOf(only));
});

test('a hold that is open keeps its run, and one that is decided stays as long as its walk', async () => {
  const company = await onboard(database.db);
  const held = async (days: number, proves = false) => {
    const walk = await ended(company, days, { proves });
    await database.db.prisma.hold.create({
      data: {
        ...walk.list,
        runId: walk.runId,
        walkId: walk.walkId,
        count: 1,
        living: 2,
        sample: [],
        status: proves ? 'rejected' : 'open',
      },
    });
    return walk;
  };
  const open = await held(300);
  const rejected = await held(200, true);
  const gone = await ended(company, 250);
  await database.db.prisma.hold.create({
    data: { ...gone.list, runId: gone.runId, walkId: gone.walkId, count: 1, living: 2, sample: [], status: 'approved' },
  });
  await ended(company, 1);
  await tidy();
  expect(await runsLeft()).toEqual(expect.arrayContaining(idsOf(open, rejected)));
  expect(await runsLeft()).not.toContain(gone.runId);
  expect(await ids('SELECT walk_id AS id FROM muster.holds')).toEqual([open.walkId, rejected.walkId].toSorted());
});

test('more than one transaction takes goes, too', async () => {
  const company = await onboard(database.db);
  await database.db.pool.query(
    `INSERT INTO muster.runs (environment, company_id, trigger, mode, status, finished_at)
     SELECT 'test', $1, 'nightly', 'full', 'succeeded', now() - interval '91 days' FROM generate_series(1, 251)`,
    [company.companyId],
  );
  await database.db.pool.query(
    `INSERT INTO muster.audit (at, actor, action) SELECT now() - days * interval '1 day', 'admin', 'sync'
     FROM unnest(array_fill(401, ARRAY[2100]) || ARRAY[399, 1]) AS days`,
  );
  await database.db.pool.query(
    `INSERT INTO muster.connect_links (id, token_hash, environment, expires_at)
     SELECT gen_random_uuid(), days::text, 'test', now() - days * interval '1 day' FROM unnest(ARRAY[91, 89, -1]) AS days`,
  );
  await tidy();
  expect(await runsLeft()).toHaveLength(1);
  expect(await ids('SELECT action AS id FROM muster.audit')).toHaveLength(2);
  expect(await ids('SELECT token_hash AS id FROM muster.connect_links')).toEqual(['-1', '89']);
});

test('deleted tokens go once the audit of their deletion does, and no other token', async () => {
  await database.db.pool.query(
    `INSERT INTO muster.named_tokens (name, role, token_hash, created_by, created_at, expires_at, revoked_at)
     SELECT name, 'viewer', name, 'admin', now() - interval '900 days', now() - interval '800 days', now() - days * interval '1 day'
     FROM (VALUES ('expired', NULL), ('long deleted', 401), ('deleted', 399)) AS made (name, days)`,
  );
  await tidy();
  expect(await ids('SELECT name AS id FROM muster.named_tokens')).toEqual(['deleted', 'expired']);
});
