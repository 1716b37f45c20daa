import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { addSweeps, recordSweep } from '../../src/db/tables/sweeps.js';
import { recordedSweeps } from '../../src/jobs/recorded-sweeps.js';
import { Heartbeat } from '../../src/notifications/heartbeat.js';
import { createLogger } from '../../src/observability/logger.js';
import { type TestDatabase, testDatabase } from '../support/database.js';
import { waitFor } from '../support/wait-for.js';

const SWEEPS = [
  { name: 'quick', everyMs: 1_000 },
  { name: 'rare', everyMs: 3_600_000 },
];

let database: TestDatabase;
let monitor: Server;
let asked: string[];
let status: number;
let log: string;
let started: Heartbeat[];

beforeAll(async () => {
  database = await testDatabase();
  monitor = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.writeHead(status, { location: '/elsewhere' }).end();
  });
  await new Promise<void>((resolve) => void monitor.listen(0, '127.0.0.1', resolve));
});
beforeEach(async () => {
  [asked, status, log, started] = [[], 200, '', []];
  await sql('TRUNCATE muster.sweeps');
  await lastSent(3_600);
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});
afterEach(async () => {
  for (const heartbeat of started) await heartbeat.stop();
  vi.useRealTimers();
});
afterAll(async () => {
  await new Promise((resolve) => monitor.close(resolve));
  await database.close();
});

const sql = (text: string, ...values: unknown[]) => database.db.pool.query(text, values);
const lastSent = (secondsAgo: number) =>
  sql(`UPDATE muster.locks SET taken_at = now() - make_interval(secs => $1) WHERE name = 'heartbeat'`, secondsAgo);
const lastEnded = (name: string, secondsAgo: number) =>
  sql('UPDATE muster.sweeps SET finished_at = now() - make_interval(secs => $2) WHERE name = $1', name, secondsAgo);

async function sentSecondsAgo(): Promise<number> {
  const { rows } = await sql(
    `SELECT extract(epoch FROM now() - taken_at)::float8 AS age FROM muster.locks WHERE name = 'heartbeat'`,
  );
  return (rows[0] as { age: number }).age;
}

/** A worker that sends heartbeats; `look` has every one of them look whether it is time. */
async function start(): Promise<void> {
  const { port } = monitor.address() as AddressInfo;
  const heartbeat = new Heartbeat({
    db: database.db,
    url: new URL(`http://127.0.0.1:${port}/ping/canary-of-the-monitor`),
    sweeps: SWEEPS,
    logger: createLogger({ level: 'trace', destination: { write: (line) => void (log += line) } }),
  });
  started.push(heartbeat);
  await addSweeps(
    database.db,
    SWEEPS.map(({ name }) => name),
  );
  await heartbeat.start();
}
const look = () => vi.advanceTimersByTime(5_000);
const wasAsked = (times: number) => waitFor(() => asked.length === times);

test('is sent once the first worker lives, then once a minute, however many workers there are', async () => {
  for (let n = 0; n < 3; n += 1) await start();
  look();
  await wasAsked(1);
  await lastSent(50);
  look();
  for (const heartbeat of started) await heartbeat.stop();
  expect(await sentSecondsAgo()).toBeGreaterThanOrEqual(50);
  await lastSent(60);
  await start();
  look();
  await wasAsked(2);
  expect(asked).toEqual(Array.from({ length: 2 }, () => 'GET /ping/canary-of-the-monitor'));
});

test('is not sent while a sweep is late, and is sent again once it has ended', async () => {
  await start();
  await lastEnded('quick', 124);
  await lastEnded('rare', 3 * 3_600);
  look();
  await started[0]!.stop();
  expect(await sentSecondsAgo()).toBeGreaterThanOrEqual(3_600);
  await recordSweep(database.db, { name: 'quick' });
  await start();
  look();
  expect(await wasAsked(1)).toBe(true);
});

test('a sweep that this installation does no longer is not waited for', async () => {
  await start();
  await sql(`INSERT INTO muster.sweeps (name, finished_at) VALUES ('gone', now() - interval '9 days')`);
  look();
  expect(await wasAsked(1)).toBe(true);
});

test('a clock that was set back delays none', async () => {
  await lastSent(-3_600);
  await start();
  look();
  expect(await wasAsked(1)).toBe(true);
});

test('a refusal is logged without the address, and no redirect is followed', async () => {
  status = 302;
  await start();
  look();
  await waitFor(() => log.includes('refused'));
  expect(asked).toHaveLength(1);
  expect(log).not.toMatch(/canary-of-the-monitor/);
});

test('sweeps write down when they have ended, not too often, and not where they fail', async () => {
  let now = 0;
  let fails = false;
  const run = async () => {
    if (fails) throw new Error('no database');
  };
  const [sweep] = await recordedSweeps(database.db, { monotonic: () => now }, [{ ...SWEEPS[0]!, run }]);
  const age = async () => {
    const { rows } = await sql(
      `SELECT extract(epoch FROM now() - finished_at)::float8 AS age FROM muster.sweeps WHERE name = 'quick'`,
    );
    return (rows[0] as { age: number }).age;
  };
  expect(await age(), 'a sweep that has not ended yet').toBeGreaterThanOrEqual(0);
  await sweep!.run();
  await lastEnded('quick', 500);
  now = 29_999;
  await sweep!.run();
  expect(await age()).toBeGreaterThanOrEqual(500);
  now = 30_000;
  fails = true;
  await expect(sweep!.run()).rejects.toThrow('no database');
  expect(await age()).toBeGreaterThanOrEqual(500);
  fails = false;
  await sweep!.run();
  expect(await age()).toBeLessThan(500);
});
