import { afterAll, beforeAll, expect, test } from 'vitest';
import type { CompanyModel } from '../../../src/api/companies/company-model.js';
import type { CompanyKey } from '../../../src/core/company.js';
import { PageClient } from '../../dashboard/page-client.js';
import { type TroubleName, troubledFleet } from '../../support/troubled-fleet.js';
import { type AdminFixture, startAdmin } from '../admin-fixture.js';

let admin: AdminFixture;
let fleet: Readonly<Record<TroubleName, readonly CompanyKey[]>>;
let operator: PageClient;
let viewer: PageClient;
let viewersToken: string;
beforeAll(async () => {
  admin = await startAdmin();
  fleet = await troubledFleet(admin.db);
  viewersToken = (await admin.call('POST', '/api/tokens', { name: 'auditor', role: 'viewer' })).json.token;
  operator = await PageClient.signedIn(admin.url);
  viewer = await PageClient.signedIn(admin.url, viewersToken);
});
afterAll(() => admin.stop());

const pathOf = (name: TroubleName) => `/companies/${fleet[name][0]!.environment}/${fleet[name][0]!.companyId}`;
const company = async (name: TroubleName) => (await admin.call('GET', `/api${pathOf(name)}`)).json as CompanyModel;
const listOf = async (name: TroubleName, resource: string) =>
  (await company(name)).resources.find((list) => list.resource === resource)!;
const hoursSince = (since: string | null) => since && Math.round((Date.now() - Date.parse(since)) / 3_600_000);
/** The text of a page without its tags. */
const textOf = (html: string) => html.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');

test.each([
  ['well', 'employees', 'on_time', 3, undefined],
  ['paused', 'employees', 'on_time', 100, undefined],
  ['pausedUnproved', 'employees', 'never', 90, 'company_paused'],
  ['mustAuthorize', 'employees', 'failed', 60, 'reauthorization_required'],
  ['pausedMustAuthorize', 'departments', 'on_time', 3, undefined],
  ['failedForDays', 'employees', 'failed', 75, 'service_refused'],
  ['failedOnce', 'departments', 'failed', 3, 'service_unreachable'],
  ['failedFirst', 'employees', 'failed', 51, 'malformed_envelope'],
  ['held', 'employees', 'held', 3, 'share'],
  ['heldForGrant', 'employees', 'held', 3, 'grant'],
  ['heldAndFailed', 'employees', 'failed', 3, 'service_refused'],
  ['heldAndLate', 'employees', 'held', 50, 'share'],
  ['reading', 'employees', 'never', 1, 'no_walk_yet'],
  ['waiting', 'employees', 'never', 1, 'no_walk_yet'],
  ['neverProved', 'employees', 'never', 80, 'total_mismatch'],
  ['newList', 'departments', 'never', null, 'no_walk_yet'],
  ['late', 'employees', 'late', 73, 'end_unproved'],
  ['unread', 'employees', 'late', 34, 'no_walk_since'],
  ['unavailable', 'departments', 'unavailable', 75, 'unavailable'],
  ['unavailableAgain', 'departments', 'unavailable', 75, 'unavailable'],
  ['unverified', 'employees', 'on_time', 20, 'passes_disagree'],
  ['rejectsAll', 'employees', 'never', 3, 'rejected_records'],
  ['refreshRefused', 'employees', 'on_time', 3, undefined],
] as const)('%s: %s is %s for %s hours, since %s', async (name, resource, state, hours, reason) => {
  const list = await listOf(name, resource);
  expect([list.state, hoursSince(list.since), list.reason]).toEqual([state, hours, reason]);
});

test('a list of a company that must authorize says so once its proof is late and its last walk has not failed', async () => {
  const [key] = fleet.unread;
  await admin.db.prisma.connection.update({
    where: { environment_companyId: key! },
    data: { reauthorizationReason: 'token_refused' },
  });
  expect(await listOf('unread', 'employees')).toMatchObject({ state: 'late', reason: 'reauthorization_required' });
});

test("a list has its oldest open hold, whatever its state, and the service's sentence where it refused it", async () => {
  expect(await listOf('heldAndFailed', 'employees')).toMatchObject({
    state: 'failed',
    hold: { cause: 'share', count: 2 },
    service_says: 'Your plan does not include this list.',
  });
  expect(await listOf('well', 'employees')).not.toHaveProperty('hold');
  expect(await listOf('late', 'employees')).not.toHaveProperty('service_says');
});

test('as CSV, the companies are a line for each list that is asked for', async () => {
  const csv = async (query: string) => {
    const { headers, text } = await admin.call('GET', `/api/companies?${query}`, undefined, { accept: 'text/csv' });
    return { cursor: headers.get('x-next-cursor'), lines: text.trim().split('\r\n') };
  };
  const { lines, cursor } = await csv('resource=departments&state=unavailable&limit=500');
  expect([lines.length, cursor]).toEqual([1 + fleet.unavailable.length + fleet.unavailableAgain.length, null]);
  expect(lines[0]).toMatch(/^environment,company_id,name,status,resource,state,since,reason,service_says/);
  expect(lines[1]).toMatch(/,active,departments,unavailable,20[^,]+,unavailable,The company has no departments\.,0,,/);
  const first = await csv('limit=100');
  expect([first.lines.length, first.cursor]).toEqual([201, expect.any(String)]);
  expect((await csv(`limit=100&cursor=${encodeURIComponent(first.cursor!)}`)).lines).toHaveLength(201);
});

test('the page of a company says first what is wrong, why, and what cures it; once, and nobody who may not sees the button', async () => {
  const failed = (await operator.open(pathOf('failedForDays'))).html;
  const [head, rest] = failed.split('<h2 id="trouble">') as [string, string];
  expect(head).not.toContain('<h2');
  expect(textOf(rest)).toMatch(
    /^One list needs attention employees Failed for 3 days .* The service refused it\. The service says: Your plan/,
  );
  expect(failed.match(/>Sync now<\/button>/g)).toHaveLength(1);
  expect((await viewer.open(pathOf('failedForDays'))).html).not.toContain('>Sync now</button>');
  expect((await operator.open(pathOf('paused'))).html.match(/>Resume<\/button>/g)).toHaveLength(1);
  expect((await operator.open(pathOf('mustAuthorize'))).html.match(/>Connect link<\/button>/g)).toHaveLength(1);
  expect((await operator.open(pathOf('held'))).html).toContain(`href="/holds?environment=${fleet.held[0]!.environment}`);
  const well = (await operator.open(pathOf('well'))).html;
  expect(well).toContain('Nothing is wrong: every list is on time.');
  expect(well).not.toContain('id="trouble"');
  expect(textOf((await operator.open(pathOf('refreshRefused'))).html)).toContain('The last refresh of its token was not granted');
  expect((await operator.open(pathOf('reading'))).html).not.toContain('id="trouble"');
});

test('the companies are found by a list and its state, with the number of each state', async () => {
  const { html } = await operator.open('/companies?resource=departments&state=unavailable');
  const text = textOf(html);
  const { json } = await admin.call('GET', '/api/list-counts?resource=departments');
  const sum = (state: string) =>
    json.data.reduce((total: number, { states }: { states: Record<string, number> }) => total + states[state]!, 0);
  const lacking = sum('unavailable') + sum('never') + sum('failed');
  expect(text).toContain(`${lacking} of 300 companies lack departments or its proof.`);
  for (const [state, words] of [
    ['unavailable', 'unavailable'],
    ['never', 'never proved'],
    ['failed', 'failed'],
  ] as const)
    expect(text).toContain(`${sum(state)} ${words}`);
  expect(html).toContain('href="/companies?resource=departments&amp;state=failed"');
  expect(text).toContain('The service says: The company has no departments.');
  const late = textOf((await operator.open('/companies?proof=late')).html);
  expect(late).toMatch(/\d+ lists were proved complete too long ago/);
});

test('values of rejected records are shown to operators, and their reason and place to all', async () => {
  const asViewer = await admin.call('GET', '/api/rejected', undefined, { authorization: `Bearer ${viewersToken}` });
  expect(asViewer.json.data[0]).toMatchObject({ reason: 'no_id', text: '', text_hidden: true });
  expect(asViewer.text).not.toContain('Rejected 0');
  const seen = await admin.call('GET', '/api/rejected');
  expect(seen.json.data[0].text).toContain('Rejected 0');
  expect(seen.json.data[0]).not.toHaveProperty('text_hidden');
  const [forOperator, forViewer] = [(await operator.open('/rejected')).html, (await viewer.open('/rejected')).html];
  expect(forOperator).toContain('Rejected 0');
  expect(textOf(forOperator)).toContain('It has no id.');
  expect(forViewer).not.toContain('Rejected 0');
  expect(textOf(forViewer)).toContain('It has no id. ');
  expect(forViewer).toContain('Values of records are shown to operators and admins.');
  expect((await operator.open(pathOf('rejected'))).html).toContain('href="/rejected?environment=');
});
