import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { fakeService } from '../http/fake-service.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { endpointsOf } from './company-fixture.js';
import { LyingService } from './lying-service.js';
import { foreignHarness } from './sync-harness.js';

// The judge of judge.test.ts once more, over HTTP and through the database: one seed for each hundred of its own.

const SEEDS = Math.ceil(Number(process.env.JUDGE_SEEDS ?? process.env.CAMPAIGN_SEEDS ?? 600) / 100);
const FIRST = Number(process.env.FIRST_SEED ?? 1);

let database: TestDatabase;
let lying: LyingService;
let service: Awaited<ReturnType<typeof fakeService>>;

beforeAll(async () => {
  database = await testDatabase();
  const endpoints = endpointsOf({ list: { method: 'GET', path: '/{company_id}', pager: { style: 'odata', size: 1 } } });
  await ensureMirrorTables(database.db, { endpoints, get: () => undefined });
  service = await fakeService(({ url, headers: asked }, response) => {
    const { pathname, search, searchParams } = new URL(url, 'http://service');
    // The company's own record.
    if (pathname.startsWith('/api/companies/')) return void response.end('{}');
    const path = pathname.startsWith('/next') ? `${pathname}${search}` : pathname;
    const { status, headers, body } = lying.answer({ path, query: Object.fromEntries(searchParams) });
    const text = JSON.stringify(body);
    const etag = status === 200 ? lying.tagOf(url, text) : undefined;
    if (etag !== undefined && asked['if-none-match'] === etag) return void response.writeHead(304, { etag }).end();
    const all = { 'content-type': 'application/json', ...headers, ...(etag !== undefined && { etag }) };
    return void response.writeHead(status, all).end(text);
  });
});
afterAll(async () => {
  await service.close();
  await database.close();
});

async function rowsOf(companyId: string): Promise<Map<string, boolean>> {
  const { rows } = await database.db.pool.query<{ id: string; living: boolean }>(
    'SELECT id, deleted_at IS NULL AS living FROM mirror.list WHERE company_id = $1',
    [companyId],
  );
  return new Map(rows.map(({ id, living }) => [id, living]));
}

/** Nights after which tags that lie are known: six walks go by them, and the seventh is sent everything. */
const NIGHTS_OF_A_LIE = 7;

test('night after night, no lie leaves a list that is proved and not whole, or deletes what another person cannot see', async () => {
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    lying = new LyingService(seed);
    const harness = foreignHarness(database.db, service.url, endpointsOf({ list: lying.entry }));
    const company = await harness.connect(randomUUID());
    let unseen: string[] = [];
    for (let night = 0; night < (lying.etags === 'none' ? 3 : 10); night += 1) {
      if (night > 0) lying.nextNight();
      if (night === 2 && seed % 4 === 0) {
        const mirrored = await rowsOf(company.companyId);
        unseen = lying.showLess().filter((id) => mirrored.get(id));
        await database.db.pool.query(
          'UPDATE muster.connections SET grant_number = grant_number + 1, authorized_at = now() WHERE company_id = $1',
          [company.companyId],
        );
      }
      const [walk] = (await harness.sync(company, { trigger: 'nightly', mode: 'full' })).walks;
      const rows = await rowsOf(company.companyId);
      const because = walk!.error?.code ?? walk!.unverified_reason ?? walk!.proof!;
      const lies = [...lying.lies, `tags: ${lying.etags}`].join(', ');
      const context = `seed ${seed}, night ${night}: ${lies}; ${JSON.stringify(lying.entry)}; ${because}`;
      const isTrue = lying.etags === 'none' || lying.etags === 'honest';
      const due = isTrue ? lying.visibleThroughout : lying.visibleFor(NIGHTS_OF_A_LIE);
      if (walk!.verified)
        expect(
          due.filter((id) => rows.get(id) !== true),
          context,
        ).toEqual([]);
      if (lying.isHonest && isTrue && unseen.length === 0 && !lying.mayBeUnproved(because))
        expect(walk!.verified, context).toBe(true);
      expect(
        unseen.filter((id) => rows.get(id) === false),
        context,
      ).toEqual([]);
    }
    await harness.close();
  }
});
