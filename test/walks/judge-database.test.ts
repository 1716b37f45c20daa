import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { fakeService } from '../http/fake-service.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { LyingService } from './lying-service.js';
import { foreignHarness } from './sync-harness.js';

// The judge of judge.test.ts once more, over HTTP and through the database: one seed for each hundred of its own.

const SEEDS = Math.ceil(Number(process.env.JUDGE_SEEDS ?? process.env.CAMPAIGN_SEEDS ?? 2_000) / 100);
const FIRST = Number(process.env.FIRST_SEED ?? 1);

let database: TestDatabase;
let lying: LyingService;
let service: Awaited<ReturnType<typeof fakeService>>;

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = endpointsOf({ list: { method: 'GET', path: '/{company_id}', pager: { style: 'odata', size: 1 } } });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  service = await fakeService(({ url }, response) => {
    const { pathname, search, searchParams } = new URL(url, 'http://service');
    // The company's own record.
    if (pathname.startsWith('/api/companies/')) return void response.end('{}');
    const path = pathname.startsWith('/next') ? `${pathname}${search}` : pathname;
    const { status, headers, body } = lying.answer({ path, query: Object.fromEntries(searchParams) });
    return void response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  });
});
afterAll(async () => {
  await service.close();
  await database.close();
});

test('no lie leaves a list in the database that is proved and not whole', async () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    lying = new LyingService(seed);
    const harness = foreignHarness(database.db, service.url, endpointsOf({ list: lying.entry }));
    const company = await harness.connect(randomUUID());
    const [walk] = (await harness.sync(company)).walks;
    await harness.close();
    const { rows } = await database.db.pool.query<{ id: string }>(
      'SELECT id FROM mirror.list WHERE company_id = $1 AND deleted_at IS NULL',
      [company.companyId],
    );
    const mirrored = new Set(rows.map(({ id }) => id));
    const because = walk!.error?.code ?? walk!.unverified_reason ?? walk!.proof!;
    const context = `seed ${seed}: ${lying.lies.join(', ') || 'honest'}; ${JSON.stringify(lying.entry)}; ${because}`;
    if (walk!.verified)
      expect(
        lying.visibleThroughout.filter((id) => !mirrored.has(id)),
        context,
      ).toEqual([]);
    if (lying.isHonest && !lying.mayBeUnproved(because)) expect(walk!.verified, context).toBe(true);
  }
});
