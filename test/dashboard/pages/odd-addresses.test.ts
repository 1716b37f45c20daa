import { connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AdminFixture, startAdmin, TOKEN } from '../../api/admin-fixture.js';
import { PageClient } from '../page-client.js';

// What stands in the address of a page or a call may be anything. As a client of HTTP would mend such addresses, they are sent as bytes.

let admin: AdminFixture;
let page: PageClient;
beforeAll(async () => {
  admin = await startAdmin();
  page = await PageClient.signedIn(admin.url);
});
afterAll(() => admin.stop());

interface Answer {
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

async function get(target: string, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const { hostname, port, host } = new URL(admin.url);
  const socket = connect(Number(port), hostname);
  socket.setTimeout(30_000, () => socket.destroy(new Error('no answer, or one without an end')));
  const lines = Object.entries({ Host: host, Connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${target} HTTP/1.1\r\n${lines.join('')}\r\n`);
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  const [head = '', ...body] = text.split('\r\n\r\n');
  return { status: Number(head.split(' ')[1]), head: head.toLowerCase(), body: body.join('') };
}

const WELL_FORMED = [
  '..',
  '.',
  '%2e%2e',
  '%2E%2E',
  '.%2e',
  '%2e',
  '..%2f..',
  '%2f',
  '%2F%2F',
  '%5c',
  '%5C..',
  '..%5c..',
  '%00',
  'a%00b',
  '%0a',
  '%0d%0aX:1',
  '%3f',
  '%23',
  '%25',
  '%252e%252e',
  ';',
  '@',
  ':',
  '%20',
  '%F0%9F%98%80',
  'a'.repeat(5_000),
]; // prettier-ignore
const MALFORMED = ['%', '%zz', '%ff', '%C3', '%E0%A4%A', '%u0041', '%ED%A0%80'];

const PAGES: Readonly<Record<string, (part: string) => string>> = {
  'both parts of a company': (part) => `/companies/${part}/${part}`,
  'the id of a company': (part) => `/companies/test/${part}`,
  'an environment': (part) => `/companies/${part}/00000000-0000-4000-8000-000000000000`,
  'quiet hours': (part) => `/companies/${part}/${part}/quiet-hours`,
  'a removal': (part) => `/companies/${part}/${part}/remove`,
  'a person to forget': (part) => `/companies/${part}/${part}/forget`,
  'a record': (part) => `/records/${part}/${part}/${part}/1`,
  'a run': (part) => `/runs/${part}`,
  'a difference': (part) => `/runs/${part}/diff`,
  nothing: (part) => `/nothing/${part}`,
};

test.each(Object.keys(PAGES))('whatever stands in the address of the page of %s, it is a 404 page', async (what) => {
  for (const part of [...WELL_FORMED, ...MALFORMED]) {
    const { status, head, body } = await get(PAGES[what]!(part), { Cookie: page.cookie!, Accept: 'text/html' });
    expect([status, part]).toEqual([404, part]);
    expect(head).toContain('content-type: text/html');
    expect(head).toContain("content-security-policy: default-src 'none'");
    expect(body).toContain('<h1>');
  }
});

test('whoever is not signed in is led to the page for signing in', async () => {
  for (const part of [...WELL_FORMED, ...MALFORMED])
    expect((await get(`/companies/${part}/${part}`, { Accept: 'text/html' })).status).toBe(302);
});

const CALLS = [
  (part: string) => `/companies/${part}/${part}`,
  (part: string) => `/runs/${part}`,
  (part: string) => `/runs/${part}/events`,
];

test.each(CALLS)('whatever stands in the address of a call, it is refused with a problem', async (path) => {
  for (const part of [...WELL_FORMED, ...MALFORMED]) {
    const { status, head } = await get(`/api${path(part)}`, { Authorization: `Bearer ${TOKEN}` });
    expect([[400, 414].includes(status), part]).toEqual([true, part]);
    expect(head).toContain('content-type: application/problem+json');
  }
});

test('nothing but the events of a run are followed', async () => {
  for (const part of [...WELL_FORMED, ...MALFORMED])
    expect([400, 404, 414]).toContain((await get(`/runs/${part}/events`, { Cookie: page.cookie! })).status);
});

test('a form leads to no other call than its own', async () => {
  await page.open('/');
  expect((await page.act('company.remove', { environment: '..', company_id: 'tokens' })).status).toBe(404);
});
