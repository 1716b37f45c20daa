import { createHash } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

// Small servers whose lists are paged and written as public documents of well-known services describe theirs. None of them shares a name or a line with
// the client side.

export interface ForeignShape {
  readonly url: URL;
  /** With `{company_id}`. */
  readonly path: string;
  /** The records that it serves, in order. A test that changes this array changes the list. */
  readonly records: Record<string, unknown>[];
  /** Requests for the list. */
  readonly requests: string[];
  stop(): Promise<void>;
}

interface Asked {
  readonly url: URL;
  readonly query: URLSearchParams;
  /** Digits of a parameter, or undefined. */
  number(name: string): number | undefined;
}

interface Answered {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: unknown;
}

interface Shape {
  readonly path: string;
  record(n: number): Record<string, unknown>;
  answer(asked: Asked, records: readonly Record<string, unknown>[]): Answered;
}

const guid = (kind: string, n: number) => {
  const hex = createHash('sha256').update(`${kind} ${n}`).digest('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
};
const day = (n: number) => `2024-${String(1 + (n % 12)).padStart(2, '0')}-${String(1 + (n % 28)).padStart(2, '0')}`;

const SHAPES = {
  /** RFC 7644, 3.4.2.4: startIndex counts from 1, count is the most that is wanted. */
  scim: {
    path: '/scim/v2/{company_id}/Users',
    record: (n) => ({
      schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
      id: guid('scim', n),
      userName: `person${n % 90}@example.com`,
      name: { givenName: `Given ${n % 17}`, familyName: `Family ${n % 23}` },
      active: n % 9 !== 0,
      meta: { resourceType: 'User', created: `${day(n)}T08:00:00Z`, version: `W/"${n}"` },
    }),
    answer: ({ number }, records) => {
      const startIndex = Math.max(1, number('startIndex') ?? 1);
      const count = Math.min(number('count') ?? 50, 60);
      const page = records.slice(startIndex - 1, startIndex - 1 + count);
      return {
        headers: { 'content-type': 'application/scim+json' },
        body: {
          schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
          totalResults: records.length,
          startIndex,
          itemsPerPage: page.length,
          Resources: page,
        },
      };
    },
  },
  /** Like Personio's v1: each attribute is an object with a label and a value. */
  personio: {
    path: '/v1/{company_id}/company/employees',
    record: (n) => ({
      type: 'Employee',
      attributes: {
        id: { label: 'ID', value: 1_000 + n, type: 'integer', universal_id: 'id' },
        first_name: { label: 'First name', value: `Given ${n % 19}`, type: 'standard', universal_id: 'first_name' },
        hire_date: { label: 'Hire date', value: `${day(n)}T00:00:00+01:00`, type: 'date', universal_id: 'hire_date' },
      },
    }),
    answer: ({ number }, records) => {
      const limit = Math.min(number('limit') ?? 200, 200);
      const offset = number('offset') ?? 0;
      const data = records.slice(offset, offset + limit);
      const metadata = {
        total_elements: records.length,
        current_page: Math.floor(offset / limit),
        total_pages: Math.ceil(records.length / limit),
      };
      return { body: { success: true, metadata, offset, limit, data } };
    },
  },
  /** Like Fortnox's v3: pages by number, and what is known of them in members that begin with @. */
  fortnox: {
    path: '/3/{company_id}/invoices',
    record: (n) => ({
      '@url': `https://api.example.com/3/invoices/${n + 1}`,
      DocumentNumber: String(n + 1),
      CustomerNumber: String(1 + (n % 31)),
      InvoiceDate: day(n),
      Total: 100 + (n % 50),
      Booked: n % 2 === 0,
    }),
    answer: ({ number }, records) => {
      const limit = number('limit') ?? 100;
      if (limit < 1 || limit > 500)
        return {
          status: 400,
          body: { ErrorInformation: { error: 1, message: 'Limit must be between 1 and 500.', code: 2_000_588 } },
        };
      const page = number('page') ?? 1;
      const Invoices = records.slice((page - 1) * limit, page * limit);
      const MetaInformation = {
        '@TotalResources': records.length,
        '@TotalPages': Math.ceil(records.length / limit),
        '@CurrentPage': page,
      };
      return { body: { MetaInformation, Invoices } };
    },
  },
  /** Like Xero's accounting API: a size is read beside a page number only; without one the whole list comes. */
  xero: {
    path: '/api.xro/2.0/{company_id}/Contacts',
    record: (n) => ({
      ContactID: guid('xero', n),
      ContactStatus: 'ACTIVE',
      Name: `Contact ${n % 70}`,
      EmailAddress: `c${n % 40}@example.com`,
      Addresses: [{ AddressType: 'STREET', City: 'Oslo' }],
      UpdatedDateUTC: `/Date(${1_700_000_000_000 + (n % 30) * 86_400_000}+0000)/`,
    }),
    answer: ({ number }, records) => {
      const head = {
        Id: guid('xero answer', records.length),
        Status: 'OK',
        ProviderName: 'Example',
        DateTimeUTC: '/Date(1764230400000)/',
      };
      const page = number('page');
      if (page === undefined) return { body: { ...head, Contacts: records } };
      const pageSize = Math.min(number('pageSize') ?? 100, 1_000);
      const Contacts = records.slice((page - 1) * pageSize, page * pageSize);
      const pagination = { page, pageSize, pageCount: Math.ceil(records.length / pageSize), itemCount: records.length };
      return { body: { ...head, pagination, Contacts } };
    },
  },
  /** Like Dataverse's OData: server-driven pages, $top as the most of all pages, no $skip, and no parameter that it does not know. */
  dynamics: {
    path: '/api/data/v9.2/{company_id}/contacts',
    record: (n) => ({
      '@odata.etag': `W/"${4_000_000 + n}"`,
      contactid: guid('dynamics', n),
      fullname: `Contact ${n % 60}`,
      emailaddress1: `d${n % 44}@example.com`,
      statecode: 0,
    }),
    answer: ({ url, query, number }, records) => {
      const refuse = (message: string) => ({ status: 400, body: { error: { code: '0x80060888', message } } });
      for (const name of query.keys()) {
        if (name === '$skip') return refuse('Skip Clause is not supported in CRM');
        if (!['$top', '$count', '$skiptoken', '$select', '$filter', '$orderby'].includes(name))
          return refuse(`The query parameter ${name} is not supported`);
      }
      const [, from] = /pagingcookie="(\d+)"/.exec(query.get('$skiptoken') ?? '') ?? [];
      const start = Number(from ?? 0);
      const top = number('$top');
      const value = records.slice(start, top === undefined ? start + 50 : Math.min(top, 50));
      const next = new URL(url);
      next.searchParams.set(
        '$skiptoken',
        `<cookie pagenumber="${start / 50 + 2}" pagingcookie="${start + 50}" istracking="False" />`,
      );
      return {
        headers: { 'content-type': 'application/json; odata.metadata=minimal' },
        body: {
          '@odata.context': `${url.origin}/api/data/v9.2/$metadata#contacts`,
          ...(query.get('$count') === 'true' && { '@odata.count': records.length }),
          value,
          ...(top === undefined && start + 50 < records.length && { '@odata.nextLink': next.href }),
        },
      };
    },
  },
  /** Like GitHub's REST API: bare arrays, and the Link header of RFC 8288 with absolute addresses. */
  github: {
    path: '/orgs/{company_id}/members',
    record: (n) => ({ login: `person-${n}`, id: 9_000 + n, node_id: `MDQ6VXNlcj${n}`, type: 'User', site_admin: false }),
    answer: ({ url, number }, records) => {
      const size = Math.min(number('per_page') ?? 30, 100);
      const page = number('page') ?? 1;
      const last = Math.max(1, Math.ceil(records.length / size));
      const to = (n: number, rel: string) => {
        const address = new URL(url);
        address.searchParams.set('page', String(n));
        return `<${address.href}>; rel="${rel}"`;
      };
      const links = [
        ...(page > 1 ? [to(page - 1, 'prev')] : []),
        ...(page < last ? [to(page + 1, 'next'), to(last, 'last')] : []),
        ...(page > 1 ? [to(1, 'first')] : []),
      ];
      return {
        ...(links.length > 0 && { headers: { link: links.join(', ') } }),
        body: records.slice((page - 1) * size, page * size),
      };
    },
  },
} satisfies Readonly<Record<string, Shape>>;

export type ShapeName = keyof typeof SHAPES;

/** Serves a list of this shape, and the record of any company, which every run asks for. GET answers have ETags, where `etags` says so. */
export async function startShape(name: ShapeName, { count = 137, etags = false } = {}): Promise<ForeignShape> {
  const shape: Shape = SHAPES[name];
  const records = Array.from({ length: count }, (_, n) => shape.record(n));
  const pattern = new RegExp(`^${shape.path.replaceAll('.', '\\.').replace('{company_id}', '[0-9a-f-]{36}')}$`);
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
    if (/^\/api\/companies\/[^/]+$/.test(url.pathname))
      return send(response, { body: { id: url.pathname.split('/').at(-1), name } });
    if (!pattern.test(url.pathname)) return send(response, { status: 404, body: { message: 'No such resource.' } });
    requests.push(`${request.method} ${request.url}`);
    if (request.method !== 'GET') return send(response, { status: 405, body: { message: 'Use GET.' } });
    const answered = shape.answer(
      { url, query: url.searchParams, number: (each) => digits(url.searchParams.get(each)) },
      records,
    );
    return send(response, answered, etags ? request.headers['if-none-match'] : undefined, etags);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    path: shape.path,
    records,
    requests,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function digits(text: string | null): number | undefined {
  return text !== null && /^\d{1,9}$/.test(text) ? Number(text) : undefined;
}

function send(response: ServerResponse, { status = 200, headers = {}, body }: Answered, known?: string, etags = false): void {
  const text = JSON.stringify(body);
  const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 16)}"`;
  const tag = etags ? { etag } : {};
  if (etags && known === etag) response.writeHead(304, tag).end();
  else response.writeHead(status, { 'content-type': 'application/json', ...tag, ...headers }).end(text);
}
