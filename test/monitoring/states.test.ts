import { afterAll, beforeAll, expect, test } from 'vitest';
import { Deployment } from '../process/deployment.js';
import { PostgresServer } from '../support/postgres-server.js';
import type { TestProcess } from '../support/process.js';
import { RedisServer } from '../support/redis-server.js';
import { waitFor } from '../support/wait-for.js';
import { evaluateAlerts, promtool, type Series } from './promtool.js';
import { MINUTES, seriesOf, unreachable } from './scrape.js';

// A real API, and at first a real worker, are brought into each state that an alert is for, and scraped. The rules are evaluated over hours of such
// scrapes, and exactly the alert of that state fires. States that take a worker days to come into are written into the database.

const EMPLOYEES = 40;
const SEVEN_HOURS_AGO = new Date(Date.now() - 7 * 3_600_000);

let server: PostgresServer;
let redis: RedisServer;
let deployment: Deployment;
let worker: TestProcess;
let companyId: string;
beforeAll(async () => {
  [server, redis] = await Promise.all([PostgresServer.start(), RedisServer.start()]);
  deployment = await Deployment.open({
    database: await server.database(),
    redisUrl: redis.url,
    sandbox: { companies: [{ name: 'Brattskjær AS', employees: EMPLOYEES }] },
    env: { SYNC_CRON: `${SEVEN_HOURS_AGO.getUTCMinutes()} ${SEVEN_HOURS_AGO.getUTCHours()} * * *` },
  });
  await deployment.startApi();
  worker = await deployment.startWorker();
  companyId = deployment.sandbox.companies[0]!.companyId;
  await deployment.onboard(companyId);
  await deployment.runEnd(companyId);
  // Its lists were due in the newest night, which has proved them.
  await sql(`UPDATE muster.connections SET created_at = now() - interval '3 days'`);
});
afterAll(async () => {
  await deployment.close();
  await Promise.all([server.remove(), redis.stop()]);
});

const sql = (text: string) => deployment.database.db.pool.query(text);
/** A scrape that shows what the pattern says, however long its answer was kept. */
const scrape = (shows: RegExp) =>
  waitFor(
    async () => {
      const text = await deployment.raw('/metrics');
      return shows.test(text) ? text : undefined;
    },
    { what: `the metrics to show ${String(shows)}`, intervalMs: 200 },
  );
/** Whether exactly these alerts fire after hours of such scrapes: code 0, or what promtool says. */
const judge = (name: string, series: Series, fires: readonly string[]) =>
  evaluateAlerts([{ name, series, minutes: MINUTES - 10, fires }]);
const AS_EXPECTED = { code: 0 };

const issue = (cause: string, severity = 'action') =>
  `INSERT INTO muster.issues (cause, environment, severity, companies, told) VALUES ('${cause}', 'test', '${severity}', 1, 1)`;
const END_ISSUES = 'DELETE FROM muster.issues';
const ISSUES = {
  queue_stopped: 'MusterQueueStopped',
  database_copied: 'MusterDatabaseCopied',
  webhook_failing: 'MusterWebhookFailing',
  tokens_held: 'MusterTokensHeld',
  budget_short: 'MusterNightTooLong',
  never_proved: 'MusterListsNeverProved',
  mirror_differs: 'MusterMirrorDiffers',
  export_failed: 'MusterExportFailed',
} as const;

interface State {
  readonly name: string;
  readonly begins: string;
  readonly shows: RegExp;
  readonly ends: string;
  readonly fires: readonly string[];
}

/** States of the database, which no worker changes meanwhile. */
const STATES: readonly State[] = [
  ...Object.entries(ISSUES).map(([cause, alert]) => ({
    name: cause,
    begins: issue(cause),
    shows: new RegExp(`cause="${cause}"`),
    ends: END_ISSUES,
    fires: [alert],
  })),
  {
    name: 'an issue that has no alert',
    begins: issue('schema_misfit', 'warning'),
    shows: /cause="schema_misfit"/,
    ends: END_ISSUES,
    fires: [],
  },
  {
    name: 'a list that the night has not proved',
    begins: `UPDATE muster.lists SET last_verified_at = now() - interval '20 hours' WHERE resource = 'employees'`,
    shows: /muster_night_lists\{environment="test",state="on_time"\} 1$/m,
    ends: 'UPDATE muster.lists SET last_verified_at = now()',
    fires: ['MusterNightIncomplete'],
  },
  {
    name: 'a list that is late',
    begins: `UPDATE muster.lists SET last_verified_at = now() - interval '30 hours' WHERE resource = 'employees'`,
    shows: /resource="employees",company="active",state="late"\} 1$/m,
    ends: 'UPDATE muster.lists SET last_verified_at = now()',
    fires: ['MusterListsLate', 'MusterNightIncomplete'],
  },
  {
    name: 'a list whose newest walk has failed',
    begins: `UPDATE muster.walks SET status = 'failed', error = '{"code":"service_error","message":"canary"}' WHERE resource = 'employees'`,
    shows: /resource="employees",company="active",state="failed"\} 1$/m,
    ends: `UPDATE muster.walks SET status = 'succeeded', error = NULL`,
    fires: ['MusterListsFailing'],
  },
  {
    name: 'a company that must authorize again',
    begins: `UPDATE muster.connections SET reauthorization_reason = 'token_refused'`,
    shows: /muster_companies\{status="reauthorization_required"\} 1$/m,
    ends: 'UPDATE muster.connections SET reauthorization_reason = NULL',
    fires: ['MusterReauthorizationRequired'],
  },
  {
    name: 'a deletion that waits',
    begins: `INSERT INTO muster.holds (environment, company_id, resource, run_id, walk_id, count, living, opened_at)
      SELECT environment, company_id, resource, run_id, id, 30, 40, now() - interval '4 days' FROM muster.walks WHERE resource = 'employees' LIMIT 1`,
    shows: /muster_holds_open 1$/m,
    ends: 'DELETE FROM muster.holds',
    fires: ['MusterHoldsWait'],
  },
  {
    name: 'a token that expired',
    begins: `UPDATE muster.tokens SET expires_at = now() - interval '1 hour', refresh_at = now() - interval '2 hours'`,
    shows: /muster_tokens_overdue 1$/m,
    ends: `UPDATE muster.tokens SET expires_at = now() + interval '2 hours', refresh_at = now() + interval '1 hour'`,
    fires: ['MusterTokensOverdue'],
  },
  {
    name: 'a run that no worker takes',
    begins: `INSERT INTO muster.runs (environment, company_id, trigger, mode, start_after)
      SELECT environment, company_id, 'manual', 'full', now() - interval '1 hour' FROM muster.connections`,
    shows: /muster_run_longest_wait_seconds 36/,
    ends: `DELETE FROM muster.runs WHERE status = 'queued'`,
    fires: ['MusterRunsNotStarted'],
  },
  {
    name: 'a sweep that does not end',
    begins: `UPDATE muster.sweeps SET finished_at = now() - interval '20 minutes' WHERE name = 'due-tokens'`,
    shows: /muster_sweep_age_seconds\{sweep="due-tokens"\} 12/,
    ends: `UPDATE muster.sweeps SET finished_at = now() + interval '1 hour'`,
    fires: ['MusterSweepLate'],
  },
  {
    name: 'a worker that is held up',
    begins: 'UPDATE muster.workers SET event_loop_delay = 7',
    shows: /muster_worker_event_loop_delay_seconds 7$/m,
    ends: 'UPDATE muster.workers SET event_loop_delay = 0',
    fires: ['MusterWorkerBlocked'],
  },
  {
    name: 'a process that is older than the database',
    begins: `UPDATE muster.compatibility SET needs = '29990101000000_of_a_later_version'`,
    shows: /muster_ready\{part="version"\} 0$/m,
    ends: `UPDATE muster.compatibility SET needs = (SELECT min(migration_name) FROM public._prisma_migrations)`,
    fires: ['MusterProcessOutdated'],
  },
];

test('processes that are well', async () => {
  const text = await scrape(new RegExp(`muster_records_received_total\\{[^}]*"employees"[^}]*\\} ${EMPLOYEES}$`, 'm'));
  expect(await promtool(['check', 'metrics'], ourMetrics(text))).toMatchObject({ code: 0, output: '' });
  expect(await judge('well', seriesOf(text), [])).toMatchObject(AS_EXPECTED);
});

test.each([
  [503, '5xx', 'MusterServiceFailing'],
  [429, '429', 'MusterServiceThrottles'],
])('a service that answers %d', async (status, outcome, alert) => {
  const requests = (text: string, outcomes: string) =>
    [...text.matchAll(new RegExp(`^muster_service_requests_total\\{[^}]*outcome="${outcomes}"[^}]*\\} (\\d+)$`, 'gm'))]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0);
  const before = await scrape(/muster_workers 1$/m);
  deployment.sandbox.faults.add(
    { kind: 'status', status, headers: { 'retry-after': '1' } },
    { path: /employees/, times: Infinity },
  );
  await deployment.call('POST', `/api/companies/test/${companyId}/sync`, { mode: 'full' });
  // Counts are written every few seconds, so that some of the run before may come with those of this one.
  const after = await waitFor(
    async () => {
      const text = await deployment.raw('/metrics');
      const rise = (outcomes: string) => requests(text, outcomes) - requests(before, outcomes);
      return rise(outcome) > rise('[^"]*') / 3 ? text : undefined;
    },
    { what: `a third of the requests to end with ${outcome}`, intervalMs: 200 },
  );
  deployment.sandbox.faults.clear();
  await deployment.runRetried(companyId);
  expect(await judge(String(status), seriesOf(before, after), [alert])).toMatchObject(AS_EXPECTED);
});

test('no worker', async () => {
  worker.kill('SIGKILL');
  await worker.exit;
  await deployment.ageHeartbeats();
  const text = await scrape(/muster_workers 0$/m);
  expect(await judge('no worker', seriesOf(text), ['MusterNoWorker'])).toMatchObject(AS_EXPECTED);
  // One that lives for the rest of this file, and does nothing.
  await sql(`INSERT INTO muster.workers (name, seen_at) VALUES ('still', now() + interval '1 day')`);
  await sql(`UPDATE muster.sweeps SET finished_at = now() + interval '1 hour'`);
  await sql(END_ISSUES);
});

test.each(STATES)('$name', async ({ name, begins, shows, ends, fires }) => {
  await sql(begins);
  const text = await scrape(shows);
  await sql(ends);
  expect(await judge(name, seriesOf(text), fires)).toMatchObject(AS_EXPECTED);
});

test('no queue, then a database that hangs, then none, then no API', async () => {
  await redis.stop();
  const withoutQueue = await scrape(/muster_ready\{part="queue"\} 0$/m);
  expect(await judge('no queue', seriesOf(withoutQueue), ['MusterQueueUnavailable'])).toMatchObject(AS_EXPECTED);
  await redis.start();
  await scrape(/muster_ready\{part="queue"\} 1$/m);
  server.freeze(true);
  const frozen = await scrape(/muster_ready\{part="database"\} 0$/m);
  server.freeze(false);
  expect(await judge('a database that hangs', seriesOf(frozen), ['MusterDatabaseUnavailable'])).toMatchObject(AS_EXPECTED);
  await scrape(/muster_ready\{part="database"\} 1$/m);
  await server.stop('immediate');
  const withoutDatabase = await scrape(/muster_ready\{part="database"\} 0$/m);
  expect(await judge('no database', seriesOf(withoutDatabase), ['MusterDatabaseUnavailable'])).toMatchObject(AS_EXPECTED);
  expect(await judge('no API', unreachable(), ['MusterApiDown'])).toMatchObject(AS_EXPECTED);
  await server.start();
});

/** Without the metrics of the process itself, whose names are prom-client's. */
function ourMetrics(text: string): string {
  const lines = text.split('\n').filter((line) => /^(?:# (?:HELP|TYPE) )?muster_/.test(line));
  return `${lines.join('\n')}\n`;
}
