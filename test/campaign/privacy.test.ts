import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PAGES } from '../../src/dashboard/page-routes.js';
import { Deployment } from '../process/deployment.js';
import { waitFor } from '../process/wait-for.js';
import { PostgresServer } from '../support/postgres-server.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { dump, KEY } from '../walks/privacy-list.js';
import { type Duck, openDuck } from '../warehouse/duck.js';

// Members of people that rules forbid are looked for wherever anything is written, before and after the rules were changed in the middle of a walk, with
// workers killed in the walk and in the rewrite.

const RECORDS = 120;
const RULES = { nationalId: 'drop', email: 'hash' };
const STRICTER = { ...RULES, 'home.street': 'mask' };
const ALWAYS = ['KANARI-one', 'employee.100'];
const LATER = ['KANARI-two'];
const catalogueWith = (privacy: object) => ({
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: 10 },
    privacy,
  },
});

const LISTS = [
  '/api/changes?limit=1000',
  '/api/rejected',
  '/api/companies',
  '/api/runs',
  '/api/issues',
  '/api/holds',
  '/api/audit',
  '/api/certificates',
  '/api/schema',
  '/api/overview',
  '/metrics',
];

let duck: Duck;
let postgres: PostgresServer;
let deployment: Deployment;
let monitor: Redis | undefined;
const redisCommands: string[] = [];
const processes: TestProcess[] = [];

beforeAll(async () => {
  duck = await openDuck();
  postgres = await PostgresServer.start();
  await ask('ALTER SYSTEM SET wal_level = logical');
  await postgres.stop('fast');
  await postgres.start();
  deployment = await Deployment.open({
    database: await postgres.database(),
    redisUrl: redisUrl(),
    catalogue: catalogueWith(RULES),
    sandbox: { companies: ['Walked', 'Paused'].map((name) => ({ name, employees: RECORDS })), etags: true },
    env: { LOG_LEVEL: 'trace', MUSTER_PRIVACY_KEY: KEY.toString('base64') },
  });
  for (const { companyId } of deployment.sandbox.companies) {
    const list = deployment.sandbox.list(companyId, 'employees');
    for (let n = 0; n < RECORDS; n += 1) {
      const added = `{"nationalId":"KANARI-one-${n}","home":[{"street":"KANARI-two-${n}"}],`;
      list.change(n, list.texts()[n]!.replace('{', added));
    }
    list.insert(5, '{"home":{"street":"KANARI-two of nobody"},"nationalId":"KANARI-one of nobody"}');
  }
  if (redisUrl()) {
    monitor = await new Redis(redisUrl()!).monitor();
    monitor.on('monitor', (_time: string, args: string[]) => redisCommands.push(args.join(' ')));
  }
});

afterAll(async () => {
  monitor?.disconnect();
  for (const { kill } of processes) kill('SIGKILL');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment.close();
  await postgres.remove();
  duck.close();
});

async function ask<Row extends pg.QueryResultRow>(statement: string): Promise<Row[]> {
  const client = new pg.Client(postgres.url);
  await client.connect();
  return (await client.query<Row>(statement).finally(() => client.end())).rows;
}

async function startWorker(): Promise<TestProcess> {
  const worker = await deployment.startWorker();
  processes.push(worker);
  return worker;
}

/** As text, in hexadecimal digits, and in base64 wherever it may begin. */
function spellings(canary: string): string[] {
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.from('\0'.repeat(shift) + canary)
      .toString('base64')
      .replaceAll('=', '');
    return text.slice(shift === 0 ? 0 : shift + 1, -2);
  });
  return [canary, Buffer.from(canary).toString('hex'), ...base64];
}

function expectNone(canaries: readonly string[], texts: Readonly<Record<string, string>>): void {
  for (const [place, text] of Object.entries(texts)) {
    expect(text.length, place).toBeGreaterThan(0);
    // Not `expect(text).not.toContain`: its message would print megabytes.
    const shown = canaries.flatMap(spellings).filter((each) => text.includes(each));
    expect(shown.map((each) => `${place} shows ${each}`)).toEqual([]);
  }
}

async function walWritten(slot: string): Promise<string> {
  const rows = await ask<{ data: string }>(`SELECT data FROM pg_logical_slot_peek_changes('${slot}', NULL, NULL)`);
  return rows.map(({ data }) => data).join('\n');
}

/** The control room, all of its pages, as an admin sees them. */
async function everyPage(): Promise<Record<string, string>> {
  const signedIn = await deployment.fetch('/login', {
    method: 'POST',
    body: new URLSearchParams({ token: deployment.adminToken }),
    redirect: 'manual',
    headers: { 'sec-fetch-site': 'same-origin' },
  });
  const headers = { cookie: signedIn.headers.get('set-cookie')!.split(';')[0]! };
  const found: Record<string, string> = {};
  for (const { companyId } of deployment.sandbox.companies) {
    const { id } = await deployment.lastRun(companyId);
    const [record] = await ask<{ id: string }>(
      `SELECT id FROM mirror.employees WHERE company_id = '${companyId}' ORDER BY id LIMIT 1`,
    );
    const filled = (page: string) =>
      page
        .replace(':environment', 'test')
        .replace(':company_id', companyId)
        .replace(':resource', 'employees')
        .replace('*', encodeURIComponent(record!.id))
        .replace(/^\/records$/, `/records?company=${companyId}&q=KANARI`)
        .replace(':id', id)
        .replace(/diff$/, 'diff?resource=employees');
    for (const path of new Set([...Object.keys(PAGES), '/settings'].map(filled))) {
      const answer = await deployment.fetch(path, { headers, redirect: 'manual' });
      // The first run of a list has no diff, and the id of a run names no hold, issue or certificate.
      expect([200, 404, 422], path).toContain(answer.status);
      found[path] = await answer.text();
    }
  }
  return found;
}

/** Whatever may show a record, as it is now. */
async function everyPlace(): Promise<Record<string, string>> {
  const found: Record<string, string> = { tables: await dump(deployment.database.db) };
  for (const path of LISTS) found[path] = await deployment.raw(path);
  Object.assign(found, await everyPage());
  for (const [name, ...options] of [
    ['typed.csv', '--format', 'csv'],
    ['raw.ndjson', '--format', 'ndjson', '--raw'],
    ['since.ndjson', '--format', 'ndjson', '--since', '0'],
    ['typed.parquet', '--format', 'parquet'],
    ['raw.parquet', '--format', 'parquet', '--raw'],
  ] as const) {
    const file = join(deployment.home, name);
    const output = startMuster(['export', 'employees', ...options, '--output', file], deployment.env);
    expect((await output.exit).code, output.stderr).toBe(0);
    // What stands in a Parquet file is compressed.
    const read = name.endsWith('.parquet')
      ? JSON.stringify(await duck.rows(`SELECT * FROM '${file}'`)) + readFileSync(`${file}.manifest.json`, 'utf8')
      : '';
    found[name] = readFileSync(file, 'utf8') + read + output.stdout + output.stderr;
  }
  for (const [n, { stdout, stderr }] of processes.entries()) found[`log of process ${n}`] = stdout + stderr;
  if (monitor) found['Redis'] = redisCommands.join('\n');
  return found;
}

const issuesOf = async (status: string) => {
  const { body } = await deployment.call('GET', `/api/issues?status=${status}`);
  return (body as { data: { cause: string }[] }).data.filter(({ cause }) => cause === 'privacy_rewrite_pending').length;
};

test('what rules forbid is nowhere, and nowhere any more once they forbid it', async () => {
  const [walked, paused] = deployment.sandbox.companies.map(({ companyId }) => companyId) as [string, string];
  await ask(`SELECT pg_create_logical_replication_slot('before', 'test_decoding')`);
  processes.push(await deployment.startApi());
  const first = await startWorker();
  for (const company of [walked, paused]) await deployment.onboard(company);
  for (const company of [walked, paused]) expect(await deployment.runEnd(company)).toMatchObject({ status: 'succeeded' });
  const before = await everyPlace();
  expectNone(ALWAYS, { ...before, wal: await walWritten('before') });
  // Or nothing would be proved below.
  for (const place of ['tables', 'typed.csv', 'raw.ndjson', 'typed.parquet', 'raw.parquet'])
    expect(before[place], place).toContain('KANARI-two-7');
  expect(await deployment.call('POST', `/api/companies/test/${paused}/pause`)).toMatchObject({ status: 200 });

  // Killed in the middle of a walk.
  deployment.sandbox.list(walked, 'employees').remove(5);
  deployment.sandbox.faults.add({ kind: 'hang', when: 'before' }, { path: '/employees', skip: 8, times: Infinity });
  await deployment.call('POST', `/api/companies/test/${walked}/sync`, { mode: 'full' });
  await waitFor(async () => ((await deployment.lastRun(walked)).walks[0]?.pages ?? 0) >= 3);
  first.kill('SIGKILL');
  await first.exit;
  deployment.sandbox.faults.clear();

  // The rules are changed, and the rewrite is killed half-way: in the transaction that has not begun with the rows, but fetches the batches of the feed.
  writeFileSync(deployment.env['MUSTER_CATALOGUE']!, JSON.stringify(catalogueWith(STRICTER)));
  await ask(`SELECT pg_create_logical_replication_slot('after', 'test_decoding')`);
  const client = new pg.Client(postgres.url);
  await client.connect();
  await client.query('BEGIN; SELECT 1 FROM muster.change_batches FOR UPDATE');
  const second = await startWorker();
  const { rows: own } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
  const waiting = `SELECT 1 FROM pg_stat_activity WHERE ${own[0]!.pid} = ANY(pg_blocking_pids(pid)) AND query LIKE 'FETCH%'`;
  await waitFor(async () => (await ask(waiting)).length > 0);
  // The next worker may be done before anybody looks for issues.
  await waitFor(async () => (await issuesOf('ongoing')) === 1);
  second.kill('SIGKILL');
  await second.exit;
  await client.query('ROLLBACK');
  await client.end();
  await waitFor(async () => (await ask(`SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'`)).length === 0);
  expect(await dump(deployment.database.db)).toContain('KANARI-two-7');

  await startWorker();
  await waitFor(async () => (await issuesOf('ongoing')) === 0 && (await issuesOf('resolved')) === 1); // the sweep for issues rests for twenty times as long as it takes
  expect(await deployment.runEnd(walked)).toMatchObject({ status: 'succeeded', walks: [{ verified: true }] });
  const after = await everyPlace();
  expectNone([...ALWAYS, ...LATER], { ...after, wal: await walWritten('after') });
  expectNone(ALWAYS, { wal: await walWritten('before') });
  // Both companies were treated, and treated once.
  const streets = await ask<{ street: string; n: number }>(
    `SELECT data->'home'->0->>'street' AS street, count(DISTINCT company_id)::int AS n FROM mirror.employees GROUP BY 1 ORDER BY 1`,
  );
  expect(streets).toEqual([12, 13, 14].map((length) => ({ street: '*'.repeat(length), n: 2 })));
});
