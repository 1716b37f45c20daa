import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { loadCatalogue } from '../../src/catalogue/load-catalogue.js';
import { systemClock as clock } from '../../src/core/clock.js';
import type { CompanyKey } from '../../src/core/company.js';
import { Runs } from '../../src/runs/runs.js';
import type { Schedule } from '../../src/runs/schedule.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { emptyTables } from '../support/empty-tables.js';
import { notQuiet } from '../support/quiet.js';

const schedule: Schedule = { cron: '0 2 * * *', timezone: 'UTC', spreadMinutes: 120 };
/** More than one transaction takes. */
const MANY = 120;
/** Prisma ends a transaction after 5 s unless told otherwise. */
const PATIENT = { timeout: 80_000 };

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterEach(() =>
  emptyTables(
    database.db,
    'muster.connections',
    'muster.run_requests',
    'muster.run_request_lists',
    'muster.lists',
    'muster.runs',
  ),
);
afterAll(() => database.close());

/** Asks for runs, and notes those that were put before the workers. */
function asking() {
  const dispatched: string[] = [];
  const dispatcher = { dispatch: async (runs: readonly { id: string }[]) => void dispatched.push(...runs.map(({ id }) => id)) };
  const runs = new Runs({ db: database.db, catalogue: loadCatalogue(), quiet: notQuiet, schedule, clock, dispatcher });
  return { runs, dispatched };
}

interface State {
  readonly paused?: boolean;
  readonly reauthorizationReason?: string;
  readonly nextSyncAt?: Date;
}

async function newCompanies(count: number, state: State = {}): Promise<CompanyKey[]> {
  const companies = Array.from({ length: count }, (): CompanyKey => ({ environment: 'test', companyId: randomUUID() }));
  await database.db.prisma.connection.createMany({ data: companies.map((company) => ({ ...company, ...state })) });
  return companies;
}

const due = new Date('2020-01-02T03:04:05Z');
const next = new Date('2040-01-02T03:04:05Z');

async function nextSyncAtOf(company: CompanyKey): Promise<Date | null> {
  return (await database.db.prisma.connection.findUniqueOrThrow({ where: { environment_companyId: company } })).nextSyncAt;
}

/** Companies whose runs were asked for and are not made yet. */
const companiesWaiting = () => database.db.prisma.runRequest.findMany();

const runsOf = (company: CompanyKey) =>
  database.db.prisma.run.findMany({
    where: company,
    orderBy: { seq: 'asc' },
    include: { walks: { orderBy: { position: 'asc' } } },
  });

test('a request for many gives every active company one run with its lists in order, and puts each before the workers', async () => {
  const companies = await newCompanies(MANY);
  const others = [
    ...(await newCompanies(1, { paused: true })),
    ...(await newCompanies(1, { reauthorizationReason: 'token_refused' })),
  ];
  const { runs, dispatched } = asking();
  expect((await runs.requestMany({})).count).toBe(MANY);
  const ids: string[] = [];
  for (const company of companies) {
    const [run, ...more] = await runsOf(company);
    expect(more).toEqual([]);
    expect(run).toMatchObject({ trigger: 'resync', mode: 'resume', status: 'queued' });
    expect(run!.walks.map(({ resource, companyId }) => [resource, companyId])).toEqual([
      ['employees', company.companyId],
      ['departments', company.companyId],
    ]);
    ids.push(run!.id);
  }
  expect(dispatched.toSorted()).toEqual(ids.toSorted());
  for (const company of others) expect(await runsOf(company)).toEqual([]);
});

test('among many, a run that waits to retry starts now, and an unfinished walk is gone on from', async () => {
  const [waiting, failed, ended, old, ...rest] = await newCompanies(8);
  const { runs, dispatched } = asking();
  const before = new Map<CompanyKey, string>();
  for (const company of [waiting!, failed!, ended!, old!])
    before.set(company, (await runs.request({ company, trigger: 'nightly' })).id);
  const later = new Date(Date.now() + 600_000);
  await database.db.prisma.run.update({ where: { id: before.get(waiting!)! }, data: { startAfter: later, attempts: 2 } });
  const checkpoint = { pager: { offset: 7 } };
  for (const [company, status, finishedAt] of [
    [failed!, 'failed', new Date()],
    [ended!, 'succeeded', new Date()],
    [old!, 'failed', new Date(Date.now() - 7 * 3_600_000)],
  ] as const) {
    const runId = before.get(company)!;
    await database.db.prisma.run.update({ where: { id: runId }, data: { status, finishedAt } });
    await database.db.prisma.walk.updateMany({ where: { runId, resource: 'employees' }, data: { status: 'succeeded' } });
    await database.db.prisma.walk.updateMany({ where: { runId, resource: 'departments' }, data: { status, checkpoint } });
    await database.db.prisma.list.create({ data: { ...company, resource: 'departments' } });
  }
  dispatched.length = 0;
  expect((await runs.requestMany({})).count).toBe(8);
  expect(dispatched).toHaveLength(8);

  const [same, ...none] = await runsOf(waiting!);
  expect([same!.id, none]).toEqual([before.get(waiting!), []]);
  expect(same!.startAfter.getTime()).toBeLessThan(later.getTime());
  expect(same!.attempts).toBe(0);
  const walksOf = async (company: CompanyKey) =>
    (await runsOf(company)).at(-1)!.walks.map(({ resource, checkpoint: at }) => [resource, at]);
  expect(await walksOf(failed!)).toEqual([['departments', checkpoint]]);
  const everything = [
    ['employees', null],
    ['departments', null],
  ];
  for (const company of [ended!, old!, ...rest]) expect(await walksOf(company)).toEqual(everything);
});

test('a company that somebody else has locked keeps no other waiting, and is asked once it is unlocked', async () => {
  const companies = await newCompanies(MANY);
  const locked = companies[30]!;
  const { runs } = asking();
  await database.db.prisma.$transaction(async (tx) => {
    await tx.connection.update({ where: { environment_companyId: locked }, data: { statusChangedAt: new Date() } });
    expect((await runs.requestMany({})).count).toBe(MANY);
    expect(await database.db.prisma.run.count()).toBe(MANY - 1);
    expect(await companiesWaiting()).toEqual([locked]);
  }, PATIENT);
  await runs.makeRequested({ limit: MANY });
  expect(await runsOf(locked)).toHaveLength(1);
  expect(await companiesWaiting()).toEqual([]);
});

test('a company that cannot be asked keeps no other from its run, and is told of', async () => {
  const companies = await newCompanies(MANY, { nextSyncAt: due });
  const broken = companies[30]!;
  const { pool } = database.db;
  await pool.query(`
    CREATE FUNCTION muster.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'broken'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT ON muster.runs FOR EACH ROW WHEN (NEW.company_id = '${broken.companyId}') EXECUTE FUNCTION muster.refuse()`);
  try {
    const { runs, dispatched } = asking();
    await expect(runs.requestAll(companies, { trigger: 'nightly', nextSyncOf: () => next })).rejects.toThrow('broken');
    expect(dispatched).toHaveLength(MANY - 1);
    for (const company of companies) expect(await nextSyncAtOf(company)).toEqual(company === broken ? due : next);
  } finally {
    await pool.query('DROP FUNCTION muster.refuse CASCADE');
  }
});

test('an active run is given back though a later one has ended, as when a person queues an old one again', async () => {
  const [company] = await newCompanies(1);
  const { runs } = asking();
  const { id } = await runs.request({ company: company!, trigger: 'manual' });
  const set = (runId: string, status: string) =>
    database.db.prisma.run.update({ where: { id: runId }, data: { status, finishedAt: new Date() } });
  await set(id, 'failed');
  const later = await runs.request({ company: company!, trigger: 'manual' });
  await set(later.id, 'succeeded');
  await set(id, 'queued');
  expect((await runs.request({ company: company!, trigger: 'manual' })).id).toBe(id);
});

test('who asks at once for the same companies is told of all, and adds each run once', async () => {
  await newCompanies(MANY);
  const requesters = [asking(), asking(), asking(), asking()];
  expect(await Promise.all(requesters.map(({ runs }) => runs.requestMany({})))).toMatchObject(
    requesters.map(() => ({ count: MANY })),
  );
  await requesters[0]!.runs.makeRequested({ limit: MANY }); // what each left to another
  expect(await database.db.prisma.run.count()).toBe(MANY);
  expect(await companiesWaiting()).toEqual([]);
});

test('a run of the night and the next night are one transaction, which nobody makes twice', async () => {
  const [company, locked] = await newCompanies(2, { nextSyncAt: due });
  const { runs, dispatched } = asking();
  const options = { trigger: 'nightly', mode: 'full', nextSyncOf: () => next } as const;
  await database.db.prisma.$transaction(async (tx) => {
    await tx.connection.update({ where: { environment_companyId: locked! }, data: { statusChangedAt: new Date() } });
    expect(await runs.requestAll([company!, locked!], options)).toEqual({ missed: [locked] });
  }, PATIENT);
  expect(await nextSyncAtOf(company!)).toEqual(next);
  expect(await nextSyncAtOf(locked!)).toEqual(due);
  const [run] = await runsOf(company!);
  expect(dispatched).toEqual([run!.id]);
  // Another sweep saw them due as well, and comes late.
  await database.db.prisma.run.update({ where: { id: run!.id }, data: { status: 'succeeded', finishedAt: new Date() } });
  expect(await runs.requestAll([company!, locked!], options)).toEqual({ missed: [company] });
  expect(await runsOf(company!)).toHaveLength(1);
});
