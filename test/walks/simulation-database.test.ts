import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { compareEverything } from '../../src/walks/comparison.js';
import { randomOf } from '../pagers/shifting-list.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { ledgerIds } from '../support/ledger-ids.js';
import { endpointsOf } from './company-fixture.js';
import { projectComparisons } from './comparisons.js';
import { MovingList, type Serving } from './moving-list.js';
import { answerOf, askedFor, syncHarness } from './sync-harness.js';

/**
 * The same lists as in simulation.test.ts, fewer of them, walked into the real database by whole runs, night after night: each
 * goes by the one before, unless that was cancelled, or a person asked for everything anew.
 */
const SEEDS = Math.ceil(Number(process.env.CAMPAIGN_SEEDS ?? process.env.SIMULATION_SEEDS ?? 120) / 80);
const NIGHTS = 8;
const FIRST = Number(process.env.FIRST_SEED ?? 1);

let sandbox: Sandbox;
let database: TestDatabase;

beforeAll(async () => {
  sandbox = await startSandbox({ companies: [{ name: 'Nobody', employees: 0 }] });
  database = await testDatabase();
});
afterAll(async () => {
  await sandbox.stop();
  await database.close();
});

/** Pages of all lists that the service did not send again. */
let notSent = 0;
const styles: Serving['style'][] = ['total', 'bare', 'token'];

test.each(styles)('runs over a moving %s list', async (style) => {
  const { companyId } = sandbox.companies[0]!;
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const random = randomOf(seed * 104_729);
    const etags = seed % 2 === 0;
    const list = new MovingList(seed, random(40), {
      style,
      reorders: false,
      mostAtOnce: 1 + random(9),
      lastingTokens: etags,
    });
    const size = 2 + random(9);
    const pager =
      style === 'token' ? { style: 'continuation', size } : { style: 'skip-take', skipName: 'skip', takeName: 'take', size };
    const [employees] = endpointsOf({
      employees: {
        method: etags ? 'GET' : 'POST',
        path: '/{company_id}/list',
        pager,
        ...(style === 'bare' && { envelope: 'none' }),
      },
    });
    const restlessness = random(40);
    const world = { moves: true };
    const harness = syncHarness(database.db, sandbox, [employees!], {
      etags,
      respond: ({ path, body, query, ifNoneMatch }) => {
        if (!path.endsWith('/list')) return '{}';
        while (world.moves && random(100) < restlessness) list.change(5);
        const text = list.answer(askedFor({ body, query }));
        if (text !== undefined && answerOf(text, etags, { ifNoneMatch }).status === 304) notSent += 1;
        return text;
      },
    });
    const company = await harness.onboard(companyId);
    for (let night = 1; night <= NIGHTS; night += 1) {
      const quiet = night === NIGHTS || random(2) === 0;
      world.moves = !quiet;
      for (let changes = random(8); changes > 0; changes -= 1) list.change(5);
      list.watch();
      const trigger = random(6) === 0 ? 'manual' : 'nightly';
      let run = await harness.sync(company, { trigger, mode: 'full' }, { stopAfterPages: 1 + random(4) });
      if (run.status === 'running' && night < NIGHTS && random(3) === 0) {
        await harness.runs.cancel(run.id);
        await harness.work(run.id);
        continue;
      }
      while (run.status === 'running') run = await harness.work(run.id, { stopAfterPages: 1 + random(3) });
      const living = await livingRows(company);
      const context = `seed ${seed}, ${style}, night ${night}, quiet ${quiet}`;
      if (quiet) expect(run.walks[0], context).toMatchObject({ verified: true });
      if (quiet && !(await isHeld(company))) expect(living, context).toEqual(list.texts);
      const buried = list.ids.filter((id) => list.steadfast.has(id) && run.walks[0]!.verified && !living.has(id));
      expect(buried, context).toEqual([]);
      if (run.walks[0]!.verified && !(await isHeld(company)))
        expect(await ledgerIds(database.db.pool, run.id, 'employees'), context).toEqual([...living.keys()].toSorted());
    }
    for (const table of [
      'muster.connections',
      'muster.lists',
      'muster.runs',
      'muster.holds',
      'muster.page_snapshots',
      'muster.page_keys',
      'mirror.companies',
      'mirror.employees',
    ])
      await database.db.pool.query(`DELETE FROM ${table}`);
    await harness.close();
  }
});

test('where walks have a baseline, some of its pages were not sent again', () => {
  if (projectComparisons() === compareEverything) expect(notSent).toBe(0);
  else expect(notSent).toBeGreaterThan(0);
});

async function livingRows({ companyId }: CompanyKey): Promise<Map<string, string>> {
  const { rows } = await database.db.pool.query<{ id: string; edition: number }>(
    `SELECT id, data->'edition' AS edition FROM mirror.employees WHERE company_id = $1 AND deleted_at IS NULL`,
    [companyId],
  );
  return new Map(rows.map(({ id, edition }) => [id, `{"id":"${id}","edition":${edition}}`]));
}

async function isHeld({ companyId }: CompanyKey): Promise<boolean> {
  return (await database.db.prisma.hold.count({ where: { companyId, status: 'open' } })) > 0;
}
