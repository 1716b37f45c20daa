import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyModel } from '../../../src/api/companies/company-model.js';
import type { IssueModel } from '../../../src/api/operation/issues.js';
import type { ListCountsModel } from '../../../src/api/operation/list-counts.js';
import type { OverviewModel } from '../../../src/api/operation/overview.js';
import { ENVIRONMENTS } from '../../../src/core/company.js';
import { LIST_PROOFS, LIST_STATES } from '../../../src/db/tables/list-states.js';
import { checkAge } from '../../../src/doctor/age.js';
import { DatabaseAccess } from '../../../src/doctor/database-access.js';
import { runMuster } from '../../cli/run-muster.js';
import { found } from '../../doctor/findings.js';
import { metricsOf } from '../../observability/metrics-of.js';
import { sweepOf } from '../../runs/issue-world.js';
import { TROUBLES, troubledFleet } from '../../support/troubled-fleet.js';
import { type AdminFixture, startAdmin, TOKEN } from '../admin-fixture.js';

const RESOURCES = ['departments', 'employees'];
const STALE_MS = 26 * 3_600_000;
const KEYS = ENVIRONMENTS.flatMap((environment) => RESOURCES.map((resource) => ({ environment, resource })));

let admin: AdminFixture;
let companies: readonly CompanyModel[];
let overview: OverviewModel;
let counts: readonly ListCountsModel[];
let issues: readonly IssueModel[];
beforeAll(async () => {
  admin = await startAdmin();
  await troubledFleet(admin.db);
  await admin.db.pool.query('UPDATE muster.warehouse_settings SET stale_after_hours = 26');
  await sweepOf(admin.db, { environments: ENVIRONMENTS, hasWebhook: false })();
  companies = await all<CompanyModel>('/api/companies?limit=100');
  overview = await get<OverviewModel>('/api/overview');
  counts = (await get<{ data: ListCountsModel[] }>('/api/list-counts')).data;
  issues = await all<IssueModel>('/api/issues?status=ongoing');
});
afterAll(() => admin.stop());

const get = async <T>(path: string) => (await admin.call('GET', path)).json as T;

/** Every page of a list. */
async function all<T>(path: string): Promise<T[]> {
  const rows: T[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page: { data: T[]; next_cursor: string | null } = await get(`${path}&cursor=${encodeURIComponent(cursor)}`);
    rows.push(...page.data);
    cursor = page.next_cursor;
  }
  return rows;
}

type ListModel = CompanyModel['resources'][number];
/** The proof of a list, told from what the company's answer says. */
function proofOf({ paused }: CompanyModel, { state, last_verified_at: provedAt }: ListModel): (typeof LIST_PROOFS)[number] {
  if (state === 'unavailable') return 'unavailable';
  if (provedAt === null) return 'never';
  return !paused && Date.parse(provedAt) < Date.now() - STALE_MS ? 'late' : 'verified';
}

const lists = () =>
  companies.flatMap((company) => company.resources.map((list) => ({ company, list, proof: proofOf(company, list) })));
const tally = (names: readonly string[]) =>
  Object.fromEntries([...new Set(names)].map((name) => [name, names.filter((one) => one === name).length]));
const without0 = (record: Readonly<Record<string, number>>) =>
  Object.fromEntries(Object.entries(record).filter(([, count]) => count > 0));
const sums = (rows: readonly Readonly<Record<string, number>>[]) =>
  rows.reduce<Record<string, number>>((sum, row) => {
    for (const [name, count] of Object.entries(row)) sum[name] = (sum[name] ?? 0) + count;
    return sum;
  }, {});

test('the fleet has every state and proof, and each company names every list of the catalogue', () => {
  expect(companies).toHaveLength(300);
  expect(new Set(lists().map(({ list }) => list.state))).toEqual(new Set(LIST_STATES));
  expect(new Set(lists().map(({ proof }) => proof))).toEqual(new Set(LIST_PROOFS));
  for (const { resources } of companies) expect(resources.map(({ resource }) => resource)).toEqual(RESOURCES);
  for (const { list } of lists())
    if (!['on_time', 'never'].includes(list.state))
      expect(list).toMatchObject({ reason: expect.any(String), since: expect.any(String) });
});

test('overview, counts of lists and companies agree', () => {
  expect(tally(companies.map(({ status }) => status))).toEqual(without0(overview.companies));
  const { total, verified, late, never, unavailable } = overview.lists;
  expect(without0({ verified, late, never, unavailable })).toEqual(tally(lists().map(({ proof }) => proof)));
  expect(total).toBe(verified + late + never);
  expect(sums(counts.map(({ proofs }) => proofs))).toEqual({ verified, late, never, unavailable });
  expect(without0(sums(counts.map(({ states }) => states)))).toEqual(tally(lists().map(({ list }) => list.state)));
  expect(sums(counts.map(({ unverified, first_proof_overdue }) => ({ unverified, first_proof_overdue })))).toEqual({
    unverified: overview.lists.unverified,
    first_proof_overdue: overview.lists.first_proof_overdue,
  });
  expect(overview.lists.first_proof_overdue).toBe(TROUBLES.neverProved.companies + TROUBLES.failedFirst.companies);
});

test('the filters of the companies find as many as the counts say', async () => {
  for (const { environment, resource } of KEYS) {
    const { states, proofs } = counts.find((one) => one.environment === environment && one.resource === resource)!;
    const filters = [
      ...LIST_STATES.map((state) => ['state', state, states[state]] as const),
      ...LIST_PROOFS.map((proof) => ['proof', proof, proofs[proof]] as const),
    ];
    for (const [name, value, count] of filters) {
      const rows = await all<CompanyModel>(
        `/api/companies?limit=500&environment=${environment}&resource=${resource}&${name}=${value}`,
      );
      expect([environment, resource, value, rows.length]).toEqual([environment, resource, value, count]);
      if (name === 'state')
        for (const { resources } of rows) expect(resources.find((list) => list.resource === resource)?.state).toBe(value);
    }
  }
});

test('the metrics say the same', async () => {
  const metrics = metricsOf(admin.db, RESOURCES, { environments: ENVIRONMENTS });
  const text = await metrics.metrics();
  const lines = text.split('\n');
  const value = (sample: string) => {
    const line = lines.find((one) => one.startsWith(`${sample} `));
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  const ofAllCompanies = (labels: string, state: string) =>
    lines
      .filter((line) => line.startsWith(`muster_lists_by_state{${labels},`) && line.includes(`,state="${state}"}`))
      .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  for (const proof of LIST_PROOFS)
    expect([proof, value(`muster_lists{proof="${proof}"}`)]).toEqual([proof, overview.lists[proof]]);
  expect(value('muster_lists_unverified')).toBe(overview.lists.never);
  for (const { environment, resource, states } of counts)
    for (const state of LIST_STATES)
      expect(ofAllCompanies(`environment="${environment}",resource="${resource}"`, state)).toBe(states[state]);
  for (const [status, count] of Object.entries(overview.companies))
    expect(value(`muster_companies{status="${status}"}`) ?? 0).toBe(count);
  expect(value('muster_holds_open')).toBe(overview.holds_open);
  expect(value('muster_companies_last_run{status="failed"}')).toBe(overview.companies_last_run_failed);
  for (const status of ['queued', 'running'] as const)
    expect(value(`muster_runs{status="${status}"}`)).toBe(overview.runs[status]);
  const issueLines = text.split('\n').filter((line) => line.startsWith('muster_issues{'));
  expect(issueLines.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)).toBe(overview.issues_open);
  expect(value('muster_oldest_verified_seconds')).toBeCloseTo(
    (Date.now() - Date.parse(overview.oldest_verified_at!)) / 1_000,
    -2,
  );
});

test('the warehouse says the same of the lists that were requested, and keeps those that left the catalogue', async () => {
  const { rows } = await admin.db.pool.query<{ resource: string; late: string; overdue: string; unavailable: string }>(
    `SELECT resource, count(*) FILTER (WHERE is_late AND last_verified_at IS NOT NULL) AS late,
       count(*) FILTER (WHERE is_late AND last_verified_at IS NULL) AS overdue, count(*) FILTER (WHERE unavailable_since IS NOT NULL) AS unavailable
     FROM warehouse.lists GROUP BY resource ORDER BY resource`,
  );
  const ofCatalogue = rows
    .filter(({ resource }) => RESOURCES.includes(resource))
    .map((row) => ({ late: Number(row.late), overdue: Number(row.overdue), unavailable: Number(row.unavailable) }));
  const { late, unavailable, first_proof_overdue: overdue } = overview.lists;
  expect(sums(ofCatalogue)).toEqual({ late, overdue, unavailable });
  expect(rows.map(({ resource }) => resource)).toContain('shifts');
});

test('issues count the active companies among them, and each late list once', () => {
  const issue = (cause: string, key: { environment: string; resource?: string }) =>
    issues.find((one) => one.cause === cause && one.environment === key.environment && one.resource === key.resource);
  const issueOf = (cause: string, key: { environment: string; resource?: string }) => issue(cause, key)?.companies ?? 0;
  const lateOf = (cause: string, key: { environment: string; resource?: string }) => issue(cause, key)?.late ?? 0;
  for (const { environment, resource } of KEYS) {
    const here = lists().filter(({ company, list }) => company.environment === environment && list.resource === resource);
    const active = here.filter(({ company }) => company.status === 'active');
    const late = active.filter(({ proof }) => proof === 'late');
    const unexplained = late.filter(({ list }) => list.state !== 'failed' && !list.hold);
    expect(issueOf('list_late', { environment, resource })).toBe(unexplained.length);
    const explaining = issues.filter((one) => one.environment === environment && one.resource === resource);
    expect(unexplained.length + explaining.reduce((sum, one) => sum + (one.late ?? 0), 0)).toBe(late.length);
    expect(issueOf('deletions_held', { environment, resource })).toBe(here.filter(({ list }) => list.hold).length);
    expect(lateOf('deletions_held', { environment, resource })).toBe(late.filter(({ list }) => list.hold).length);
    for (const code of ['service_refused', 'service_unreachable', 'malformed_envelope']) {
      const failed = ({ list }: (typeof active)[number]) => list.state === 'failed' && list.reason === code;
      expect(issueOf(code, { environment, resource })).toBe(active.filter(failed).length);
      expect(lateOf(code, { environment, resource })).toBe(late.filter(failed).length);
    }
  }
  expect(issues.filter((one) => one.resource === undefined && one.late !== undefined)).toEqual([]);
  expect(issues.reduce((sum, one) => sum + (one.cause === 'list_late' ? one.companies : (one.late ?? 0)), 0)).toBe(
    lists().filter(({ company, proof }) => company.status === 'active' && proof === 'late').length,
  );
  for (const environment of ENVIRONMENTS)
    expect(issueOf('reauthorization_required', { environment })).toBe(
      companies.filter((company) => company.environment === environment && company.status === 'reauthorization_required').length,
    );
  expect(issues).toHaveLength(overview.issues_open);
});

test('holds are counted alike: on the overview, in their list, and on their runs', async () => {
  const holds = await all<{ id: string; run_id: string; resource: string }>('/api/holds?status=open&limit=100');
  expect(holds).toHaveLength(overview.holds_open);
  for (const { run_id, resource } of holds.slice(0, 3)) {
    const run = await get<{ walks: { resource: string; hold?: object }[] }>(`/api/runs/${run_id}`);
    expect(run.walks.find((walk) => walk.resource === resource)?.hold).toMatchObject({ count: 2, status: 'open' });
  }
});

test('muster status and muster doctor say the same', async () => {
  const { json } = await runMuster(['status', '--json', '--url', admin.url], { MUSTER_TOKEN: TOKEN, MUSTER_ADMIN_TOKEN: TOKEN });
  const [status] = json();
  for (const name of ['companies', 'lists', 'runs', 'holds_open', 'issues_open'] as const)
    expect(status[name]).toEqual(overview[name]);
  const access = new DatabaseAccess({ url: admin.db.pool.options.connectionString! });
  const doctor = await found(
    checkAge({ access, environments: ENVIRONMENTS, lists: { resources: RESOURCES, staleAfterHours: 26 } }),
  );
  const { late, never, first_proof_overdue: overdue } = overview.lists;
  const companiesWith = (proof: string) =>
    new Set(
      lists()
        .filter((one) => one.proof === proof)
        .map(({ company }) => company),
    ).size;
  expect(doctor).toContainEqual(expect.stringContaining(`${late} lists of ${companiesWith('late')} companies late`));
  expect(doctor).toContainEqual(
    expect.stringContaining(
      `${never} lists of ${companiesWith('never')} companies never proved complete, ${overdue} of them overdue`,
    ),
  );
  expect(doctor).toContainEqual(
    expect.stringContaining(`${overview.companies.reauthorization_required} companies must authorize again`),
  );
});
