import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyKey } from '../../src/core/company.js';
import { Secret } from '../../src/core/secret.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

// The queue is in Redis if the machine has one: a monitor shows every payload that is ever written, even those of jobs that are removed once they are done.

const CLIENT_SECRET = 'canary-client-secret-6f1d';
const SIGNING_KEY = Buffer.from('canary-signing-key-of-32-bytes-a').toString('base64');
const REFUSED_TOKEN = 'canary-refresh-token-that-is-refused-91c2';

let deployment: Deployment;
let processes: TestProcess[];
const redisCommands: string[] = [];
let monitor: Redis | undefined;

beforeAll(async () => {
  deployment = await Deployment.open({
    redisUrl: redisUrl(),
    sandbox: {
      clientSecret: new Secret(CLIENT_SECRET),
      accessTokenSeconds: 4,
      companies: [
        { name: 'First', employees: 40 },
        { name: 'Second', employees: 40 },
      ],
    },
    env: { LOG_LEVEL: 'trace', REFRESH_MARGIN_SECONDS: '2', MUSTER_SIGNING_KEY: SIGNING_KEY },
  });
  if (redisUrl()) {
    monitor = await new Redis(redisUrl()!).monitor();
    monitor.on('monitor', (_time: string, args: string[]) => redisCommands.push(args.join(' ')));
  }
  processes = [await deployment.startApi(), await deployment.startWorker()];
});

afterAll(async () => {
  monitor?.disconnect();
  await deployment.close();
});

test('no secret stands in a table, a log line, an answer, a process argument or the queue', async () => {
  const { sandbox, database } = deployment;
  const [first, second] = sandbox.companies.map(({ companyId }): CompanyKey => ({ environment: 'test', companyId }));
  const secrets = new Set([
    CLIENT_SECRET,
    SIGNING_KEY,
    REFUSED_TOKEN,
    deployment.adminToken,
    deployment.env['MUSTER_ENCRYPTION_KEYS']!.split(':')[1]!,
  ]);
  const answers: unknown[] = [];
  const tell = async (company: CompanyKey, token: string) => {
    secrets.add(token);
    const { status, body } = await deployment.call('POST', '/api/companies', {
      environment: 'test',
      company_id: company.companyId,
      refresh_token: token,
    });
    answers.push(body);
    return status;
  };
  expect(await tell(first!, REFUSED_TOKEN)).toBe(422);
  expect(await tell(first!, sandbox.issueRefreshToken(second!.companyId).reveal())).toBe(422);
  expect(await tell(first!, sandbox.issueRefreshToken(first!.companyId).reveal())).toBe(201);
  expect(await tell(second!, sandbox.issueRefreshToken(second!.companyId).reveal())).toBe(201);
  expect(await tell(second!, sandbox.issueRefreshToken(second!.companyId).reveal())).toBe(409);
  await deployment.storedTokens().then((tokens) => tokens.forEach((token) => secrets.add(token)));
  for (const company of [first!, second!]) await deployment.runEnd(company.companyId);
  // Faults make messages: a broken answer of the token endpoint, and a revoked company.
  sandbox.faults.add({ kind: 'truncate' }, { path: '/auth/token', times: 1 });
  sandbox.revoke(second!.companyId);
  answers.push((await deployment.call('POST', `/api/companies/test/${second!.companyId}/sync`)).body);
  answers.push((await deployment.call('POST', `/api/companies/test/${first!.companyId}/sync`, { mode: 'full' })).body);
  for (const company of [first!, second!]) answers.push(await deployment.runEnd(company.companyId));
  // The job of a run names no company. That of a refresh ahead of expiry does, and these runs may end before one is due.
  const isRefreshed = () => redisCommands.some((command) => command.includes(first!.companyId));
  if (monitor) await waitFor(isRefreshed, { what: 'a refresh of the first company in the queue' });
  await deployment.storedTokens().then((tokens) => tokens.forEach((token) => secrets.add(token)));
  for (const path of ['/api/companies', '/api/runs', '/metrics', '/readyz']) answers.push(await deployment.raw(path));

  const places: Record<string, string> = {
    answers: JSON.stringify(answers),
    tables: await dump(),
    'Redis commands': redisCommands.join('\n'),
  };
  for (const [n, running] of processes.entries()) {
    places[`arguments of process ${n}`] = await readCommandLine(running.pid);
    running.kill('SIGTERM');
    expect(await running.exit).toEqual({ code: 0, signal: null });
    places[`log of process ${n}`] = running.stdout + running.stderr;
  }
  expect(secrets.size).toBeGreaterThanOrEqual(11);
  expect(places['tables']).toContain(first!.companyId);
  expect(places['log of process 1']).toContain(first!.companyId);
  for (const [place, text] of Object.entries(places)) {
    for (const secret of secrets) {
      // Not `expect(text).not.toContain`: its message would print megabytes.
      expect(text.includes(secret) ? `${place} shows ${secret}` : undefined).toBeUndefined();
    }
  }

  /** Every row of every table, as text. */
  async function dump(): Promise<string> {
    const { rows: tables } = await database.db.pool.query<{ name: string }>(
      `SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables
       WHERE table_schema IN ('mirror', 'muster', 'bullmq', 'public')`,
    );
    const texts: string[] = [];
    for (const { name } of tables) {
      const { rows } = await database.db.pool.query<{ row: string }>(`SELECT t::text AS row FROM ${name} t`);
      texts.push(...rows.map(({ row }) => row));
    }
    return texts.join('\n');
  }
});

async function readCommandLine(pid: number): Promise<string> {
  return (await promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)])).stdout;
}
