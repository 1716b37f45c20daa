import { type Answer, refusal } from './answer.js';
import { access } from './bearer.js';
import type { Resource } from './company-spec.js';
import type { Grants } from './grants.js';
import type { PageTokens } from './page-tokens.js';
import { type Asked, type Route, readObject } from './router.js';
import type { World } from './world.js';

/** A list of the API: where its paging input stands and how it is spelt. */
interface List {
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly resource: Resource;
  /** Offset lists: index of the first record. */
  readonly skip?: string;
  /** Continuation lists: the page token. */
  readonly token?: string;
  /** How many records; without it the request is refused, since the service enforces paging. */
  readonly size: string;
  /** The answer is an array and nothing else. */
  readonly bare?: true;
}

const LISTS: readonly List[] = [
  { method: 'GET', path: '/api/companies/{company_id}/employees', resource: 'employees', skip: 'skip', size: '$take' },
  {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/departments/list',
    resource: 'departments',
    skip: 'skip',
    size: 'take',
  },
  { method: 'GET', path: '/api/companies/{company_id}/absences', resource: 'absences', skip: '$skip', size: '$top' },
  { method: 'GET', path: '/api/companies/{company_id}/positions', resource: 'positions', skip: 'skip', size: 'take', bare: true },
  {
    method: 'GET',
    path: '/api/companies/{company_id}/documents-legacy',
    resource: 'documents',
    token: 'continuationToken',
    size: 'pageSize',
  },
  {
    method: 'POST',
    path: '/api/v2.0/companies/{company_id}/documents/list',
    resource: 'documents',
    token: 'continuationToken',
    size: 'pageSize',
  },
];

export interface ListOptions {
  readonly world: World;
  readonly grants: Grants;
  readonly tokens: PageTokens;
  readonly maxTake: number;
  /** Lists whose envelope stands in a member `value`. */
  readonly wrapped: readonly Resource[];
}

/** A paging input that cannot be served. */
class PagingFault extends Error {}

/** The lists on {base_url}, one in each paging style and place. docs/configuration.md shows how to mirror them. */
export function listRoutes(options: ListOptions): Route[] {
  return LISTS.map((list) => ({
    method: list.method,
    path: list.path,
    handle(asked) {
      const refused = access(options.grants, asked);
      if (refused) return refused;
      try {
        const input = readInput(list, asked);
        return list.token === undefined ? offsetPage(list, asked, input, options) : tokenPage(list, asked, input, options);
      } catch (error) {
        if (error instanceof PagingFault) return refusal(400, 'invalid_paging', error.message);
        throw error;
      }
    },
  }));
}

function offsetPage(list: List, asked: Asked, input: Input, { world, maxTake, wrapped }: ListOptions): Answer {
  const take = Math.min(count(list, input, list.size, 1), maxTake, asked.clamp ?? Infinity);
  const skip = list.skip !== undefined && list.skip in input ? count(list, input, list.skip, 0) : 0;
  const records = world.list(asked.companyId, list.resource);
  const texts = records.slice(skip, take);
  const data = `[${texts.join(',')}]`;
  if (list.bare) return { status: 200, body: data };
  const members = { totalRecords: String(records.size), totalDisplayRecords: String(texts.length), data };
  return { status: 200, members, ...(wrapped.includes(list.resource) && { wrap: 'value' }) };
}

function tokenPage(list: List, asked: Asked, input: Input, { world, tokens, maxTake, wrapped }: ListOptions): Answer {
  const take = Math.min(count(list, input, list.size, 1), maxTake, asked.clamp ?? Infinity);
  const token = input[list.token ?? ''] ?? undefined;
  const name = `${asked.companyId} ${list.resource}`;
  const place = typeof token === 'string' ? tokens.read(name, token) : undefined;
  const page = token !== undefined && !place ? undefined : world.list(asked.companyId, list.resource).after(place, take);
  if (!page) return refusal(400, 'invalid_page_token', 'The continuation token is unknown or expired: begin again without one.');
  const members = {
    hasNextPage: String(page.next !== undefined),
    nextPageToken: page.next ? JSON.stringify(tokens.issue(name, page.next)) : 'null',
    data: `[${page.texts.join(',')}]`,
  };
  return { status: 200, members, ...(wrapped.includes(list.resource) && { wrap: 'value' }) };
}

type Input = Readonly<Record<string, unknown>>;

function readInput({ method }: List, { query, contentType, body }: Asked): Input {
  if (method === 'GET') return Object.fromEntries(query);
  if (contentType !== 'application/json') throw new PagingFault('Content-Type must be application/json.');
  const input = readObject(body);
  if (!input) throw new PagingFault('The body must be a JSON object.');
  return input;
}

/** In a query numbers are digits; in a JSON body they are numbers, and digits in quotes are refused. */
function count({ method }: List, input: Input, name: string, least: number): number {
  const value = input[name];
  if (value === undefined) throw new PagingFault(`Paging is mandatory: ${name} is missing.`);
  const number = method === 'GET' && /^\d{1,9}$/.test(String(value)) ? Number(value) : value;
  if (typeof number !== 'number' || !Number.isInteger(number) || number < least) {
    throw new PagingFault(`${name} must be an integer of at least ${least}.`);
  }
  return number;
}
