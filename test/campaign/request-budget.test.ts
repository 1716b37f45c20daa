import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import type { RateLimitOptions } from '../../src/sandbox/rate-limiter.js';
import type { ServedRequest } from '../../src/sandbox/request-log.js';
import { Deployment } from '../process/deployment.js';
import type { TestProcess } from '../support/process.js';
import { redisUrl } from '../support/redis.js';
import { shareOf } from './share.js';

// Two workers as processes, eight companies, and a service that counts the requests of the API: how many it refuses, and how much of what it
// takes is used. A case takes a minute or two, in which next to nothing is computed. test/http/budget/finding.test.ts has every case in virtual time.

/** The strictest first: it allows no request that comes too close behind the others. */
const LIMITERS: Record<string, Omit<RateLimitOptions, 'perSecond'>> = {
  'any second': { kind: 'log' },
  'full seconds': { kind: 'window' },
  'a bucket of 5': { kind: 'bucket', burst: 5 },
  'a bucket of a second': { kind: 'bucket' },
};
/** All of them, or those that this names, separated by commas. */
const names = process.env.CAMPAIGN_LIMITERS?.split(',') ?? Object.keys(LIMITERS);
const PAGE = 10;
const CATALOGUE = {
  employees: {
    method: 'GET',
    path: '/api/companies/{company_id}/employees',
    pager: { style: 'skip-take', in: 'query', skipName: 'skip', takeName: '$take', size: PAGE },
  },
};

let deployment: Deployment | undefined;
let processes: TestProcess[] = [];
afterEach(async () => {
  for (const running of processes) running.kill('SIGTERM');
  await Promise.all(processes.map(({ exit }) => exit));
  await deployment?.close();
  [deployment, processes] = [undefined, []];
});

/** Companies with more pages than are asked for in `seconds`, all being mirrored for the first time. */
async function begin(backend: string, limit: RateLimitOptions, seconds: number, env: Record<string, string> = {}) {
  const pages = Math.ceil((seconds * limit.perSecond * 1.5) / 8);
  const companies = Array.from({ length: 8 }, (_, n) => ({
    companyId: randomUUID(),
    name: `Company ${n}`,
    employees: pages * PAGE,
    departments: 0,
  }));
  deployment = await Deployment.open({
    redisUrl: backend === 'redis' ? redisUrl() : undefined,
    sandbox: { companies },
    catalogue: CATALOGUE,
    env,
  });
  const { sandbox } = deployment;
  sandbox.limit(limit);
  processes = await Promise.all([deployment.startApi(), deployment.startWorker(), deployment.startWorker()]);
  await Promise.all(companies.map(({ companyId }) => deployment!.onboard(companyId)));
  const from = Date.now();
  const asked = () => sandbox.requests.all('/api/companies');
  return {
    deployment,
    /** Shares of 1 of what was asked between two moments, in seconds since the beginning. */
    measure: (begins: number, ends: number, perSecond = limit.perSecond) => {
      const within = asked().filter(
        ({ at, status }) => status !== undefined && at >= from + begins * 1_000 && at < from + ends * 1_000,
      );
      const refused = within.filter(({ status }) => status === 429).length;
      return { refused: refused / within.length, used: (within.length - refused) / (perSecond * (ends - begins)), within };
    },
    until: (second: number) => sleep(Math.max(0, from + second * 1_000 - Date.now())),
  };
}

function report(what: string, ...shares: { refused: number; used: number }[]): void {
  const texts = shares.map(({ refused, used }) => `${(100 * refused).toFixed(2)} % refused, ${(100 * used).toFixed(1)} % used`);
  process.stderr.write(`${what}: ${texts.join('; ')}\n`);
}

const companiesOf = (requests: readonly ServedRequest[]) => {
  const counts = new Map<string, number>();
  for (const { companyId = '', status } of requests) if (status === 200) counts.set(companyId, (counts.get(companyId) ?? 0) + 1);
  return [...counts.values()];
};

interface Case {
  readonly backend: string;
  readonly name: string;
  readonly kind: keyof typeof KINDS;
}

const KINDS = {
  'nothing set': (tried: Case) => findsLimit(tried, false),
  'nothing set, with Retry-After': (tried: Case) => findsLimit(tried, true),
  'the limit set': keepsLimit,
  'a limit that halves and doubles': findsLimitAgain,
};
const kinds = Object.keys(KINDS) as Case['kind'][];
const backends = ['postgres', 'redis'].filter((backend) => backend === 'postgres' || redisUrl());

/**
 * Everything with everything takes most of an hour. Workers share the budget through PostgreSQL, whatever the queue is, so that a short campaign has
 * two kinds of each limiter, and each kind once on either queue.
 */
const isWhole = shareOf(200) === 200;
const whole = backends.flatMap((backend) => names.flatMap((name) => kinds.map((kind): Case => ({ backend, name, kind }))));
const short = names.flatMap((name, n) =>
  [kinds[n % 2]!, kinds[2 + (n % 2)]!].map((kind, k): Case => {
    const turn = n + Math.floor(n / 2) + k;
    return { backend: backends[turn % backends.length]!, name, kind };
  }),
);

test.each(isWhole ? whole : short)('with the queue on $backend, a service that counts by $name, $kind', async (tried) => {
  expect.hasAssertions();
  await KINDS[tried.kind](tried);
});

async function findsLimit({ backend, name }: Case, retryAfter: boolean): Promise<void> {
  const limit = { ...LIMITERS[name]!, perSecond: 20, retryAfter };
  const run = await begin(backend, limit, 75);
  await run.until(60);
  const search = run.measure(0, 60);
  const steady = run.measure(20, 60);
  report(`${backend}, ${name}, nothing set, Retry-After ${retryAfter}`, search, steady);
  expect(search.refused).toBeLessThan(0.05);
  expect(steady.refused).toBeLessThan(0.02);
  expect(steady.used).toBeGreaterThan(0.85);
  expect(Math.min(...companiesOf(steady.within))).toBeGreaterThan(0.3 * Math.max(...companiesOf(steady.within)));
  const { body } = await run.deployment.call('GET', '/api/budget');
  const [budget] = (body as { data: Record<string, number>[] }).data;
  expect(budget).toMatchObject({ environment: 'test', source: 'found' });
  expect(Math.abs(budget!.limit_per_second! - 20)).toBeLessThan(5);
  expect(Math.abs(budget!.used_last_minute! - run.measure(0, 60).within.length)).toBeLessThan(120);
}

async function keepsLimit({ backend, name }: Case): Promise<void> {
  const limit = { ...LIMITERS[name]!, perSecond: 20 };
  // One refusal with its second of waiting, which any machine may have, is two of a hundred in fifty seconds.
  const seconds = 100;
  const run = await begin(backend, limit, seconds + 5, { TEST_REQUESTS_PER_SECOND: '20' });
  await run.until(seconds);
  const set = run.measure(2, seconds);
  report(`${backend}, ${name}, set`, set);
  expect(set.refused).toBeLessThanOrEqual(0.005);
  expect(set.used).toBeGreaterThan(0.95);
}

async function findsLimitAgain({ backend, name }: Case): Promise<void> {
  const limit = { ...LIMITERS[name]!, perSecond: 20, retryAfter: false };
  const run = await begin(backend, limit, 110);
  await run.until(30);
  run.deployment.sandbox.limit({ ...limit, perSecond: 10 });
  await run.until(65);
  run.deployment.sandbox.limit(limit);
  await run.until(100);
  const [halved, doubled] = [run.measure(50, 65, 10), run.measure(85, 100)];
  report(`${backend}, ${name}, halved and doubled`, halved, doubled);
  for (const { used, refused } of [halved, doubled]) {
    expect(used).toBeGreaterThan(0.85);
    expect(refused).toBeLessThan(0.03);
  }
}
