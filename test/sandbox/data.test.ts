import { expect, onTestFinished, test } from 'vitest';
import { RESOURCES } from '../../src/sandbox/company-spec.js';
import { RecordList } from '../../src/sandbox/record-list.js';
import { type Sandbox, type SandboxOptions, startSandbox } from '../../src/sandbox/sandbox.js';
import { accessTokenFor, get, post } from './client.js';

const COMPANY = 'b0b0b0b0-0000-4000-8000-00000000000b';
const companies = [{ companyId: COMPANY, name: 'Company', employees: 200 }];

async function start(options: SandboxOptions): Promise<Sandbox> {
  const sandbox = await startSandbox(options);
  onTestFinished(() => sandbox.stop());
  return sandbox;
}

const everything = (sandbox: Sandbox) => RESOURCES.map((resource) => sandbox.records(COMPANY, resource));
const idOf = (text: string) => /^\{"(?:uid|id)":("[^"]+"|\d+)/.exec(text)?.[1] ?? '';

test('the example companies have 0 to 20,000 employees, fitting lists and distinct ids', async () => {
  const sandbox = await start({});
  expect(sandbox.companies.map(({ employees }) => employees)).toEqual([0, 1, 37, 1234, 20_000]);
  const giant = sandbox.companies[4]?.companyId ?? '';
  for (const resource of RESOURCES) {
    const records = sandbox.records(giant, resource);
    expect(new Set(records.map(idOf)).size).toBe(records.length);
  }
  expect(sandbox.records(giant, 'employees')).toHaveLength(20_000);
  expect(sandbox.records(giant, 'absences').length).toBeGreaterThan(1000);
  expect(sandbox.records(sandbox.companies[0]?.companyId ?? '', 'employees')).toEqual([]);
});

test('references lead to records', async () => {
  const sandbox = await start({ companies });
  const departments = new Set(sandbox.records(COMPANY, 'departments').map(idOf));
  const references = sandbox.records(COMPANY, 'employees').map((text) => /"departmentId":("[^"]+")/.exec(text)?.[1] ?? '');
  expect(references.every((id) => departments.has(id))).toBe(true);
});

test('the seed decides the records and what happens to them', async () => {
  const [one, same, other] = await Promise.all([start({ companies }), start({ companies }), start({ companies, seed: 2 })]);
  const before = everything(one);
  expect(everything(same)).toEqual(before);
  expect(everything(other)).not.toEqual(before);
  expect(one.mutate(100)).toEqual(same.mutate(100));
  expect(everything(one)).toEqual(everything(same));
  expect(everything(one)).not.toEqual(before);
  one.reset();
  expect(everything(one)).toEqual(before);
});

test('records change, join and leave; the others keep their order', async () => {
  const sandbox = await start({ companies });
  const before = everything(sandbox);
  const done = sandbox.mutate(200);
  expect(done.changed + done.joined + done.left).toBe(200);
  expect(Math.min(done.changed, done.joined, done.left)).toBeGreaterThan(5);
  const after = everything(sandbox);
  expect(after.flat().length - before.flat().length).toBe(done.joined - done.left);
  for (const [index, list] of after.entries()) {
    const ids = list.map(idOf);
    const old = (before[index] ?? []).map(idOf);
    expect(ids.filter((id) => old.includes(id))).toEqual(old.filter((id) => ids.includes(id)));
  }
});

test('a continuation neither misses nor repeats a record that is there throughout', async () => {
  const sandbox = await start({ companies: [{ companyId: COMPANY, name: 'Company', employees: 5, documents: 300 }] });
  const token = await accessTokenFor(sandbox, COMPANY);
  const list = sandbox.list(COMPANY, 'documents');
  let throughout = list.texts().map(idOf);
  const received: string[] = [];
  for (let continuationToken: string | null = null; ; ) {
    const answer = await post(sandbox, token, `/api/v2.0/companies/${COMPANY}/documents/list`, {
      pageSize: 7,
      continuationToken,
    });
    const page = (await answer.json()) as { nextPageToken: string | null; data: { id: string }[] };
    received.push(...page.data.map(({ id }) => `"${id}"`));
    if (page.nextPageToken === null) break;
    continuationToken = page.nextPageToken;
    sandbox.mutate(20);
    // Right where the walk stands, too: its last record leaves.
    list.remove(list.texts().findIndex((text) => idOf(text) === received.at(-1)));
    const living = new Set(list.texts().map(idOf));
    throughout = throughout.filter((id) => living.has(id));
  }
  expect(throughout.length).toBeGreaterThan(50);
  expect(new Set(received).size).toBe(received.length);
  expect(received.filter((id) => throughout.includes(id))).toEqual(throughout);
});

test('when no rank is left between two records, old places are refused instead of pointing elsewhere', () => {
  const list = new RecordList(4, 'stable', (serial, edition) => `{"id":${serial},"edition":${edition}}`);
  const first = list.after(undefined, 2);
  for (let i = 0; i < 60; i++) list.insert(2, `{"id":"new ${i}"}`);
  expect(list.after(first?.next, 2)).toBeUndefined();
  expect(list.texts().map(idOf)).toHaveLength(64);
  const again = list.after(list.after(undefined, 63)?.next, 2);
  expect(again).toEqual({ texts: ['{"id":3,"edition":0}'], next: undefined });
});

test('an unstable list answers another order each time, with the same records', async () => {
  const sandbox = await start({ companies, unstable: ['employees'] });
  const token = await accessTokenFor(sandbox, COMPANY);
  const page = async () => {
    const answer = await get(sandbox, token, `/api/companies/${COMPANY}/employees`, { skip: '0', $take: '200' });
    return ((await answer.json()) as { data: { uid: string }[] }).data.map(({ uid }) => uid);
  };
  const [one, two] = [await page(), await page()];
  expect(one).not.toEqual(two);
  expect(one.toSorted()).toEqual(two.toSorted());
});

test('a list can be changed by hand', async () => {
  const sandbox = await start({ companies: [{ companyId: COMPANY, name: 'Company', employees: 3 }] });
  const list = sandbox.list(COMPANY, 'employees');
  const [first, second, third] = list.texts();
  list.insert(1, '{"uid":"x"}');
  list.change(0);
  list.remove(3);
  const [changed, ...rest] = sandbox.records(COMPANY, 'employees');
  expect(rest).toEqual(['{"uid":"x"}', second]);
  expect(idOf(changed ?? '')).toBe(idOf(first ?? ''));
  expect(changed).not.toBe(first);
  expect(third).toBeDefined();
});

test('a living sandbox changes by itself, at the pace that was asked for', async () => {
  let wake = () => {};
  const ticks: number[] = [];
  const clock = {
    now: () => 0,
    monotonic: () => 0,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        ticks.push(ms);
        wake = resolve;
        signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      }),
  };
  const none = Object.fromEntries(RESOURCES.map((resource) => [resource, 0]));
  const size = { ...none, companyId: COMPANY, name: 'Company', employees: 600 };
  const sandbox = await start({ clock, companies: [size], live: { changesPerMinute: 0.05 } });
  const before = sandbox.records(COMPANY, 'employees');
  const tick = async () => {
    const seen = ticks.length;
    wake();
    while (ticks.length === seen) await new Promise((resolve) => setImmediate(resolve));
  };
  // 600 records x 0.05 a minute = 30 a minute: one every second second.
  await tick();
  expect(sandbox.records(COMPANY, 'employees')).toEqual(before);
  await tick();
  expect(sandbox.records(COMPANY, 'employees')).not.toEqual(before);
  expect(ticks).toEqual([1000, 1000, 1000]);
});
