import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { type AlertCase, evaluateAlerts, promtool, RULES, type Series } from './promtool.js';

// Each alert over series that are written by hand: it fires on one side of its threshold and not on the other, and not before its time.

const UP: Series = { 'up{job="muster",instance="one:8080"}': '1x180' };
const WORKS: Series = { ...UP, 'muster_workers{job="muster"}': '2x180' };
const issue = (cause: string, count: number): Series => ({
  ...UP,
  [`muster_issues{severity="action",cause="${cause}",environment="test"}`]: `${count}x180`,
});
const ready = (part: string, value: number, database = 1): Series => ({
  ...UP,
  'muster_ready{part="database"}': `${database}x180`,
  ...(part !== 'database' && { [`muster_ready{part="${part}"}`]: `${value}x180` }),
});
/** A part that is missing for the second of two processes. */
const oneOfTwo = (part: string): Series => ({
  [`muster_ready{instance="one:8080",part="${part}"}`]: '1x180',
  [`muster_ready{instance="two:8080",part="${part}"}`]: '0x180',
});
const sample = (name: string, value: number, rest: Series = UP): Series => ({ ...rest, [name]: `${value}x180` });
const lists = (company: string, state: string, count: number): Series =>
  sample(`muster_lists_by_state{environment="test",resource="employees",company="${company}",state="${state}"}`, count);
const night = (state: string, isUnderWay: boolean): Series => ({
  ...UP,
  [`muster_night_lists{environment="test",state="${state}"}`]: '3x180',
  'muster_night_lists{environment="test",state="proved"}': '40x180',
  'muster_night_under_way{environment="test"}': `${isUnderWay ? 1 : 0}x180`,
  'muster_night_under_way{environment="production"}': `${isUnderWay ? 0 : 1}x180`,
});
const requests = (outcome: string, bad: number): Series => ({
  ...UP,
  'muster_service_requests_total{environment="test",outcome="2xx"}': '0+100x180',
  [`muster_service_requests_total{environment="test",outcome="${outcome}"}`]: `0+${bad}x180`,
});
const due = (running: number, workers = 1): Series => ({
  ...UP,
  muster_run_longest_wait_seconds: '1200x180',
  'muster_runs{status="running"}': `${running}x180`,
  muster_workers: `${workers}x180`,
});

/** By alert: series with which it fires, and some with which it does not. */
const CASES: Readonly<Record<string, { readonly fires: Series; readonly quiet: readonly Series[] }>> = {
  MusterApiDown: {
    fires: { 'up{job="muster",instance="one:8080"}': '0x180', 'up{job="muster",instance="two:8080"}': '0x180' },
    quiet: [{ ...UP, 'up{job="muster",instance="two:8080"}': '0x180' }],
  },
  MusterDatabaseUnavailable: { fires: ready('database', 0, 0), quiet: [ready('database', 1)] },
  MusterQueueUnavailable: { fires: ready('queue', 0), quiet: [ready('queue', 1)] },
  MusterProcessOutdated: {
    fires: { ...ready('version', 1), ...oneOfTwo('version') },
    quiet: [
      ready('version', 1),
      ready('migrations', 1),
      { ...ready('version', 1), ...oneOfTwo('version'), ...oneOfTwo('database') },
    ],
  },
  MusterNoWorker: { fires: sample('muster_workers', 0), quiet: [WORKS, UP] },
  MusterSweepLate: {
    fires: sample('muster_sweep_age_seconds{sweep="due-tokens"}', 700, WORKS),
    quiet: [
      sample('muster_sweep_age_seconds{sweep="due-tokens"}', 500, WORKS),
      sample('muster_sweep_age_seconds{sweep="old-records"}', 7_000, WORKS),
    ],
  },
  MusterQueueStopped: { fires: issue('queue_stopped', 1), quiet: [issue('queue_stopped', 0)] },
  MusterWorkerBlocked: {
    fires: sample('muster_worker_event_loop_delay_seconds', 6),
    quiet: [sample('muster_worker_event_loop_delay_seconds', 4)],
  },
  MusterDatabaseCopied: { fires: issue('database_copied', 1), quiet: [issue('schema_misfit', 1)] },
  MusterWebhookFailing: { fires: issue('webhook_failing', 1), quiet: [issue('webhook_failing', 0)] },
  MusterTokensOverdue: { fires: sample('muster_tokens_overdue', 1), quiet: [sample('muster_tokens_overdue', 0)] },
  MusterTokensHeld: { fires: issue('tokens_held', 1), quiet: [issue('token_put_off', 1)] },
  MusterReauthorizationRequired: {
    fires: sample('muster_companies{status="reauthorization_required"}', 1),
    quiet: [sample('muster_companies{status="paused"}', 1)],
  },
  MusterNightIncomplete: {
    fires: night('on_time', false),
    quiet: [night('on_time', true), night('reauthorization_required', false)],
  },
  MusterNightTooLong: { fires: issue('budget_short', 1), quiet: [issue('budget_short', 0)] },
  MusterRunsNotStarted: { fires: due(0), quiet: [due(1), sample('muster_run_longest_wait_seconds', 0, due(0))] },
  MusterListsLate: {
    fires: lists('active', 'late', 1),
    quiet: [lists('active', 'on_time', 1), lists('reauthorization_required', 'late', 1)],
  },
  MusterListsFailing: {
    fires: lists('active', 'failed', 1),
    quiet: [lists('active', 'failed', 0), lists('paused', 'failed', 1)],
  },
  MusterListsNeverProved: { fires: issue('never_proved', 1), quiet: [issue('list_unverified', 1)] },
  MusterHoldsWait: {
    fires: sample('muster_hold_oldest_seconds', 260_000),
    quiet: [sample('muster_hold_oldest_seconds', 259_000)],
  },
  MusterMirrorDiffers: { fires: issue('mirror_differs', 1), quiet: [issue('mirror_differs', 0)] },
  MusterExportFailed: { fires: issue('export_failed', 1), quiet: [issue('export_failed', 0)] },
  MusterServiceFailing: {
    fires: requests('5xx', 30),
    quiet: [
      requests('timeout', 20),
      requests('4xx', 90),
      sample('muster_service_requests_total{environment="test",outcome="5xx"}', 9),
    ],
  },
  MusterServiceThrottles: { fires: requests('429', 30), quiet: [requests('429', 20)] },
};

interface Rule {
  readonly alert: string;
  readonly for?: string;
}
const rules = (parse(readFileSync(RULES, 'utf8')) as { groups: { rules: Rule[] }[] }).groups.flatMap((group) => group.rules);
const minutesOf = ({ for: time = '0m' }: Rule) => Number.parseInt(time, 10) * (time.endsWith('h') ? 60 : 1);

test('promtool takes the rules', async () => {
  expect(await promtool(['check', 'rules', RULES])).toMatchObject({ code: 0 });
});

test('every alert has a case', () => {
  expect(Object.keys(CASES)).toEqual(rules.map(({ alert }) => alert));
});

test('each alert fires by itself where it should, in its time, and nowhere else', async () => {
  const cases = rules.flatMap((rule): AlertCase[] => {
    const { fires, quiet } = CASES[rule.alert]!;
    const patience = minutesOf(rule);
    return [
      { name: `${rule.alert} fires`, series: fires, minutes: 170, fires: [rule.alert] },
      ...(patience > 0 ? [{ name: `${rule.alert} is patient`, series: fires, minutes: patience - 1, fires: [] }] : []),
      ...quiet.map((series, i) => ({ name: `${rule.alert} is quiet ${i}`, series, minutes: 170, fires: [] })),
    ];
  });
  expect(await evaluateAlerts(cases)).toMatchObject({ code: 0 });
  const [first] = cases;
  expect((await evaluateAlerts([{ ...first!, fires: [] }])).code, 'a case that is wrong').not.toBe(0);
});
