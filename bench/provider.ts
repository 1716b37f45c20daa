import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { companyIdOf } from '../test/support/company-ids.js';

/**
 * The provider of the benchmark: a process of its own that answers pages from memory. A page is rendered the first time
 * it is asked for and kept, so that a measured round serves bytes that are there.
 *
 *     node provider.js <companies> <records a company> <records of the first>
 */
const [companies = 4, records = 50_000, giant = records] = process.argv.slice(2).map(Number);

interface Page {
  readonly body: Buffer;
  readonly etag: string;
}

interface Company {
  readonly id: string;
  readonly texts: string[];
  readonly pages: Map<string, Page>;
}

let latencyMs = 0;
let givesEtags = false;
let edition = 0;
let requests = 0;
let firstRequestAt: number | undefined;

const list: Company[] = Array.from({ length: companies }, (_, n) => ({
  id: companyIdOf(n),
  texts: Array.from({ length: n === 0 ? giant : records }, (__, record) => recordText(n, record, 0)),
  pages: new Map(),
}));
const byId = new Map(list.map((company) => [company.id, company]));

/** About 600 bytes, 25 members, as payroll records are: short texts, dates, flags, amounts. */
function recordText(company: number, record: number, version: number): string {
  const uid = `${String(company).padStart(8, '0')}-0000-4000-9000-${String(record).padStart(12, '0')}`;
  return JSON.stringify({
    uid,
    employeeNumber: String(10_000 + record),
    firstName: `First${record % 977}`,
    lastName: `Last${record % 1_013}`,
    email: `person${record}@company${company}.example.com`,
    mobile: `+45 ${String(10_000_000 + record)}`,
    title: `Title ${record % 83}`,
    departmentId: `d-${record % 50}`,
    managerId: `m-${record % 500}`,
    employmentType: record % 7 === 0 ? 'hourly' : 'salaried',
    hireDate: `20${String(10 + (record % 15))}-0${1 + (record % 9)}-1${record % 9}`,
    birthDate: `19${String(60 + (record % 40))}-0${1 + (record % 9)}-0${1 + (record % 9)}`,
    active: record % 11 !== 0,
    salary: 30_000 + (record % 20_000) + version,
    currency: 'DKK',
    hoursPerWeek: 37,
    vacationDays: 25,
    address: `Street ${record % 300}, ${1_000 + (record % 8_999)}`,
    city: `City ${record % 89}`,
    country: 'DK',
    bankAccount: `${String(1_000 + (record % 8_999))}-${String(1_000_000 + record)}`,
    taxCard: 'main',
    pension: 12.5,
    costCenter: `cc-${record % 40}`,
    updatedAt: `2026-01-0${1 + (version % 9)}T08:00:00Z`,
  });
}

function rendered(text: string): Page {
  const body = Buffer.from(text);
  return { body, etag: `"${createHash('sha256').update(body).digest('base64url')}"` };
}

function page({ texts, pages }: Company, skip: number, take: number): Page {
  const key = `${skip}+${take}`;
  let kept = pages.get(key);
  if (!kept) {
    const slice = texts.slice(skip, skip + take);
    kept = rendered(`{"totalRecords":${texts.length},"totalDisplayRecords":${slice.length},"data":[${slice.join(',')}]}`);
    pages.set(key, kept);
  }
  return kept;
}

/** The same by token: the token is the index, as text. */
function tokenPage({ texts, pages }: Company, pageToken: string | null, size: number): Page {
  const skip = Number(pageToken ?? 0);
  const key = `token ${skip}+${size}`;
  let kept = pages.get(key);
  if (!kept) {
    const next = skip + size < texts.length ? JSON.stringify(String(skip + size)) : 'null';
    kept = rendered(
      `{"hasNextPage":${next !== 'null'},"nextPageToken":${next},"data":[${texts.slice(skip, skip + size).join(',')}]}`,
    );
    pages.set(key, kept);
  }
  return kept;
}

/** Changes a share of every company's records: spread evenly, or those at its beginning. */
function change(share: number, isInOnePlace: boolean): void {
  edition += 1;
  for (const [n, company] of list.entries()) {
    const end = isInOnePlace ? Math.round(company.texts.length * share) : company.texts.length;
    const step = isInOnePlace ? 1 : Math.max(1, Math.round(1 / share));
    for (let record = edition % step; record < end; record += step) company.texts[record] = recordText(n, record, edition);
    company.pages.clear();
  }
}

function answer(request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url!, 'http://provider');
  if (url.pathname === '/control') return control(url, response);
  if (url.pathname === '/auth/token') return token(request, response);
  firstRequestAt ??= Date.now();
  requests += 1;
  const [, , , id, resource] = url.pathname.split('/');
  const company = byId.get(id!);
  if (!company) return send(response, 404, Buffer.from('{}'));
  const { body, etag } =
    resource === undefined
      ? rendered(JSON.stringify({ id, name: `Company ${id}` }))
      : resource === 'people'
        ? tokenPage(company, url.searchParams.get('continuationToken'), Number(url.searchParams.get('pageSize')))
        : page(company, Number(url.searchParams.get('skip')), Number(url.searchParams.get('$take')));
  const isKept = givesEtags && request.headers['if-none-match'] === etag;
  const reply = () => (isKept ? response.writeHead(304, { etag }).end() : send(response, 200, body, givesEtags ? { etag } : {}));
  if (latencyMs > 0) setTimeout(reply, latencyMs);
  else reply();
}

function control(url: URL, response: ServerResponse): void {
  if (url.searchParams.has('latency')) latencyMs = Number(url.searchParams.get('latency'));
  if (url.searchParams.has('etags')) givesEtags = url.searchParams.get('etags') === 'on';
  if (url.searchParams.has('change')) change(Number(url.searchParams.get('change')), url.searchParams.has('together'));
  const state = JSON.stringify({ requests, firstRequestAt, companies: list.map((company) => company.id) });
  if (url.searchParams.has('reset')) {
    requests = 0;
    firstRequestAt = undefined;
  }
  send(response, 200, Buffer.from(state));
}

/** Refresh tokens name their company; every refresh gives a new one. */
function token(request: IncomingMessage, response: ServerResponse): void {
  let form = '';
  request.on('data', (chunk) => (form += chunk));
  request.on('end', () => {
    const [id, generation] = new URLSearchParams(form).get('refresh_token')!.split('/');
    const body = {
      access_token: `access-${id}-${generation}`,
      expires_in: 86_400,
      token_type: 'Bearer',
      refresh_token: `${id}/${Number(generation) + 1}`,
      company_id: id,
    };
    send(response, 200, Buffer.from(JSON.stringify(body)));
  });
}

function send(response: ServerResponse, status: number, body: Buffer, headers: object = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': body.length, ...headers });
  response.end(body);
}

const server = createServer({ keepAliveTimeout: 60_000 }, answer).listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object') console.log(`listening ${address?.port}`);
});
// Ends with whoever started it.
process.stdin.resume().on('end', () => process.exit(0));
