import { describe, expect, test } from 'vitest';
import { LESSONS } from '../../src/sandbox/lessons/registry.js';
import { accessTokenFor, refresh } from './client.js';
import { FEW, json, lessonSandbox, MANY, NONE } from './lesson-sandbox.js';

const { ask, clock, sandbox, tokens } = await lessonSandbox();

describe('what a lesson is about', () => {
  test('a company and a list are chosen so that it can be seen', () => {
    expect(sandbox.lessons.break('shrink')).toMatchObject({ companyId: MANY, resource: 'employees', until: undefined });
    expect(sandbox.lessons.break('data-null')).toMatchObject({ companyId: NONE, resource: 'employees' });
    expect(sandbox.lessons.break('next-href')).toMatchObject({ companyId: MANY, resource: 'shifts' });
    expect(sandbox.lessons.break('revoke')).toMatchObject({ companyId: MANY, resource: undefined });
    expect(sandbox.lessons.break('forbid', { companyId: FEW.toUpperCase(), resource: 'absences' })).toMatchObject({
      companyId: FEW,
      resource: 'absences',
    });
  });

  test.each([
    ['its name', 'many'],
    ['a part of it', 'Man'],
    ['the beginning of its id', 'd0d0'],
  ])('a company is named by %s', (_, companyId) => {
    expect(sandbox.lessons.break('shrink', { companyId })).toMatchObject({ companyId: MANY });
  });

  test.each([
    ['forgive', {}, /no lesson "forgive": `muster sandbox lessons`/],
    ['shrink', { companyId: FEW }, /22 records or more, and employees of f0f.* has 3\. Choose another company/],
    ['data-null', { companyId: MANY }, /without records, and employees of .* has 240/],
    ['shrink', { companyId: 'd1d1d1d1-0000-4000-8000-00000000000d' }, /no company d1d1/],
    ['shrink', { companyId: 'Nowhere' }, /no company "Nowhere": there are None, Few, Many/],
    ['shrink', { companyId: 'n' }, /"n" may mean None, Many: give more of the name/],
    ['next-href', { resource: 'employees' }, /has no effect on the list "employees": choose shifts/],
    ['forbid', { resource: 'nonsense' }, /choose employees, departments/],
    ['revoke', { resource: 'employees' }, /concerns a company/],
  ])('%s %j is refused', (name, target, message) => {
    expect(() => sandbox.lessons.break(name, target)).toThrow(message);
    expect(sandbox.lessons.active).toEqual([]);
  });

  test('other companies and other lists are left alone', async () => {
    sandbox.lessons.break('forbid');
    expect([(await ask('employees')).status, (await ask('notes')).status]).toEqual([403, 200]);
    expect((await ask('employees', 0, FEW)).status).toBe(200);
  });

  test('it ends by itself, when it is mended, and when the sandbox is reset', async () => {
    sandbox.lessons.break('down');
    expect(sandbox.lessons.break('down', { seconds: 60 }).until).toBe(clock.now() + 60_000);
    expect(sandbox.lessons.active).toHaveLength(1);
    clock.forward(59);
    expect((await ask('employees')).status).toBe(503);
    clock.forward(1);
    expect((await ask('employees')).status).toBe(200);
    expect(sandbox.lessons.mend()).toEqual([]);

    sandbox.lessons.break('down');
    sandbox.lessons.break('forbid', { resource: 'notes' });
    expect(sandbox.lessons.mend('down').map(({ lesson }) => lesson.name)).toEqual(['down']);
    expect([(await ask('employees')).status, (await ask('notes')).status]).toEqual([200, 403]);
    sandbox.reset();
    expect((await ask('notes')).status).toBe(200);
  });

  test('several lessons on one list act together', async () => {
    for (const name of ['shrink', 'total-text', 'status-206']) sandbox.lessons.break(name);
    const response = await ask('employees');
    expect(response.status).toBe(206);
    expect(await response.json()).toMatchObject({ totalRecords: '120' });
  });

  test('each says in a sentence what it does and what will be seen', () => {
    for (const { name, does, see } of LESSONS.values()) {
      expect(name).toMatch(/^[a-z]+(-[a-z0-9]+)*$/);
      for (const text of [does, see]) expect(text).toMatch(/^[A-Z0-9].*[.]$/);
    }
  });
});

describe('every day', () => {
  test('shrink: half of the records are gone, and come back as they were', async () => {
    const before = await json(ask('employees'));
    sandbox.lessons.break('shrink');
    const half = await json(ask('employees'));
    expect([before['totalRecords'], half['totalRecords'], half.data.length]).toEqual([240, 120, 100]);
    expect(half.data.slice(0, 50)).toEqual(before.data.filter((_, index) => index % 2 === 0));
    sandbox.lessons.mend('shrink');
    expect(await json(ask('employees'))).toEqual(before);
  });

  test('shrink reaches lists that are chained', async () => {
    sandbox.lessons.break('shrink', { resource: 'shifts' });
    expect(await json(ask('shifts'))).toMatchObject({ '@odata.count': 135 });
  });

  test('revoke: every token of now is refused, and an authorization that follows is good', async () => {
    const old = sandbox.issueRefreshToken(MANY).reveal();
    sandbox.lessons.break('revoke');
    expect((await ask('employees')).status).toBe(401);
    const refused = await refresh(sandbox, old);
    expect([refused.status, await refused.json()]).toEqual([400, expect.objectContaining({ error: 'invalid_grant' })]);
    expect(await (await fetch(new URL('/sandbox/', sandbox.url))).text()).toMatch(/revoked/);
    tokens.set(MANY, await accessTokenFor(sandbox, MANY));
    expect((await ask('employees')).status).toBe(200);
    // Not spent: mended before anybody noticed, it costs nobody an authorization.
    sandbox.lessons.mend();
    expect((await refresh(sandbox, old)).status).toBe(200);
  });

  test.each([
    ['forbid', 403, 'Your role does not include this list.'],
    ['unpaid', 402, 'This module is not part of your subscription.'],
    ['absent', 404, 'This list is not activated for the company.'],
    ['unauthorized', 401, 'The access token does not include this list.'],
  ])('%s: %i in the words of the API', async (name, status, message) => {
    sandbox.lessons.break(name, { resource: 'notes' });
    const response = await ask('notes');
    expect([response.status, await response.json()]).toEqual([status, expect.objectContaining({ message })]);
    expect((await ask('employees')).status).toBe(200);
  });
});

describe('lies', () => {
  test('lie, cut, denied and late-error', async () => {
    sandbox.lessons.break('lie');
    expect(await json(ask('employees'))).toMatchObject({ totalRecords: 247, data: { length: 100 } });
    sandbox.reset();
    sandbox.lessons.break('cut');
    expect([await json(ask('employees')), await json(ask('employees', 100))]).toMatchObject([
      { totalRecords: 240, data: { length: 100 } },
      { totalRecords: 240, data: [] },
    ]);
    sandbox.reset();
    sandbox.lessons.break('denied');
    expect(await json(ask('employees'))).toMatchObject({ isSuccess: false, httpStatusCode: 403, totalRecords: 0, data: [] });
    sandbox.reset();
    sandbox.lessons.break('late-error');
    expect(await json(ask('employees'))).not.toHaveProperty('errors');
    expect(await json(ask('employees', 100))).toMatchObject({ data: [], errors: [{ code: 'TIMEOUT' }] });
  });

  test('contradict: no total, and the last page speaks of another one', async () => {
    sandbox.lessons.break('contradict');
    expect(Object.keys(await json(ask('employees')))).toEqual(['data']);
    expect(await json(ask('employees', 200))).toEqual({ data: expect.anything(), _links: { next: '/next' } });
  });

  test('no-link: a full first page that names no next one', async () => {
    expect((await ask('positions')).headers.get('link')).toMatch(/next/);
    sandbox.lessons.break('no-link');
    expect((await ask('positions')).headers.get('link')).toBeNull();
  });

  test('same-etag: one tag for every text', async () => {
    sandbox.lessons.break('same-etag');
    expect([(await ask('employees')).headers.get('etag'), (await ask('employees', 100)).headers.get('etag')]).toEqual([
      '"v1"',
      '"v1"',
    ]);
    const address = new URL(`/api/companies/${MANY}/employees?skip=0&$take=5`, sandbox.url);
    const headers = { authorization: `Bearer ${tokens.get(MANY)}`, 'if-none-match': '"v1"' };
    expect((await fetch(address, { headers })).status).toBe(304);
  });
});
