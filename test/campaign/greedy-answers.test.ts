import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { IS_LONG } from './share.js';

// A worker and an API with 512 MB of heap each, and a service whose answers become more than they can hold. A short search has them all at once, and no
// more.

const HEAP = { NODE_OPTIONS: '--max-old-space-size=512' };
const MB = 1024 * 1024;
const list = (count: number, value: (n: number) => string) => `[${Array.from({ length: count }, (_, n) => value(n)).join(',')}]`;
const page = (records: string, total = 1) => `{"totalRecords":${total},"data":${records}}`;
const keys = (count: number) => Array.from({ length: count }, (_, n) => `"k${n}":${n}`).join(',');

/** Each with what becomes of the walk: the code of its error, or none. */
const ANSWERS: readonly (readonly [string, () => string, string | undefined])[] = [
  ['a million numbers', () => page(list(1_000_000, () => '1')), 'response_too_large'],
  ['ten million numbers', () => page(list(10_000_000, () => '1')), 'response_too_large'],
  ['a million objects', () => page(list(1_000_000, () => '{}')), 'response_too_large'],
  [
    'ninety thousand numbers',
    () =>
      page(
        list(90_000, () => '1'),
        90_000,
      ),
    undefined,
  ],
  [
    'four million numbers under a rule that hashes',
    () => page(`[{"id":1,"pay":${list(4_000_000, () => '1')}}]`),
    'response_too_large',
  ],
  [
    'many small lists under a rule that hashes',
    () => page(list(3_000, (n) => `{"id":${n},"pay":${list(500, () => '1')}}`)),
    'response_too_large',
  ],
  [
    'eight million objects around the records',
    () => `{"totalRecords":1,"x":${list(8_000_000, () => '{}')},"data":[]}`,
    'response_too_large',
  ],
  ['brackets a million deep', () => page('['.repeat(1_000_000)), 'malformed_response'],
  ['a text of 40 MB', () => page(`[{"id":1,"text":"${'x'.repeat(40 * MB)}"}]`), undefined],
  ['sixty thousand keys', () => page(`[{"id":1,${keys(60_000)}}]`), undefined],
  ['numbers of many digits', () => page(`[{"id":1,"n":${list(400_000, () => '1e9999')}}]`), undefined],
  [
    'twenty records of 3 MB',
    () =>
      page(
        list(20, (n) => `{"id":${n},"text":"${'y'.repeat(3 * MB)}"}`),
        20,
      ),
    undefined,
  ],
];
const ORDINARY = '{"totalRecords":2,"data":[{"id":1,"name":"a"},{"id":2,"name":"b"}]}';

let service: Server;
let deployment: Deployment;
let api: TestProcess;
let worker: TestProcess;
/** By company. */
const bodies = new Map<string, Buffer>();

beforeAll(async () => {
  service = createServer((request, response) => {
    const [, , , company = '', resource] = request.url!.split(/[/?]/);
    const body = resource === 'employees' ? (bodies.get(company) ?? gzipSync(ORDINARY)) : gzipSync('{}');
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(body);
  });
  await new Promise<void>((resolve) => void service.listen(0, '127.0.0.1', resolve));
  deployment = await Deployment.open({
    sandbox: { companies: [...ANSWERS, ...ANSWERS].map((_, n) => ({ name: `C${n}`, employees: 1 })) },
    catalogue: {
      employees: {
        method: 'GET',
        path: '/api/companies/{company_id}/employees',
        pager: { style: 'skip-take', in: 'query', size: 20 },
        privacy: { pay: 'hash' },
      },
    },
    env: { MUSTER_PRIVACY_KEY: createHash('sha256').update('key').digest('base64') },
  });
  deployment.env['TEST_BASE_URL'] = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;
  Object.assign(deployment.env, HEAP);
  [api, worker] = [await deployment.startApi(), await deployment.startWorker()];
  for (const [n, [, body]] of ANSWERS.entries()) bodies.set(greedy(n), gzipSync(body(), { level: 1 }));
});
afterAll(async () => {
  await deployment.close();
  await new Promise((resolve) => service.close(resolve));
});

const greedy = (n: number) => deployment.sandbox.companies[n]!.companyId;
/** The end of a run. An answer that is no JSON is asked for again: such a run waits, and is given up here. */
const greedyEnd = (n: number) =>
  ANSWERS[n]![2] === 'malformed_response' ? deployment.runGivenUp(greedy(n)) : deployment.runEnd(greedy(n));
const ordinary = (n: number) => deployment.sandbox.companies[ANSWERS.length + n]!.companyId;

test('all of them at once: each ends its own walk, other companies are synced beside them, and no process has died', async () => {
  for (const n of ANSWERS.keys()) for (const company of [greedy(n), ordinary(n)]) await deployment.onboard(company);
  for (const [n, [what, , code]] of ANSWERS.entries()) expect(await endsOf(n), what).toEqual([code, 'succeeded', true]);
  expect([api.stderr, worker.stderr].join('')).not.toMatch(/heap out of memory/);
  const { rows } = await deployment.database.db.pool.query('SELECT count(*)::int AS count FROM muster.rejected_records');
  expect((rows[0] as { count: number }).count).toBeLessThanOrEqual(ANSWERS.length * 1_000);
});

/** The code of the walk's error; then of the company beside it the run's status, and whether its walk is verified. */
async function endsOf(n: number): Promise<unknown[]> {
  const beside = await deployment.runEnd(ordinary(n));
  const { walks } = await greedyEnd(n);
  return [walks[0]!.error?.code, beside.status, beside.walks[0]!.verified];
}

if (IS_LONG) searchLong();

/** Needs the first test, which has mirrored every company. */
function searchLong(): void {
  test('each by itself: the same', async () => {
    for (const [n, [what, , code]] of ANSWERS.entries()) {
      for (const id of [greedy(n), ordinary(n)])
        await deployment.call('POST', `/api/companies/test/${id}/sync`, { mode: 'full' });
      expect(await endsOf(n), what).toEqual([code, 'succeeded', true]);
    }
  });

  test('eight readers of the feed, of what was rejected and of the diff at once end no API', async () => {
    const { id } = await deployment.lastRun(greedy(ANSWERS.length - 1));
    const paths = ['/api/changes?limit=10000', '/api/rejected?limit=500', `/api/runs/${id}/diff?limit=500`];
    // Past the comparison with the document, which takes longer than all else.
    const read = async (path: string): Promise<string | null> => {
      const answer = await fetch(`${deployment.url}${path}`, { headers: { authorization: `Bearer ${deployment.adminToken}` } });
      await answer.arrayBuffer();
      // A reader whose turn does not come in time asks again.
      if (answer.status === 503 && answer.headers.has('retry-after')) return read(path);
      expect(answer.status).toBe(200);
      return answer.headers.get('x-next-after');
    };
    const readFrom = async (after: string, pages: number): Promise<string> => {
      const next = (await read(`/api/changes?limit=10000&after=${after}`))!;
      return pages === 1 ? next : readFrom(next, pages - 1);
    };
    await Promise.all(Array.from({ length: 8 }, (_, n) => read(paths[n % 3]!)));
    const ends = await Promise.all(Array.from({ length: 8 }, () => readFrom('0', 5)));
    expect(new Set(ends).size).toBe(1);
    expect(api.stderr).not.toMatch(/heap out of memory/);
  });

  test('a second reading of each ends, too', async () => {
    for (const [n] of ANSWERS.entries()) await deployment.call('POST', `/api/companies/test/${greedy(n)}/verify`, {});
    for (const [n, [what, , code]] of ANSWERS.entries()) {
      const { walks } = await greedyEnd(n);
      if (code === undefined) expect([what, walks[0]!.verify]).toEqual([what, expect.objectContaining({ missing: 0, extra: 0 })]);
      else expect([what, walks[0]!.status]).toEqual([what, 'failed']);
    }
    expect(worker.stderr).not.toMatch(/heap out of memory/);
  });
}
