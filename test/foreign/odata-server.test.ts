import { request } from 'undici';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ForeignService } from './foreign-service.js';
import { startODataServer } from './odata-server.js';

interface Page {
  readonly '@odata.context': string;
  readonly '@odata.count': number;
  readonly '@odata.nextLink'?: string;
  readonly value: readonly object[];
}

let service: ForeignService;

beforeAll(async () => {
  service = await startODataServer();
});

afterAll(() => service.stop());

async function get(address: string | URL): Promise<Page> {
  const { statusCode, body } = await request(new URL(address, service.url), { headers: { authorization: 'Bearer a.b.c' } });
  expect(statusCode).toBe(200);
  return (await body.json()) as Page;
}

test.each(['/odata/v4/roster/Shifts', '/odata/v4/roster/Companies(1f3c9d84-6a2b-4c57-8e19-7d5b3f0a4c02)/shifts'])(
  'the links of %s lead through the whole list, relative to its context',
  async (path) => {
    const pages: Page[] = [];
    for (let address: URL | undefined = new URL(`${path}?$count=true`, service.url); address; ) {
      const page = await get(address);
      pages.push(page);
      const { '@odata.context': context, '@odata.nextLink': link } = page;
      address = link === undefined ? undefined : new URL(link, new URL(context, address));
    }
    expect(pages).toHaveLength(13);
    expect(pages[0]).toMatchObject({
      '@odata.context': expect.stringMatching(/\$metadata#Shifts$/),
      '@odata.count': 1234,
      '@odata.nextLink': expect.stringMatching(/hifts\?%24count=true&%24skiptoken=100$/),
    });
    expect(pages.flatMap(({ value }) => value)).toEqual(service.records);
  },
);

test('$top is the size of the whole answer, not of a page', async () => {
  const page = await get('/odata/v4/roster/Shifts?$count=true&$top=60');
  expect([page.value.length, page['@odata.count'], page['@odata.nextLink']]).toEqual([60, 1234, undefined]);
  const skipped = await get('/odata/v4/roster/Shifts?$count=true&$top=60&$skip=1200');
  expect(skipped.value).toEqual(service.records.slice(1200));
});
