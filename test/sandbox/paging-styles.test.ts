import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Resource } from '../../src/sandbox/company-spec.js';
import { type Sandbox, startSandbox } from '../../src/sandbox/sandbox.js';
import { accessTokenFor, get, post } from './client.js';

const COMPANY = 'a0a0a0a0-0000-4000-8000-00000000000a';
const V1 = `/api/companies/${COMPANY}`;
const PAYSLIPS = `/api/v2.0/companies/${COMPANY}/payslips/list`;
const SHIFTS = `/odata/companies/${COMPANY}/shifts`;

let sandbox: Sandbox;
let token: string;

beforeEach(async () => {
  sandbox = await startSandbox({
    companies: [{ companyId: COMPANY, name: 'Company', employees: 90, shifts: 60, payslips: 60 }],
    maxTake: 50,
  });
  onTestFinished(() => sandbox.stop());
  token = await accessTokenFor(sandbox, COMPANY);
});

/** A page as a client reads it: the records' texts as they came, and how to ask for the next page (undefined: it was the last). */
interface Page {
  readonly texts: string;
  readonly count: number;
  readonly lastId: unknown;
  readonly next: string | undefined;
}

/** The array that begins behind `opening`, and what a client knows from the rest of the answer. */
async function read(answer: Response, opening: string, end: number, next: (body: never) => string | undefined): Promise<Page> {
  const text = await answer.text();
  expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
  const start = text.indexOf(opening) + opening.length;
  const texts = text.slice(start, -end);
  const records = JSON.parse(`[${texts}]`) as { id: unknown }[];
  return { texts, count: records.length, lastId: records.at(-1)?.id, next: next(JSON.parse(text) as never) };
}

const open = (address: string) => get(sandbox, token, ...split(address));

function split(address: string): [string, Record<string, string>] {
  const { pathname, searchParams } = new URL(address, sandbox.url);
  return [pathname, Object.fromEntries(searchParams)];
}

const linkOf = (answer: Response) => /<([^>]*)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];

/** The lists whose pages say how to ask for the next one. */
const chains: Partial<Record<Resource, (size: number, next?: string) => Promise<Page>>> = {
  async shifts(size, next = `${SHIFTS}?$top=${size}`) {
    const answer = await open(next);
    const text = await answer.clone().text();
    const tail = /,"@odata.nextLink":"[^"]*"}$/.exec(text)?.[0].length ?? 1;
    return read(answer, '"value":[', tail + 1, (body: { '@odata.nextLink'?: string }) => body['@odata.nextLink']);
  },
  async positions(size, next = `${V1}/positions?per_page=${size}`) {
    const answer = await open(next);
    return read(answer, '[', 1, () => linkOf(answer));
  },
  async payslips(limit, after) {
    const answer = await post(sandbox, token, PAYSLIPS, { limit, ...(after !== undefined && { after }) });
    const more = ((await answer.clone().json()) as { more: boolean }).more;
    const page = await read(answer, '"items":[', `],"more":${more}}`.length, () => undefined);
    return { ...page, next: more ? String(page.lastId) : undefined };
  },
  async timesheets(limit, cursor) {
    const answer = await get(sandbox, token, `${V1}/timesheets`, {
      limit: String(limit),
      ...(cursor !== undefined && { cursor }),
    });
    return read(answer, '"rows":[', 2, () => answer.headers.get('x-next-cursor') ?? undefined);
  },
};

describe.each(Object.entries(chains))('%s', (resource, page) => {
  const list = () => sandbox.list(COMPANY, resource as Resource);

  test.each([1, 7, 50, 5000])('pages of %i give every record, digit by digit, each once', async (size) => {
    const pages: Page[] = [];
    for (let next: string | undefined; ; ) {
      const answered = await page(size, next);
      pages.push(answered);
      if (answered.next === undefined) break;
      next = answered.next;
    }
    expect(pages.map(({ texts }) => texts).join(',')).toBe(list().texts().join(','));
    expect(pages).toHaveLength(Math.ceil(list().size / Math.min(size, 50)));
  });

  test('a place keeps its meaning while records change, join and leave, its own record too', async () => {
    const idOf = (text: string) => (JSON.parse(text) as { id: unknown }).id;
    let throughout = list().texts().map(idOf);
    const received: unknown[] = [];
    for (let next: string | undefined; ; ) {
      const answered = await page(3, next);
      received.push(...JSON.parse(`[${answered.texts}]`).map(({ id }: { id: unknown }) => id));
      if (answered.next === undefined) break;
      next = answered.next;
      sandbox.mutate(8);
      const place = list().texts().map(idOf).indexOf(answered.lastId);
      if (place >= 0) list().remove(place);
      const living = new Set(list().texts().map(idOf));
      throughout = throughout.filter((id) => living.has(id));
    }
    expect(throughout.length).toBeGreaterThan(5);
    expect(new Set(received).size).toBe(received.length);
    expect(received.filter((id) => throughout.includes(id))).toEqual(throughout);
  });
});

test('contracts: numbered pages, until one is empty', async () => {
  const page = (number: number, query: Record<string, string> = { expand: 'department' }) =>
    get(sandbox, token, `${V1}/contracts`, { page: String(number), pageSize: '40', ...query });
  const texts: string[] = [];
  for (const number of [1, 2, 3]) {
    const { texts: piece, count } = await read(await page(number), '"items":[', `],"count":90}}`.length, () => undefined);
    expect(count).toBe(number < 3 ? 40 : 10);
    texts.push(piece);
  }
  expect(texts.join(',')).toBe(sandbox.records(COMPANY, 'contracts').join(','));
  expect(await (await page(4)).json()).toEqual({ value: { items: [], count: 90 } });
  const refused = [await page(0), await page(1, {}), await page(1, { expand: 'employee' }), await page(1, { pageSize: '' })];
  expect(refused.map(({ status }) => status)).toEqual([400, 400, 400, 400]);
});

test('notes: a bare array over an offset, its total in a header', async () => {
  const page = (skip: number) => get(sandbox, token, `${V1}/notes`, { skip: String(skip), take: '20' });
  const [first, second, behind] = [await page(0), await page(20), await page(30)];
  expect([first, second, behind].map(({ headers }) => headers.get('x-total-count'))).toEqual(['30', '30', '30']);
  const texts = [await first.text(), await second.text()].map((text) => text.slice(1, -1));
  expect(texts.join(',')).toBe(sandbox.records(COMPANY, 'notes').join(','));
  expect(await behind.text()).toBe('[]');
});

test('links: absolute in the body of shifts, relative in the header of positions', async () => {
  const shifts = (await (await open(`${SHIFTS}?$top=5`)).json()) as Record<string, unknown>;
  expect(Object.keys(shifts)).toEqual(['@odata.context', '@odata.count', 'value', '@odata.nextLink']);
  expect(shifts['@odata.count']).toBe(60);
  expect(String(shifts['@odata.nextLink'])).toMatch(
    new RegExp(`^${sandbox.url.origin}${SHIFTS}\\?\\$top=5&\\$skiptoken=[\\w.-]+$`),
  );

  const positions = await open(`${V1}/positions?per_page=5`);
  const path = `${V1}/positions\\?per_page=5`;
  expect(positions.headers.get('link')).toMatch(new RegExp(`^<${path}&cursor=[\\w.-]+>; rel="next", <${path}>; rel="first"$`));
  const whole = await open(`${V1}/positions?per_page=50`);
  expect(whole.headers.get('link')).toBe(`<${V1}/positions?per_page=50>; rel="first"`);
});

test('an empty list has one page that leads nowhere', async () => {
  for (const [resource, page] of Object.entries(chains)) {
    sandbox.list(COMPANY, resource as Resource).remove(0, 1000);
    expect(await page(5)).toMatchObject({ count: 0, next: undefined });
  }
});

test('paging is mandatory, and a place that the list never had is refused', async () => {
  const refused = await Promise.all([
    ...['contracts?expand=department', 'notes', 'positions', 'timesheets', 'timesheets?cursor=x'].map((list) =>
      open(`${V1}/${list}`),
    ),
    open(SHIFTS),
    open(`${SHIFTS}?$top=5&$skiptoken=x`),
    open(`${V1}/positions?per_page=5&cursor=x`),
    open(`${V1}/timesheets?limit=5&cursor=x`),
    post(sandbox, token, PAYSLIPS, {}),
    post(sandbox, token, PAYSLIPS, { limit: 5, after: 'x' }),
  ]);
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 400));
  expect((await fetch(new URL(`${SHIFTS}?$top=5`, sandbox.url))).status).toBe(401);
  expect((await post(sandbox, token, SHIFTS, {})).headers.get('allow')).toBe('GET');
  expect(sandbox.requests.all('/odata/')).toContainEqual(expect.objectContaining({ input: { $top: '5', $skiptoken: 'x' } }));
});

test('a fault may alter the headers of an answer, and members inside its envelope', async () => {
  sandbox.faults.add({ kind: 'alter', headers: { 'X-Total-Count': '7' } }, { path: '/notes' });
  sandbox.faults.add({ kind: 'alter', members: { count: 7 } }, { path: '/contracts' });
  expect((await open(`${V1}/notes?take=5`)).headers.get('x-total-count')).toBe('7');
  expect(await (await open(`${V1}/contracts?expand=department&pageSize=5`)).json()).toMatchObject({ value: { count: 7 } });
});

test('a numbered page that is clamped by a fault loses records', async () => {
  sandbox.faults.add({ kind: 'clamp', take: 2 }, { path: '/contracts', times: 2 });
  const ids = async (page: number) => {
    const answer = await open(`${V1}/contracts?expand=department&page=${page}&pageSize=5`);
    return ((await answer.json()) as { value: { items: { id: string }[] } }).value.items.map(({ id }) => id);
  };
  const all = sandbox.records(COMPANY, 'contracts').map((text) => (JSON.parse(text) as { id: string }).id);
  expect([...(await ids(1)), ...(await ids(2))]).toEqual([...all.slice(0, 2), ...all.slice(5, 7)]);
});
