import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { RunModel } from '../../src/api/runs/run-model.js';
import { Deployment } from '../process/deployment.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import type { TestProcess } from '../support/process.js';
import { waitFor } from '../support/wait-for.js';

/** Kills at each step; `CAMPAIGN_KILLS=20 npm run test:campaign -- walk-kill` for a real campaign. */
const ROUNDS = Number(process.env.CAMPAIGN_KILLS ?? 3);
const RECORDS = 300;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 20 },
  },
};
/** Behind so many pages a walk is held where no trap waits for it: else it is over before anybody could end its worker. */
const HALF_WAY = 8;
/** What a worker says of a run that is no longer its own, or whose connection PostgreSQL has ended. */
const LOST = /another worker has taken the run over|the database interrupted the run/g;
/** What the traps below wait for inside the worker's transaction. */
const TRAP = 4711;

interface Step {
  readonly name: string;
  /** Records that leave before the run: below the guard, or far above it. */
  readonly leavers: number;
  readonly end: 'SIGKILL' | 'SIGSTOP';
  /** Steps of one set may be reached together, each by walks of its own: those of a set share `end`, and how they stop the walks they do not hold. */
  readonly set: string;
  /** Prepared before the runs of these companies begin; undone with `client` and `disarm`. */
  readonly arm: (client: pg.Client, companies: readonly string[]) => Promise<void>;
  /** Resolves when the worker stands at the step. */
  readonly reach: (client: pg.Client, runs: readonly RunModel[]) => Promise<void>;
}

let deployment: Deployment;
/** The next step ends it, and starts another one. */
let worker: TestProcess;
/** Walks that stand still at a lock of ours now. */
let standing = 0;

async function reachPage(runs: readonly RunModel[], pages: number): Promise<void> {
  const { prisma } = deployment.database.db;
  for (const { id } of runs)
    await waitFor(async () => ((await prisma.walk.findFirst({ where: { runId: id } }))?.pages ?? 0) >= pages, {
      what: `page ${pages}`,
    });
}

async function runOf(id: string): Promise<RunModel> {
  return (await deployment.call('GET', `/api/runs/${id}`)).body as RunModel;
}

/** So many more walks than before stand still at a lock that `client` holds. */
async function reachLock(client: pg.Client, { length }: readonly RunModel[]): Promise<void> {
  const { rows: own } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  standing += length;
  await waitFor(
    async () => {
      // Not by `client`: within its transaction the list of sessions stays as it was.
      const { rows } = await deployment.database.db.pool.query(
        'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND $1::int = ANY(pg_blocking_pids(pid))',
        [own[0]!.pid],
      );
      return rows.length >= standing;
    },
    { what: `${standing} walks to stand still` },
  );
}

/** A trigger of the database in which the worker waits for us. */
const trap = (trigger: string): Pick<Step, 'arm' | 'reach'> => ({
  arm: async (client, companies) => {
    await client.query(`SELECT pg_advisory_lock(${TRAP})`);
    const names = companies.map((companyId) => `'${companyId}'`).join(', ');
    await deployment.database.db.pool.query(`CREATE TRIGGER trap ${trigger} EXECUTE FUNCTION trap(${names})`);
  },
  reach: reachLock,
});

/**
 * No answer is given to requests for pages behind the half of the walk, until the faults are cleared. The pages are those of the walk before, by their
 * places: requests of one walk arrive in any order.
 */
const holdHalfWay: Step['arm'] = async (_, companies) => {
  for (const companyId of companies) {
    const path = `/api/companies/${companyId}/employees`;
    const places = new Set(deployment.sandbox.requests.all(path).map(({ input }) => Number(input['skip'])));
    for (const place of [...places].toSorted((one, other) => one - other).slice(HALF_WAY))
      deployment.sandbox.faults.add({ kind: 'hold' }, { path, input: { skip: String(place) }, times: Infinity });
  }
};

const afterFetch = async (client: pg.Client, runs: readonly RunModel[]) => {
  await client.query('BEGIN');
  // Each by itself: a walk that waited for a slower one could be over before it is locked.
  await Promise.all(
    runs.map(async (run) => {
      await reachPage([run], 3);
      await client.query('SELECT 1 FROM muster.lists WHERE company_id = $1 FOR UPDATE', [run.company_id]);
    }),
  );
  deployment.sandbox.faults.clear();
  await reachLock(client, runs);
};

const beforeAcknowledgement = async (client: pg.Client, runs: readonly RunModel[]) => {
  await reachPage(runs, 2);
  const { rows } = await client.query<{ name: string }>(
    `SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'bullmq'`,
  );
  // A statement of the queue may have one table and wait for another. PostgreSQL then ends either it or these locks, which begin again.
  await waitFor(async () => {
    await client.query('ROLLBACK');
    await client.query('BEGIN');
    for (const { name } of rows) await client.query(`LOCK TABLE bullmq.${name} IN ACCESS EXCLUSIVE MODE`);
    return true;
  });
  deployment.sandbox.faults.clear();
  for (const { id } of runs) await waitFor(async () => (await runOf(id)).status === 'succeeded');
};

const insideTransaction = trap('BEFORE INSERT ON muster.walk_pages FOR EACH ROW WHEN (NEW.page = 5)');
const afterCommit = (_: pg.Client, runs: readonly RunModel[]) => reachPage(runs, 4);

/** What `afterFetch` goes on with would free walks that others hold, so that it is of another set. */
const steps: readonly Step[] = [
  { name: 'after a fetch', set: 'first', leavers: 30, end: 'SIGKILL', arm: holdHalfWay, reach: afterFetch },
  { name: 'inside the transaction', set: 'first', leavers: 30, end: 'SIGKILL', ...insideTransaction },
  {
    name: 'during tombstones',
    set: 'first',
    leavers: 30,
    end: 'SIGKILL',
    ...trap('BEFORE UPDATE ON mirror.employees FOR EACH ROW WHEN (NEW.deleted_at IS NOT NULL)'),
  },
  { name: 'after a commit', set: 'second', leavers: 30, end: 'SIGKILL', arm: holdHalfWay, reach: afterCommit },
  { name: 'during a hold', set: 'second', leavers: 150, end: 'SIGKILL', ...trap('BEFORE INSERT ON muster.holds FOR EACH ROW') },
  {
    name: 'as it proved the list',
    set: 'second',
    leavers: 30,
    end: 'SIGKILL',
    ...trap('BEFORE INSERT ON muster.barriers FOR EACH ROW'),
  },
  {
    name: "before the queue's acknowledgement",
    set: 'third',
    leavers: 30,
    end: 'SIGKILL',
    arm: holdHalfWay,
    reach: beforeAcknowledgement,
  },
  { name: 'frozen after a commit', set: 'frozen', leavers: 30, end: 'SIGSTOP', arm: holdHalfWay, reach: afterCommit },
  { name: 'frozen inside the transaction', set: 'frozen', leavers: 30, end: 'SIGSTOP', ...insideTransaction },
];

/** A walk of one company that stands at a step when its worker ends. */
interface Place {
  readonly step: Step;
  readonly company: number;
}

/** Walks that stand still side by side, as many as a worker walks at once, less one. */
const AT_ONCE = 3;
/** Companies that are disturbed, the rounds of a step one after the other. Their twins follow, which are not: one for each count of leavers. */
const places: readonly Place[] = steps.flatMap((step, n) =>
  Array.from({ length: ROUNDS }, (_, round) => ({ step, company: n * ROUNDS + round })),
);
const twins = [...new Set(steps.map(({ leavers }) => leavers))];
const twinOf = ({ leavers }: Step) => companyAt(places.length + twins.indexOf(leavers));
const companyAt = (n: number) => deployment.sandbox.companies[n]!.companyId;

const ends = [...new Set(steps.map(({ set }) => set))].flatMap((set) => {
  const own = places.filter(({ step }) => step.set === set);
  // Round by round, so that all steps of the set are reached together.
  const inTurn = own.toSorted((one, other) => (one.company % ROUNDS) - (other.company % ROUNDS));
  return Array.from({ length: Math.ceil(inTurn.length / AT_ONCE) }, (_, n) => {
    const chosen = inTurn.slice(n * AT_ONCE, (n + 1) * AT_ONCE);
    return { chosen, signal: chosen[0]!.step.end, name: chosen.map(({ step }) => step.name).join(', ') };
  });
});

beforeAll(async () => {
  const companies = Array.from({ length: places.length + twins.length }, (_, n) => ({ name: `C${n}`, employees: RECORDS }));
  deployment = await Deployment.open({ catalogue: CATALOGUE, sandbox: { companies, latencyMs: 10 } });
  await deployment.database.db.pool.query(`
    CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE company text := to_jsonb(NEW) ->> 'company_id';
    BEGIN
      -- A page of the ledger has its walk alone.
      IF company IS NULL THEN
        SELECT company_id INTO company FROM muster.walks WHERE id::text = to_jsonb(NEW) ->> 'walk_id';
      END IF;
      IF company = ANY (TG_ARGV) THEN PERFORM pg_advisory_xact_lock(${TRAP}); END IF;
      RETURN NEW;
    END $$`);
  await deployment.startApi();
  worker = await deployment.startWorker();
  const all = deployment.sandbox.companies.map(({ companyId }) => companyId);
  for (const companyId of all) await deployment.onboard(companyId);
  for (const companyId of all) await deployment.runEnd(companyId);
  for (const { step, company } of places) disturb(companyAt(company), step.leavers);
  const undisturbed = all.slice(places.length);
  for (const [n, companyId] of undisturbed.entries()) disturb(companyId, twins[n]!);
  for (const companyId of undisturbed) await sync(companyId);
  for (const companyId of undisturbed) await deployment.runEnd(companyId);
}, 600_000);

afterAll(() => deployment.close());

/** The same to every company: some change, some leave, some join. */
function disturb(companyId: string, leavers: number): void {
  const list = deployment.sandbox.list(companyId, 'employees');
  for (const index of [0, 77, 150, 299]) list.change(index);
  list.remove(100, leavers);
  for (const index of [3, 50, 120]) list.insert(index);
}

async function sync(companyId: string): Promise<RunModel> {
  const { body } = await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  return (body as { run: RunModel }).run;
}

test.each(ends)('a worker ended $name: as if nothing had been', async ({ chosen, signal }) => {
  const companies = chosen.map(({ company }) => companyAt(company));
  const doomed = worker;
  const client = new pg.Client(deployment.database.url);
  await client.connect();
  standing = 0;
  try {
    for (const step of new Set(chosen.map((place) => place.step))) await step.arm(client, companiesAt(step));
    const runs = await Promise.all(companies.map(sync));
    for (const step of new Set(chosen.map((place) => place.step))) {
      const own = companiesAt(step);
      await step.reach(
        client,
        runs.filter(({ company_id }) => own.includes(company_id)),
      );
    }
    doomed.kill(signal);
    if (signal === 'SIGKILL') await doomed.exit;
  } finally {
    deployment.sandbox.faults.clear();
    await client.end();
  }

  await deployment.ageHeartbeats();
  worker = await deployment.startWorker();
  const runs = await Promise.all(companies.map((companyId) => deployment.runEnd(companyId)));
  if (signal === 'SIGSTOP') {
    doomed.kill('SIGCONT');
    // It lives on, finds out, and can be stopped like any other.
    const losses = () => (doomed.stdout + doomed.stderr).match(LOST) ?? [];
    await waitFor(() => losses().length >= companies.length, { what: 'the frozen worker to give up its runs' });
    doomed.kill('SIGTERM');
    expect(await doomed.exit).toEqual({ code: 0, signal: null });
  }
  await disarm();

  for (const [n, companyId] of companies.entries()) {
    const { step } = chosen[n]!;
    const twin = twinOf(step);
    expect(await deployment.lastRun(companyId), step.name).toEqual(runs[n]);
    expect(counts(runs[n]!), step.name).toEqual(counts(await deployment.lastRun(twin)));
    expect(await holds(companyId), step.name).toEqual(await holds(twin));
    expect(await feed(companyId), step.name).toEqual(await feed(twin));
    expect(await barriers(companyId), step.name).toEqual(await barriers(twin));
    expect(await livingCount(companyId), step.name).toEqual(await livingCount(twin));
    const isHeld = step.leavers > RECORDS / 5;
    if (!isHeld)
      expect(await mirrored(deployment.database.db, 'employees', companyId), step.name).toEqual(
        upstream(deployment.sandbox, 'employees', companyId),
      );
  }

  function companiesAt(step: Step): string[] {
    return chosen.filter((place) => place.step === step).map(({ company }) => companyAt(company));
  }
});

/** Not before the frozen worker's transaction is over: it holds the table. */
async function disarm(): Promise<void> {
  for (const table of ['muster.walk_pages', 'mirror.employees', 'muster.holds', 'muster.barriers'])
    await deployment.database.db.pool.query(`DROP TRIGGER IF EXISTS trap ON ${table}`);
}

/** What two equal runs have in common. */
function counts({ status, attempts, walks }: RunModel): object {
  const apart = new Set(['started_at', 'finished_at', 'resumed']);
  const isTold = ([name]: [string, unknown]) => !apart.has(name);
  const told = ({ hold, ...walk }: RunModel['walks'][number]) => ({ ...walk, ...(hold && { hold: { ...hold, id: '' } }) });
  return { status, attempts, walks: walks.map((walk) => Object.entries(told(walk)).filter(isTold)) };
}

/** The changes in their order, without ids and times: twins have the same history. */
async function feed(companyId: string): Promise<string[]> {
  const stamped = async () => {
    const { rows } = await deployment.database.db.pool.query(
      'SELECT FROM muster.change_batches WHERE first_seq IS NULL UNION ALL SELECT FROM muster.barriers WHERE number IS NULL',
    );
    return rows.length === 0;
  };
  await deployment.raw('/api/changes?limit=1');
  await waitFor(stamped);
  const { rows } = await deployment.database.db.pool.query<{ op: string; id: string }>(
    'SELECT op, id FROM mirror.changes WHERE company_id = $1 ORDER BY seq',
    [companyId],
  );
  const names = new Map<string, number>();
  return rows.map(({ op, id }) => {
    if (!names.has(id)) names.set(id, names.size);
    return op === 'delete' ? op : `${op} ${names.get(id)}`;
  });
}

/** Of each verified walk, in their order, how many changes of its list its barrier covers. The feed has been numbered. */
async function barriers(companyId: string): Promise<object[]> {
  const { rows } = await deployment.database.db.pool.query<{ records: number; changes: number }>(
    `SELECT b.records, (SELECT count(*)::int FROM mirror.changes c WHERE c.company_id = b.company_id AND c.seq <= b.seq) AS changes
     FROM muster.walks w LEFT JOIN warehouse.barriers b ON b.run_id = w.run_id AND b.resource = w.resource
     WHERE w.company_id = $1 AND w.verified ORDER BY w.finished_at`,
    [companyId],
  );
  expect(await deployment.database.db.prisma.barrier.count({ where: { companyId } })).toBe(rows.length);
  return rows;
}

async function holds(companyId: string): Promise<object[]> {
  const found = await deployment.database.db.prisma.hold.findMany({ where: { companyId }, orderBy: { seq: 'asc' } });
  return found.map(({ status, count, living }) => ({ status, count, living }));
}

async function livingCount(companyId: string): Promise<object> {
  const { records } = await deployment.database.db.prisma.list.findFirstOrThrow({ where: { companyId } });
  const living = await deployment.database.db.prisma.employee.count({ where: { companyId, deletedAt: null } });
  expect(living).toBe(records);
  return { records };
}
