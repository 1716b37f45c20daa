import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Catalogue } from '../../src/catalogue/endpoint.js';
import type { Database } from '../../src/db/connection/database.js';
import { inTransaction } from '../../src/db/connection/transaction.js';
import { forgetRecord } from '../../src/erasure/forget.js';
import type { ApiRequest } from '../../src/http/api-client.js';
import { ensureMirrorTables } from '../../src/mirror/mirror-table.js';
import { companyIdOf } from '../support/company-ids.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { occurrencesOf } from '../support/occurrences.js';
import { testSuppressions } from '../support/suppressions.js';
import { endpointsOf } from '../walks/company-fixture.js';
import { type SyncHarness, syncHarness } from '../walks/sync-harness.js';

// A person is forgotten at each moment of a second reading: before each of its requests, and before each of its statements. The lists are people and
// a child list of theirs, served by the test itself.

const size = 2;
const endpoints = endpointsOf({
  people: { method: 'GET', path: '/api/companies/{company_id}/people', pager: { style: 'skip-take', in: 'query', size } },
  notes: {
    method: 'GET',
    path: '/api/companies/{company_id}/people/{id}/notes',
    parent: 'people',
    pager: { style: 'skip-take', in: 'query', size },
  },
});
const catalogue: Catalogue = { endpoints, get: (resource) => endpoints.find((endpoint) => endpoint.resource === resource) };
const NOTES = 1;
/** Of the records of the first, the notes have no texts; of those of the second, who came after the sync, they have. */
const [MIRRORED, NEW] = ['berit', 'carl'];

let database: TestDatabase;
let harness: SyncHarness;
let people: string[] = [];
let companies = 0;
/** Called at each moment. */
let atMoment: (() => Promise<void>) | undefined;

beforeAll(async () => {
  database = await testDatabase();
  await ensureMirrorTables(database.db, catalogue);
  const { steps } = database.db;
  const watched: Database = {
    ...database.db,
    steps: {
      queryRaw: async (statement) => {
        await atMoment?.();
        return steps.queryRaw(statement);
      },
    },
  };
  const token = { reveal: () => 'a' } as never;
  const tokens = { get: async () => token, renew: async () => token, refused: async () => {} };
  harness = syncHarness(watched, { url: new URL('http://127.0.0.1:9'), tokens }, endpoints, {
    respond,
    beforeRequest: () => atMoment?.(),
  });
});
afterAll(async () => {
  await harness.close();
  await database.close();
});

function respond({ path, query }: ApiRequest): string {
  if (!path.includes('/people')) return '{"name":"Of the test"}';
  const parent = /\/people\/([^/]+)\/notes$/.exec(path)?.[1];
  const all = parent
    ? Array.from({ length: NOTES }, (_, n) => ({ id: n + 1, text: `of ${parent}` }))
    : people.map((id) => ({ id, name: `name of ${id}` }));
  const data = all.slice(Number(query!['skip']), Number(query!['skip']) + size);
  return JSON.stringify({ totalRecords: all.length, totalDisplayRecords: data.length, data });
}

/** Forgets both at the given moment of a second reading, or after it. Returns how many moments the reading had. */
async function readAndForget(moment: number): Promise<number> {
  atMoment = undefined;
  const company = await harness.onboard(companyIdOf(++companies));
  people = [`anna-${companies}`, `${MIRRORED}-${companies}`];
  await harness.sync(company);
  people.push(`${NEW}-${companies}`);
  const forgotten = people.slice(1);
  const forget = async () => {
    for (const id of forgotten) {
      const list = { ...company, resource: 'people' };
      await inTransaction(database.db, (tx) => forgetRecord(tx, { catalogue, suppressions: testSuppressions }, { list, id }));
    }
  };
  let moments = 0;
  atMoment = async () => {
    moments += 1;
    if (moments > moment) expect(await notesOf(forgotten), `moment ${moments} after ${moment}`).toEqual([]);
    if (moments === moment) await forget();
  };
  const run = await harness.verify(company);
  const walk = { status: 'succeeded', verify: { missing: 0, extra: 0, different: 0 } };
  expect(run, `moment ${moment}`).toMatchObject({ status: 'succeeded', walks: [walk, walk] });
  if (moment > moments) await forget();
  return moments;
}

async function notesOf(ids: readonly string[]): Promise<string[]> {
  const { rows } = await database.db.pool.query<{ note: string }>(
    `SELECT concat_ws(' ', r.id, r.text) AS note FROM muster.second_reading_records r
     WHERE EXISTS (SELECT FROM unnest($1::text[]) AS asked(id) WHERE strpos(r.id, asked.id) > 0 OR strpos(r.text, asked.id) > 0)`,
    [ids],
  );
  return rows.map(({ note }) => note);
}

test('who is forgotten at any moment of a second reading is in none of its notes from then on', async () => {
  const moments = await readAndForget(Infinity);
  expect(moments).toBeGreaterThan(10);
  for (let moment = 1; moment <= moments; moment++) await readAndForget(moment);
  for (const name of [MIRRORED, NEW]) {
    const places = await occurrencesOf(database.db, `${name}-`);
    expect(places.filter((place) => !/changes\.(record_)?id$/.test(place))).toEqual([]);
  }
});
