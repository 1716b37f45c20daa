import { brotliDecompressSync, inflateSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { type Answer, json, lessonSandbox, MANY, NONE } from './lesson-sandbox.js';

const { ask, rawAnswer, sandbox } = await lessonSandbox();

const begin = (name: string, resource?: string) => sandbox.lessons.break(name, { resource });

/** The first page of a chained list, and its last one, which the page tokens of the sandbox as it is lead to. */
async function ends(name: string, list: 'documents' | 'shifts' | 'payslips'): Promise<{ first: Answer; last: Answer }> {
  const tokenOf = (page: Answer) => {
    if (list === 'documents') return page['nextPageToken'] as string | null;
    if (list === 'payslips') return page['more'] ? (page['items'] as { id: string }[]).at(-1)!.id : null;
    const link = page['@odata.nextLink'] as string | undefined;
    return link === undefined ? null : new URL(link).searchParams.get('$skiptoken');
  };
  let place: string | number = 0;
  for (let next = tokenOf(await json(ask(list))); next !== null; next = tokenOf(await json(ask(list, next)))) place = next;
  begin(name, list);
  return { first: await json(ask(list)), last: await json(ask(list, place)) };
}

describe('no records', () => {
  test.each([
    ['data-null', { data: null, totalRecords: 0 }],
    ['data-missing', { totalRecords: 0 }],
    ['data-object', { data: {}, totalRecords: 0 }],
  ])('%s', async (name, answer) => {
    begin(name);
    expect(await json(ask('employees', 0, NONE))).toEqual({ ...answer, totalDisplayRecords: 0 });
    expect((await json(ask('employees'))).data).toHaveLength(100);
  });

  test('no-content', async () => {
    begin('no-content');
    const response = await ask('employees', 0, NONE);
    expect([response.status, await response.text()]).toEqual([204, '']);
  });
});

describe('totals', () => {
  test('total-text', async () => {
    begin('total-text');
    expect(await json(ask('employees'))).toMatchObject({ totalRecords: '240' });
  });

  test.each([
    ['total-minus', -1],
    ['total-null', null],
    ['total-missing', undefined],
  ])('%s: on later pages', async (name, total) => {
    begin(name);
    expect((await json(ask('employees')))['totalRecords']).toBe(240);
    expect((await json(ask('employees', 100)))['totalRecords']).toBe(total);
  });

  test('total-range and total-twice', async () => {
    begin('total-range');
    const { headers } = await ask('notes', 50);
    expect([headers.get('content-range'), headers.get('x-total-count')]).toEqual(['items 50-79/80', null]);
    sandbox.lessons.mend();
    begin('total-twice');
    expect((await rawAnswer('notes')).match(/x-total-count: 80\r\n/g)).toHaveLength(2);
  });
});

describe('whether a page follows, and which', () => {
  test.each([
    ['more-text', 'true', 'false'],
    ['more-number', 1, 0],
    ['more-missing', true, undefined],
  ])('%s', async (name, ifMore, ifNot) => {
    const documents = await ends(name, 'documents');
    expect([documents.first['hasNextPage'], documents.last['hasNextPage']]).toEqual([ifMore, ifNot]);
    sandbox.lessons.mend();
    const payslips = await ends(name, 'payslips');
    expect([payslips.first['more'], payslips.last['more']]).toEqual([ifMore, ifNot]);
  });

  test.each([
    ['next-false', false],
    ['next-zero', 0],
    ['next-minus', -1],
    ['next-text', 'null'],
    ['next-array', []],
    ['next-object', {}],
  ])('%s', async (name, next) => {
    const { first, last } = await ends(name, 'shifts');
    expect(first['@odata.nextLink']).toMatch(/skiptoken=/);
    expect(last['@odata.nextLink']).toEqual(next);
  });

  test('next-href', async () => {
    const { first, last } = await ends('next-href', 'shifts');
    expect(first['@odata.nextLink']).toEqual({ href: expect.stringMatching(/^http.*skiptoken=/) });
    expect(last).not.toHaveProperty(['@odata.nextLink']);
  });

  test('status-203 and status-206', async () => {
    begin('status-203');
    expect((await ask('employees')).status).toBe(203);
    sandbox.lessons.mend();
    begin('status-206', 'documents');
    expect((await ask('documents')).status).toBe(206);
  });

  test.each([400, 404, 416])('after-end-%i', async (status) => {
    begin(`after-end-${status}`);
    expect(Object.keys(await json(ask('employees', 200)))).toEqual(['data']);
    const beyond = await ask('employees', 240);
    expect([beyond.status, await beyond.json()]).toEqual([status, expect.objectContaining({ error: 'no_such_page' })]);
  });
});

describe('links', () => {
  test.each([
    ['link-https', /^https:\/\/127\.0\.0\.1:\d+\/odata.*skiptoken=/],
    ['link-port', /^http:\/\/127\.0\.0\.1:8443\/odata.*skiptoken=/],
    ['link-host', /^http:\/\/api-7\.internal\.example\/odata.*skiptoken=/],
    ['link-relative', /^\/odata.*skiptoken=/],
  ])('%s', async (name, link) => {
    const { first, last } = await ends(name, 'shifts');
    expect(first['@odata.nextLink']).toMatch(link);
    expect(last).not.toHaveProperty(['@odata.nextLink']);
    if (name === 'link-relative') expect(last['@odata.context']).toMatch(/^https:\/\/api-7\.internal\.example\//);
  });

  test('link-bare-parameter', async () => {
    begin('link-bare-parameter');
    expect((await ask('positions')).headers.get('link')).toMatch(
      /^<\/app\.css>; rel=preload; as=style; nopush, <\/api.*rel="next"/,
    );
  });
});

describe('codings', () => {
  test.each([
    ['coding-utf8', 'UTF-8', (body: Buffer) => body],
    ['coding-none', 'none', (body: Buffer) => body],
    ['coding-br', 'br', brotliDecompressSync],
    ['coding-deflate', 'deflate', inflateSync],
  ])('%s', async (name, coding, undo) => {
    begin(name);
    const [head, body] = (await rawAnswer('employees')).split('\r\n\r\n') as [string, string];
    expect(head).toMatch(new RegExp(`content-encoding: ${coding}(\r|$)`));
    expect(JSON.parse(undo(Buffer.from(body, 'latin1')).toString())).toMatchObject({ totalRecords: 240 });
  });
});

describe('records', () => {
  const texts = () => sandbox.records(MANY, 'employees');
  const firstRecord = async () => (await (await ask('employees')).text()).match(/"data":\[(\{.*?\})(?=,\{"|\])/s)![1]!;

  test('id-nested and id-pair', async () => {
    const { uid } = JSON.parse(texts()[0]!) as { uid: string };
    begin('id-nested');
    const nested = (await json(ask('employees'))).data[0];
    expect(nested).toMatchObject({ attributes: { id: { value: uid } }, employeeNumber: '100001' });
    expect(nested).not.toHaveProperty('uid');
    sandbox.lessons.mend();
    begin('id-pair');
    const { data } = await json(ask('employees'));
    expect(data[0]).not.toHaveProperty('uid');
    expect(data[0]).toMatchObject({ employeeNumber: '100001', hireDate: expect.any(String) });
  });

  test.each([
    ['forever', '9999-12-31T23:59:59.9999999Z'],
    ['forever-west', '9999-12-31T23:59:59-12:00'],
    ['always', '0001-01-01T00:00:00+01:00'],
  ])('%s: and every digit else as it was', async (name, time) => {
    begin(name);
    expect(await firstRecord()).toBe(texts()[0]!.replace(/"modifiedAt":"[^"]*"/, `"modifiedAt":"${time}"`));
  });
});
