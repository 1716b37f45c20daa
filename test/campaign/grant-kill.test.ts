import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { HoldModel } from '../../src/api/runs/hold-model.js';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import { authorizeByLink, CALLBACK, PUBLIC_URL } from '../support/consent.js';
import type { TestProcess } from '../support/process.js';
import { IS_LONG } from './share.js';

// At each step of a walk another person authorizes, who is shown fewer records, and the worker dies or lives on: not one row may be deleted without a person.

const RECORDS = 300;
const HIDDEN = 19;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 20 },
  },
};
/** From this request on a walk is held where no trap waits for it. */
const HALF_WAY = 8;
/** What the traps below wait for inside the worker's transaction. */
const TRAP = 4712;

interface Step {
  readonly name: string;
  readonly arm: (client: pg.Client, companyId: string) => Promise<void>;
  /** Resolves when the worker stands at the step. */
  readonly reach: (client: pg.Client, run: RunModel) => Promise<void>;
}

let deployment: Deployment;
/** A case that ends it starts another one. */
let worker: TestProcess;

const trap = (trigger: string): Omit<Step, 'name'> => ({
  arm: async (client) => {
    await client.query(`SELECT pg_advisory_lock(${TRAP})`);
    await deployment.database.db.pool.query(`CREATE TRIGGER trap ${trigger} EXECUTE FUNCTION trap()`);
  },
  reach: async (client) => {
    const isWaitedFor = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND pg_backend_pid() = ANY(pg_blocking_pids(pid))`;
    await waitFor(async () => (await client.query(isWaitedFor)).rows.length > 0);
  },
});

const steps: readonly Step[] = [
  {
    name: 'half-way',
    arm: async (_, companyId) => {
      const path = `/api/companies/${companyId}/employees`;
      deployment.sandbox.faults.add({ kind: 'hold' }, { path, skip: HALF_WAY, times: Infinity });
    },
    reach: async (_, { id }) => {
      await waitFor(async () => (await runOf(id)).walks[0]!.pages >= 4);
    },
  },
  { name: 'as it begins', ...trap('BEFORE INSERT ON muster.walk_pages FOR EACH ROW WHEN (NEW.page = 0)') },
  { name: 'inside a page', ...trap('BEFORE INSERT ON muster.walk_pages FOR EACH ROW WHEN (NEW.page = 5)') },
  { name: 'as it proves the list', ...trap('BEFORE INSERT ON muster.barriers FOR EACH ROW') },
];
const ENDS = ['SIGKILL', undefined] as const;
/** A short search has each step once: the worker dies where a transaction is open. */
const isChosen = (step: number, end: (typeof ENDS)[number]) => IS_LONG || step >= 2 === (end === 'SIGKILL');
const cases = steps.flatMap((step, n) =>
  ENDS.filter((end) => isChosen(n, end)).map((end) => ({ ...step, end, worker: end ? 'dies' : 'lives on' })),
);

async function runOf(id: string): Promise<RunModel> {
  return (await deployment.call('GET', `/api/runs/${id}`)).body as RunModel;
}

async function sync(companyId: string): Promise<RunModel> {
  const { body } = await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  return (body as { run: RunModel }).run;
}

async function syncToTheEnd(companyId: string): Promise<RunModel> {
  await sync(companyId);
  return deployment.runEnd(companyId);
}

async function openHolds(companyId: string): Promise<HoldModel[]> {
  const { body } = await deployment.call('GET', `/api/holds?status=open&company_id=${companyId}`);
  return (body as { data: HoldModel[] }).data;
}

async function expectNothingDeleted(companyId: string): Promise<void> {
  const { prisma } = deployment.database.db;
  expect(await prisma.employee.count({ where: { companyId, deletedAt: null } })).toBe(RECORDS);
  expect(await prisma.change.count({ where: { batch: { companyId }, op: 'delete' } })).toBe(0);
}

/** Each verified walk has received what its own grant is shown, and nothing else. */
async function expectNoMixedProof(companyId: string): Promise<void> {
  const walks = await deployment.database.db.prisma.walk.findMany({ where: { companyId, verified: true } });
  const received = walks.map(({ grantNumber, received: count }) => [grantNumber, count]);
  const allowed = [
    [1, RECORDS],
    [2, RECORDS - HIDDEN],
    [3, RECORDS],
  ];
  for (const each of received) expect(allowed).toContainEqual(each);
}

async function disarm(): Promise<void> {
  for (const table of ['muster.walk_pages', 'muster.barriers'])
    await deployment.database.db.pool.query(`DROP TRIGGER IF EXISTS trap ON ${table}`);
}

const idsOf = (companyId: string) =>
  deployment.sandbox.records(companyId, 'employees').map((text) => (JSON.parse(text) as { uid: string }).uid);

beforeAll(async () => {
  const companies = cases.map((_, n) => ({ name: `C${n}`, employees: RECORDS }));
  deployment = await Deployment.open({
    catalogue: CATALOGUE,
    sandbox: { companies, latencyMs: 5, redirectUris: [CALLBACK], etags: true },
    env: { PUBLIC_URL },
  });
  await deployment.database.db.pool.query(`
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock(${TRAP}); RETURN NEW; END $$`);
  await deployment.startApi();
  worker = await deployment.startWorker();
  for (const { companyId } of deployment.sandbox.companies) await deployment.onboard(companyId);
  for (const { companyId } of deployment.sandbox.companies) await deployment.runEnd(companyId);
}, 600_000);

afterAll(() => deployment.close());

describe.each(cases.map((each, n) => ({ ...each, n })))('another person authorizes $name, and the worker $worker', (each) => {
  test('no row is deleted without a person', async () => {
    const { arm, reach, end, n } = each;
    const { companyId } = deployment.sandbox.companies[n]!;
    const client = new pg.Client(deployment.database.url);
    await client.connect();
    try {
      await arm(client, companyId);
      await reach(client, await sync(companyId));
      deployment.sandbox.setPerson(companyId, { hides: idsOf(companyId).slice(40, 40 + HIDDEN) });
      await authorizeByLink(deployment, companyId);
      if (end) {
        worker.kill(end);
        await worker.exit;
      }
    } finally {
      deployment.sandbox.faults.clear();
      await client.end();
    }
    if (end) {
      await deployment.ageHeartbeats();
      worker = await deployment.startWorker();
    }
    expect((await deployment.runEnd(companyId)).status).toBe('succeeded');
    await disarm();
    await expectNothingDeleted(companyId);
    await expectNoMixedProof(companyId);

    for (let night = 0; night < 2; night += 1) await syncToTheEnd(companyId);
    const [hold, ...others] = await openHolds(companyId);
    expect(others).toEqual([]);
    expect(hold).toMatchObject({ cause: 'grant', count: HIDDEN, living: RECORDS, grant: { number: 2 } });
    await expectNothingDeleted(companyId);

    deployment.sandbox.setPerson(companyId, {});
    await authorizeByLink(deployment, companyId);
    await syncToTheEnd(companyId);
    await waitFor(async () => (await openHolds(companyId)).length === 0);
    await expectNothingDeleted(companyId);
    await expectNoMixedProof(companyId);
  });
});
