import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { anyPort } from '../support/port.js';
import { startMuster, type TestProcess } from '../support/process.js';
import { Deployment } from './deployment.js';
import { waitFor } from './wait-for.js';

let deployment: Deployment;
let api: TestProcess;
beforeAll(async () => {
  deployment = await Deployment.open();
  api = await deployment.startApi();
});
afterAll(() => deployment.close());

test('the API is ready while every connection that it works with is taken', async () => {
  const other = new pg.Client(deployment.database.url);
  await other.connect();
  await other.query('BEGIN; LOCK TABLE muster.holds');
  // A call that has waited for ten seconds is told to try again: on a slow machine the table stays locked for longer.
  const read = async () => {
    for (;;) {
      const answer = await deployment.call('GET', '/api/holds');
      if ((answer.body as { code?: string }).code !== 'database_busy') return answer;
    }
  };
  const calls = Array.from({ length: 40 }, read);
  // By another session: what a transaction sees of the activity stays as it was at first.
  const waiting = async () => {
    const { rows } = await deployment.database.db.pool.query<{ count: number }>(
      `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return rows[0]!.count;
  };
  await waitFor(async () => (await waiting()) >= 10);
  const ready = await deployment.fetch('/readyz');
  expect([ready.status, await ready.json()]).toMatchObject([200, { ready: true }]);
  await other.query('ROLLBACK');
  await other.end();
  expect(new Set((await Promise.all(calls)).map(({ status }) => status))).toEqual(new Set([200]));
});

test('a process beside which a newer version cannot go on is not ready, ends its work in order, and does not start again', async () => {
  const worker = await deployment.startWorker();
  const up = startMuster(['up'], { ...deployment.env, PORT: String(anyPort()), DRAIN_SECONDS: '300' });
  await up.waitForOutput(/Ctrl-C stops everything/);
  expect((await deployment.fetch('/readyz')).status).toBe(200);
  await deployment.database.db.pool.query(`UPDATE muster.compatibility SET needs = '99990101000000_newer'`);
  const outdated = /belongs to a newer version of Muster \(migration 99990101000000_newer\)/;
  const ready = await deployment.fetch('/readyz');
  expect([ready.status, await ready.json()]).toMatchObject([
    503,
    { parts: { version: { ready: false, problem: expect.stringMatching(outdated) }, database: { ready: true } } },
  ]);
  expect(await worker.exit).toEqual({ code: 0, signal: null });
  expect(worker.stderr).toMatch(outdated);
  expect(await up.exit).toEqual({ code: 0, signal: null }); // it does not go on for the time of a drain
  const again = startMuster(['worker'], deployment.env);
  expect(await again.exit).toEqual({ code: 1, signal: null });
  expect(again.stderr.trim().split('\n').at(-1)).toMatch(outdated);
  api.kill('SIGTERM');
  expect(await api.exit).toEqual({ code: 0, signal: null });
});
