import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { MusterError } from '../../src/core/errors.js';
import { claimRun, findClaimableRuns, renewClaims } from '../../src/db/tables/runs.js';
import { RunLeases } from '../../src/runs/run-leases.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ledgerIds } from '../support/ledger-ids.js';
import { mirrored, upstream } from '../support/mirror-comparison.js';
import { waitFor } from '../support/wait-for.js';
import { ENTRIES, endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

const { employees, departments } = ENTRIES;
const ENDPOINTS = endpointsOf({ employees, departments });

let sandbox: Sandbox;
let database: TestDatabase;
let slow: SyncHarness;
let quick: SyncHarness;
let company: CompanyKey;
/** What happens before a request of the slow worker. */
let before: (path: string) => Promise<void> | void = () => {};
let beforeRecord: (signal: AbortSignal | undefined) => Promise<void> | void = () => {};
let next = 0;

beforeAll(async () => {
  sandbox = await startSandbox({
    companies: Array.from({ length: 21 }, (_, n) => ({ name: `C${n}`, employees: 35, departments: 8 })),
  });
  database = await testDatabase();
  slow = syncHarness(database.db, sandbox, ENDPOINTS, {
    worker: 'slow',
    beforeRequest: ({ path, signal }) => (path.endsWith(company.companyId) ? beforeRecord(signal) : before(path)),
  });
  quick = syncHarness(database.db, sandbox, ENDPOINTS, { worker: 'quick' });
});

afterAll(async () => {
  await slow.close();
  await quick.close();
  await sandbox.stop();
  await database.close();
});

beforeEach(async () => {
  before = () => {};
  beforeRecord = () => {};
  company = await slow.onboard(sandbox.companies[next++]!.companyId);
});

test('a worker that was frozen in a page writes nothing after its successor', async () => {
  const frozen = freezeAt('/employees', 3);
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const work = slow.work(id);
  await frozen.committed(id);
  await lapse(id);
  const run = await quick.work(id);
  expect(run).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true, resumed: true, inserted: 35 }, { verified: true }],
  });
  sandbox.list(company.companyId, 'employees').change(34);
  frozen.thaw();
  expect(await work).toEqual(run);
  expect(await quick.read(id)).toEqual(run);
});

test('a run that is claimed while its worker stops is interrupted at once', async () => {
  const { id } = await quick.runs.request({ company, trigger: 'manual' });
  const leases = new RunLeases(database.db, 'stopping', pino({ enabled: false }));
  const work = leases.work(id, async ({ interruption, signal }) => [interruption, signal.aborted]);
  leases.interruptAll();
  expect(await work).toEqual(['stopping', true]);
});

test('a worker that wakes up does not begin a walk that its successor has finished', async () => {
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const claim = (await claimRun(database.db, { id, worker: 'slow' }))!;
  await lapse(id);
  const run = await quick.work(id);
  const { id: walkId } = await database.db.prisma.walk.findFirstOrThrow({ where: { runId: id } });
  const lists = () => database.db.prisma.list.findMany({ where: company });
  const held = await lists();
  await expect(slow.store.open({ id: walkId, run: claim }, ENDPOINTS[0]!, true)).rejects.toMatchObject({ code: 'fenced' });
  await expect(
    slow.store.fail({ id: walkId, run: claim }, { error: { code: 'internal_error', message: 'x' } }, true),
  ).rejects.toMatchObject({
    code: 'fenced',
  });
  // Nor does it take the list from whoever has it by then.
  expect(await lists()).toEqual(held);
  expect(await quick.read(id)).toEqual(run);
});

test('a worker that wakes up at the end of a walk whose ledger was taken over deletes nothing', async () => {
  await quick.sync(company);
  const frozen = freezeAt('/employees', 4);
  const { id } = await slow.runs.request({ company, trigger: 'manual', mode: 'full' });
  const work = slow.work(id);
  await frozen.committed(id);
  await quick.runs.cancel(id);
  await lapse(id);
  expect(await quick.work(id)).toMatchObject({ status: 'cancelled' });
  const successor = await quick.runs.request({ company, trigger: 'manual', mode: 'resume', resources: ['employees'] });
  frozen.thaw();
  expect(await work).toMatchObject({
    status: 'cancelled',
    walks: [{ status: 'cancelled', deleted: 0 }, { status: 'cancelled' }],
  });
  const run = await quick.work(successor.id);
  expect(run).toMatchObject({ status: 'succeeded', walks: [{ verified: true, deleted: 0, resumed: true, received: 35 }] });
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(upstream(sandbox, 'employees', company.companyId));
});

test('a worker whose last page the database has lost proves nothing by what it remembers', async () => {
  const frozen = freezeAt('/employees', 4);
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const work = slow.work(id);
  await frozen.committed(id);
  // As after a crash of a server that had not flushed it, or a failover to a replica that had not received it.
  const { rows } = await database.db.pool.query<{ id: string }>(
    `UPDATE muster.walks SET pages = pages - 1, checkpoint = NULL WHERE run_id = $1 AND position = 0 RETURNING id`,
    [id],
  );
  await database.db.pool.query('DELETE FROM muster.walk_pages WHERE walk_id = $1 AND page = 2', [rows[0]!.id]);
  await database.db.pool.query(
    `DELETE FROM mirror.employees WHERE company_id = $1 AND ctid IN (
    SELECT ctid FROM mirror.employees WHERE company_id = $1 ORDER BY ctid DESC LIMIT 8)`,
    [company.companyId],
  );
  frozen.thaw();
  expect(await work).toMatchObject({ status: 'running', walks: [{ status: 'running', pages: 2 }, {}] });
  await lapse(id);
  expect(await quick.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, received: 35, deleted: 0 }, {}] });
  expect(await mirrored(database.db, 'employees', company.companyId)).toEqual(upstream(sandbox, 'employees', company.companyId));
});

test('a run does not succeed over a walk whose end the database has lost', async () => {
  before = async (path) => {
    // As a replica that has become the server, and had not received the end.
    if (path.endsWith('/departments/list'))
      await database.db.pool.query(
        `WITH lost AS (UPDATE muster.walks SET status = 'running', verified = false, finished_at = NULL
           WHERE company_id = $1 AND resource = 'employees' RETURNING id)
         UPDATE muster.lists SET verified_walk_id = NULL WHERE verified_walk_id IN (SELECT id FROM lost)`,
        [company.companyId],
      );
  };
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  expect(await slow.work(id)).toMatchObject({ status: 'running', walks: [{ status: 'running' }, { verified: true }] });
  // Nobody alive has it, and its claim need not lapse.
  expect(await quick.work(id)).toMatchObject({
    status: 'succeeded',
    walks: [{ verified: true, received: 35 }, { verified: true }],
  });
});

describe.each([
  ['is of another catalogue entry', `UPDATE muster.walks SET fingerprint = 'another' WHERE company_id = $1`],
  [
    'grew too old while the run waited',
    `UPDATE muster.walks SET checkpoint_at = now() - interval '7 hours' WHERE company_id = $1`,
  ],
  // As rekeying the list does.
  ['was given up', `UPDATE muster.walks SET checkpoint = NULL, checkpoint_at = NULL WHERE company_id = $1`],
])('a checkpoint that was taken over and %s', (_, makeUnusable) => {
  test.each([1, 2])('leaves nothing of its ledger, in pass %i', async (pass) => {
    const list = sandbox.list(company.companyId, 'employees');
    const [front] = list.texts();
    let requests = 0;
    before = (path) => {
      // The list grows between two pages of the first pass: it is read once more.
      if (pass === 2 && path.endsWith('/employees') && ++requests === 3)
        list.insert(list.size, front!.replace(/"uid":\s*"[^"]*"/, '"uid":"late"'));
    };
    let { id } = await slow.sync(company, {}, { stopAfterPages: 2 });
    const stoodAt = () => database.db.prisma.walk.findFirstOrThrow({ where: { runId: id, resource: 'employees' } });
    while ((await stoodAt()).pass < pass) await slow.work(id, { stopAfterPages: 1 });
    if (pass === 2) await slow.work(id, { stopAfterPages: 2 });
    await slow.runs.cancel(id);
    await slow.work(id);
    ({ id } = await quick.runs.request({ company, trigger: 'manual', mode: 'resume' }));
    await database.db.pool.query(makeUnusable, [company.companyId]);
    list.remove(3, 20);
    expect(await quick.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, resumed: false }, {}] });
    const uids = list.texts().map((text) => (JSON.parse(text) as { uid: string }).uid);
    expect(await ledgerIds(database.db.pool, id, 'employees')).toEqual(uids.toSorted());
    const passes = await database.db.pool.query(
      `SELECT DISTINCT p.pass FROM muster.walk_pages p JOIN muster.walks w ON w.id = p.walk_id WHERE w.run_id = $1`,
      [id],
    );
    expect(passes.rows).toEqual([{ pass: 1 }]);
  });
});

test('the company record that is on its way ends with its run', async () => {
  const aborted = new Promise<void>((resolve) => {
    beforeRecord = (signal) =>
      new Promise((_, reject) =>
        signal!.addEventListener('abort', () => {
          resolve();
          reject(signal!.reason);
        }),
      );
  });
  before = (path) => {
    if (path.endsWith('/employees')) throw new MusterError('company_not_found', 'gone');
  };
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  expect(await slow.work(id)).toMatchObject({ status: 'failed' });
  await aborted;
});

test('a run that was cancelled takes no further page from a worker that slept through it', async () => {
  const frozen = freezeAt('/employees', 3);
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const work = slow.work(id);
  await frozen.committed(id);
  await quick.runs.cancel(id);
  await lapse(id);
  const cancelled = await quick.work(id);
  frozen.thaw();
  expect(await work).toEqual(cancelled);
  expect(cancelled.walks[0]).toMatchObject({ status: 'cancelled', pages: 2 });
});

test('connections that PostgreSQL ends in the middle of a walk cost no attempt and no page', async () => {
  let requests = 0;
  before = async (path) => {
    if (path.endsWith('/employees') && ++requests === 3) await endConnections();
  };
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  let run = await slow.work(id);
  for (let attempt = 0; run.status === 'running' && attempt < 5; attempt += 1) {
    await lapse(id);
    run = await slow.work(id);
  }
  expect(run).toMatchObject({
    status: 'succeeded',
    attempts: 0,
    walks: [{ verified: true, inserted: 35, pages: 4 }, { verified: true }],
  });
});

test('only the runs that a worker works on are kept alive by it', async () => {
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  await claimRun(database.db, { id, worker: 'slow' });
  expect(await renewClaims(database.db, { ids: [], worker: 'slow' })).toEqual([]);
  expect(await renewClaims(database.db, { ids: [id], worker: 'slow' })).toMatchObject([{ id, epoch: 1n }]);
  await lapse(id);
  await renewClaims(database.db, { ids: [], worker: 'slow' });
  expect((await findClaimableRuns(database.db, { limit: 100 })).map((run) => run.id)).toContain(id);
});

test('a walk that lacked only its verdict asks for nothing', async () => {
  await database.db.pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'busy' USING ERRCODE = '55P03'; END $$;
    CREATE TRIGGER refuse BEFORE UPDATE OF verified_walk_id ON muster.lists FOR EACH ROW EXECUTE FUNCTION refuse()`);
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const interrupted = await slow.work(id);
  await database.db.pool.query('DROP TRIGGER refuse ON muster.lists');
  expect(interrupted).toMatchObject({ status: 'running', attempts: 0, walks: [{ status: 'running', pages: 4 }, {}] });
  sandbox.requests.clear();
  expect(await quick.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, pages: 4, received: 35 }, {}] });
  expect(sandbox.requests.all('/employees')).toEqual([]);
});

test('the company record is mirrored although the first worker died before it came, and asked for once', async () => {
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  await claimRun(database.db, { id, worker: 'slow' });
  await lapse(id);
  sandbox.requests.clear();
  await quick.work(id, { stopAfterPages: 2 });
  await quick.work(id, { stopAfterPages: 3 });
  expect(await quick.work(id)).toMatchObject({ status: 'succeeded' });
  expect(await database.db.prisma.company.findFirst({ where: company })).toMatchObject({ data: expect.anything() });
  expect(sandbox.requests.all().filter(({ path }) => path.endsWith(company.companyId))).toHaveLength(1);
});

test('the company record is mirrored although the database was away when it came', async () => {
  await database.db.pool.query(`
    CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$;
    CREATE TRIGGER away BEFORE UPDATE OF data ON mirror.companies FOR EACH ROW EXECUTE FUNCTION end_session()`);
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const interrupted = await slow.work(id);
  await database.db.pool.query('DROP TRIGGER away ON mirror.companies');
  expect(interrupted).toMatchObject({ status: 'running', attempts: 0, walks: [{ pages: 0 }, { pages: 0 }] });
  expect(await quick.work(id)).toMatchObject({ status: 'succeeded' });
  expect(await database.db.prisma.company.findFirst({ where: company })).toMatchObject({ data: expect.anything() });
});

test('a run of a company that was paused waits, and goes on when it is resumed', async () => {
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  const half = await slow.work(id, { stopAfterPages: 2 });
  expect(half).toMatchObject({ status: 'running', walks: [{ pages: 2 }, {}] });
  await claimRun(database.db, { id, worker: 'slow' });
  await database.db.prisma.connection.updateMany({ where: company, data: { paused: true } });
  expect(await renewClaims(database.db, { ids: [id], worker: 'slow' })).toMatchObject([
    { id, paused: true, cancelRequested: false },
  ]);
  await lapse(id);
  expect(await quick.work(id)).toEqual(half);
  expect((await findClaimableRuns(database.db, { limit: 100 })).map((run) => run.id)).not.toContain(id);
  await database.db.prisma.connection.updateMany({ where: company, data: { paused: false } });
  expect(await quick.work(id)).toMatchObject({ status: 'succeeded', walks: [{ verified: true, resumed: true, pages: 4 }, {}] });
});

test('a run of a paused company can be cancelled', async () => {
  const { id } = await slow.runs.request({ company, trigger: 'manual' });
  await slow.work(id, { stopAfterPages: 2 });
  await database.db.prisma.connection.updateMany({ where: company, data: { paused: true } });
  await slow.runs.cancel(id);
  expect(await quick.work(id)).toMatchObject({ status: 'cancelled' });
});

/** The slow worker stops before its `count`-th request to such a path, until it is thawed. */
function freezeAt(path: string, count: number) {
  let thaw = () => {};
  const thawed = new Promise<void>((resolve) => {
    thaw = resolve;
  });
  let requests = 0;
  before = async (asked) => {
    if (asked.endsWith(path) && ++requests >= count) await thawed;
  };
  /** Resolves when the pages that came before are committed. */
  const committed = async (id: string) => {
    await waitFor(async () => (await slow.runs.find(id))!.walks[0]!.pages === count - 1);
  };
  return { committed, thaw };
}

/** As if its worker had been silent for a minute. */
async function lapse(id: string): Promise<void> {
  await database.db.pool.query(
    `UPDATE muster.runs SET heartbeat_at = now() - interval '1 minute', start_after = now() WHERE id = $1`,
    [id],
  );
}

async function endConnections(): Promise<void> {
  await database.db.pool.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`,
  );
}
