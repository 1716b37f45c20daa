import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { SERVER_LIMITS } from '../../../src/api/plumbing/server-limits.js';
import { textParts } from '../../../src/api/plumbing/text-portions.js';
import { stampChanges } from '../../../src/db/tables/change-batches.js';
import { onboard, verifiedWalk } from '../../mirror/mirror-fixture.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

// There is memory for one large page, of which each reader waits for the other's to be sent.

const MB = 1024 * 1024;
const LARGE = '/api/changes?limit=10000';
const HEADERS = { authorization: `Bearer ${TOKEN}` };

let admin: AdminFixture;
let runId: string;
beforeAll(async () => {
  admin = await startAdmin(undefined, { limits: { ...SERVER_LIMITS, largeResponseBytes: 24 * MB, largeResponseMs: 60_000 } });
  const company = await onboard(admin.db);
  const large = Array.from({ length: 4 }, (_, n) => `{"id":"x${n}","text":"${'a'.repeat(1.9 * MB)}"}`);
  ({ runId } = await verifiedWalk(admin.db, company, [...large, `{"id":"y","text":"${'b'.repeat(9 * MB)}"}`]));
  await stampChanges(admin.db);
});
afterAll(() => admin.stop());

/** The beginning of an answer, of which no more is read than a socket takes. */
function ask(path: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(`${admin.url}${path}`, { headers: HEADERS, agent: false }, resolve).on('error', reject);
  });
}

test('a large page waits until the one before has been sent, or its reader has gone', async () => {
  const order: string[] = [];
  const first = await ask(LARGE);
  const second = ask(LARGE).then((answer) => {
    order.push('second');
    return answer;
  });
  // What needs no such memory goes past.
  expect((await admin.call('GET', '/api/companies')).status).toBe(200);
  order.push('first gone');
  first.destroy();
  const answer = await second;
  expect([answer.statusCode, order]).toEqual([200, ['first gone', 'second']]);
  const third = ask(LARGE);
  answer.resume();
  const { statusCode } = await third;
  expect(statusCode).toBe(200);
  (await third).destroy();
});

test('memory is free again after a problem, an answer without a body, and a reader who left while waiting', async () => {
  expect((await admin.call('GET', '/api/changes?after=999')).status).toBe(410);
  expect((await admin.call('HEAD', LARGE)).status).toBe(200);
  expect((await admin.call('HEAD', `/api/runs/${runId}/diff`)).status).toBe(200);
  const first = await ask(LARGE);
  const waiting = get(`${admin.url}${LARGE}`, { headers: HEADERS, agent: false }).on('error', () => {});
  expect((await admin.call('GET', '/api/companies')).status).toBe(200);
  waiting.destroy();
  first.destroy();
  expect((await admin.call('GET', LARGE)).json.data).toHaveLength(4);
});

test('a record for which no memory is enough is given while nobody else reads', async () => {
  const { json } = await admin.call('GET', '/api/changes?after=4');
  expect(json.data[0].data.text).toHaveLength(9 * MB);
  const diff = await admin.call('GET', `/api/runs/${runId}/diff`);
  const rest = await admin.call('GET', `/api/runs/${runId}/diff?cursor=${diff.json.next_cursor}`);
  const ids = [diff, rest].flatMap(({ json: { data } }) => data.map(({ id }: { id: string }) => id));
  expect(ids).toEqual(['x0', 'x1', 'x2', 'x3', 'y']);
});

test('the text of many rows is made in portions', () => {
  const rows = Array.from({ length: 9_000 }, (_, n) => n);
  const parts = (sizeOf: (row: number) => number) => [
    ...textParts({ rows, sizeOf, present: String, before: '[', between: ',', after: ']' }),
  ];
  expect(parts(() => 1)).toHaveLength(5);
  expect(parts(() => MB / 2)).toHaveLength(4_500);
  expect(parts(() => 1).join('')).toBe(JSON.stringify(rows));
  expect([...textParts({ rows: [], sizeOf: () => 1, present: String, before: '[', after: ']' })]).toEqual(['[]']);
});
