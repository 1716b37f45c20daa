import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { JSON_TYPE, Refusal, sendMembers, visitOf } from './answer.js';
import type { Resource } from './company-spec.js';
import type { Grants, Person } from './grants.js';
import type { FetchedPage, Members } from './lessons/answered-page.js';
import type { Lessons } from './lessons/lessons.js';
import type { Place, RecordList } from './record-list.js';
import type { Tokens } from './tokens.js';
import type { World } from './world.js';

export interface PageStart {
  /** Company and resource. */
  readonly list: string;
  readonly place: Place;
}

export interface ListOptions {
  readonly world: World;
  readonly grants: Grants;
  /** Page tokens, each for a place in one list. */
  readonly tokens: Tokens<PageStart>;
  readonly maxTake: number;
  /** Lists whose envelope is in a member `value`. */
  readonly wrapped: readonly Resource[];
  readonly lessons: Lessons;
}

const COMPANY = '/api/companies/:company_id';
const COMPANY_V2 = '/api/v2.0/companies/:company_id';

/** The lists of the API: address, records and paging. */
const LISTS: readonly (readonly ['GET' | 'POST', string, Resource, (request: PageRequest) => Page])[] = [
  ['GET', `${COMPANY}/employees`, 'employees', (request) => totalled(request, 'skip', '$take')],
  ['POST', `${COMPANY_V2}/departments/list`, 'departments', (request) => totalled(request, 'skip', 'take')],
  ['GET', `${COMPANY}/absences`, 'absences', (request) => totalled(request, '$skip', '$top')],
  ['GET', `${COMPANY}/documents-legacy`, 'documents', continued],
  ['POST', `${COMPANY_V2}/documents/list`, 'documents', continued],
  ['GET', `${COMPANY}/contracts`, 'contracts', numbered],
  ['GET', '/odata/companies/:company_id/shifts', 'shifts', linkedInBody],
  ['GET', `${COMPANY}/notes`, 'notes', totalledInHeader],
  ['GET', `${COMPANY}/positions`, 'positions', linkedInHeader],
  ['POST', `${COMPANY_V2}/payslips/list`, 'payslips', afterLastId],
  ['GET', `${COMPANY}/timesheets`, 'timesheets', continuedInHeader],
];

/** The routes of {base_url}: each company's own record, and lists in every style of paging. docs/configuration.md shows how to mirror them. */
export function listRoutes(app: FastifyInstance, options: ListOptions): void {
  const { world, grants, lessons } = options;
  const preHandler = async (request: FastifyRequest) => void requireAccess(grants, request);
  app.get(COMPANY, { preHandler }, (request, reply) => reply.type(JSON_TYPE).send(world.companyRecord(companyOf(request))));
  for (const [method, url, resource, read] of LISTS) {
    const handler = (request: FastifyRequest, reply: FastifyReply) => {
      const pageRequest = new PageRequest(request, resource, options);
      const page = read(pageRequest);
      return sendFetched(reply, lessons.change(companyOf(request), pageRequest.answered(page)), page.wrap);
    };
    app.route({ method, url, preHandler, handler, config: { resource } });
  }
}

function sendFetched(reply: FastifyReply, { status, headers, records, members }: FetchedPage, wrap: string | undefined) {
  reply.code(status).headers(headers);
  if (status === 204 || status === 304) return reply.send();
  const data = `[${records.join(',')}]`;
  return members ? sendMembers(reply, members(data), wrap) : reply.type(JSON_TYPE).send(data);
}

function companyOf(request: FastifyRequest): string {
  return visitOf(request).entry.companyId ?? '';
}

function requireAccess(grants: Grants, request: FastifyRequest): Person {
  const [, token] = /^bearer +(\S+)$/i.exec(request.headers.authorization ?? '') ?? [];
  if (token === undefined) throw unauthorized('The request carries no bearer token.', 'Bearer realm="sandbox"');
  const checked = grants.check(token);
  if ('problem' in checked) throw unauthorized(`The access token is ${checked.problem}.`);
  if (checked.companyId !== companyOf(request)) throw unauthorized('The access token is for another company.');
  return checked.person;
}

function unauthorized(message: string, challenge = 'Bearer realm="sandbox", error="invalid_token"'): Refusal {
  return new Refusal(401, 'unauthorized', message, { 'www-authenticate': challenge });
}

interface Page {
  /** The records as JSON texts. */
  readonly data: readonly string[];
  /** The members of the envelope as JSON texts, given the array of the records; undefined for a bare array. */
  readonly members?: (data: string) => Members;
  /** The member of an outer object that holds the envelope. */
  readonly wrap?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A request for a page of a list. Its methods refuse invalid paging input. */
class PageRequest {
  readonly input: Readonly<Record<string, unknown>>;
  readonly records: RecordList;
  /** The member that holds the envelope. */
  readonly wrap: string | undefined;
  readonly origin: string;
  readonly path: string;
  readonly #inQuery: boolean;
  readonly #clamp: number;
  readonly #name: string;
  /** The place of the served page in the list. */
  #place: Pick<FetchedPage, 'isFirst' | 'isLast' | 'position'> = { isFirst: true, isLast: true, position: undefined };

  constructor(
    readonly request: FastifyRequest,
    readonly resource: Resource,
    readonly options: ListOptions,
  ) {
    const { entry, effect } = visitOf(request);
    this.#inQuery = request.method === 'GET';
    const input = this.#inQuery ? request.query : request.body;
    if (input === undefined) throw invalid('The body must be a JSON object, and Content-Type application/json.');
    this.input = input as Readonly<Record<string, unknown>>;
    const { hides = [] } = requireAccess(options.grants, request);
    const hidden = new Set([...hides, ...options.lessons.hidden(companyOf(request), resource)]);
    this.records = options.world.list(companyOf(request), resource).without(hidden);
    this.wrap = options.wrapped.includes(resource) ? 'value' : undefined;
    this.origin = `${request.protocol}://${request.host}`;
    this.path = entry.path;
    this.#name = `${companyOf(request)} ${resource}`;
    this.#clamp = effect?.kind === 'clamp' ? effect.take : Infinity;
  }

  /** Numbers are digits in a query, and numbers in a JSON body, where digits in quotes are refused. */
  integer(name: string, least: number, missing?: number): number {
    const value = this.input[name] ?? missing;
    if (value === undefined) throw invalid(`Paging is mandatory: ${name} is missing.`);
    const number = this.#inQuery && /^\d{1,9}$/.test(String(value)) ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isInteger(number) || number < least) {
      throw invalid(`${name} must be an integer of at least ${least}.`);
    }
    return number;
  }

  /** The requested size, up to the maximum of the service. */
  size(name: string): number {
    return Math.min(this.integer(name, 1), this.options.maxTake);
  }

  slice(skip: number, size: number): string[] {
    const data = this.records.slice(skip, Math.min(size, this.#clamp));
    this.#place = { isFirst: skip === 0, isLast: skip + data.length >= this.records.size, position: skip };
    return data;
  }

  answered({ data, members, headers = {} }: Page): FetchedPage {
    const { resource, request, records } = this;
    const ifNoneMatch = request.headers['if-none-match'];
    return { resource, ...this.#place, total: records.size, ifNoneMatch, status: 200, headers, records: data, members };
  }

  /** The page of the token in `input`, or the first page, and the token of the next page, if any. */
  follow(tokenName: string, sizeName: string): { data: string[]; next: string | undefined } {
    const token = this.input[tokenName] ?? undefined;
    const issued = this.options.tokens.read(String(token));
    const place = issued && !issued.isExpired && issued.value.list === this.#name ? issued.value.place : undefined;
    const { texts, next } = this.after(token, place, this.size(sizeName));
    return { data: texts, next: next && this.options.tokens.issue({ list: this.#name, place: next }) };
  }

  /** The page after the place of `token`. */
  after(token: unknown, place: Place | undefined, size: number): { texts: string[]; next: Place | undefined } {
    const isKnown = token === undefined || place !== undefined;
    const page = isKnown ? this.records.after(place, Math.min(size, this.#clamp)) : undefined;
    if (page) {
      this.#place = { isFirst: token === undefined, isLast: page.next === undefined, position: undefined };
      return page;
    }
    throw new Refusal(400, 'invalid_page_token', 'The continuation token is unknown or expired: begin again without one.');
  }
}

function invalid(message: string): Refusal {
  return new Refusal(400, 'invalid_paging', message);
}

/** The result envelope over an offset. */
function totalled(request: PageRequest, skipName: string, takeName: string): Page {
  const data = request.slice(request.integer(skipName, 0, 0), request.size(takeName));
  const totals = { totalRecords: String(request.records.size), totalDisplayRecords: String(data.length) };
  return { data, members: (records) => ({ ...totals, data: records }), wrap: request.wrap };
}

/** A bare array over an offset, which ends with an empty page. */
function endless(request: PageRequest): Page {
  return { data: request.slice(request.integer('skip', 0, 0), request.size('take')) };
}

function totalledInHeader(request: PageRequest): Page {
  return { ...endless(request), headers: { 'x-total-count': String(request.records.size) } };
}

/** Pages by number, and a constant that every request must have. */
function numbered(request: PageRequest): Page {
  if (request.input.expand !== 'department') throw invalid('expand must be department.');
  const size = request.size('pageSize');
  const count = String(request.records.size);
  const data = request.slice((request.integer('page', 1, 1) - 1) * size, size);
  return { data, members: (items) => ({ items, count }), wrap: 'value' };
}

/** The continuation-token envelope. */
function continued(request: PageRequest): Page {
  const { data, next } = request.follow('continuationToken', 'pageSize');
  const tokens = { hasNextPage: String(next !== undefined), nextPageToken: next === undefined ? 'null' : JSON.stringify(next) };
  return { data, members: (records) => ({ ...tokens, data: records }), wrap: request.wrap };
}

function continuedInHeader(request: PageRequest): Page {
  const { data, next } = request.follow('cursor', 'limit');
  return { data, members: (rows) => ({ rows }), ...(next !== undefined && { headers: { 'x-next-cursor': next } }) };
}

/** OData with server-driven paging. The link is absolute, on the origin of the request. */
function linkedInBody(request: PageRequest): Page {
  const { data, next } = request.follow('$skiptoken', '$top');
  const link = `${request.origin}${request.path}?$top=${request.integer('$top', 1)}&$skiptoken=${next}`;
  const members = (value: string) => ({
    '@odata.context': JSON.stringify(`${request.origin}/odata/$metadata#shifts`),
    '@odata.count': String(request.records.size),
    value,
    ...(next !== undefined && { '@odata.nextLink': JSON.stringify(link) }),
  });
  return { data, members };
}

/** Relative links in the Link header. Without per_page, pages are served by offset. */
function linkedInHeader(request: PageRequest): Page {
  if (!('per_page' in request.input)) return endless(request);
  const { data, next } = request.follow('cursor', 'per_page');
  const first = `${request.path}?per_page=${request.integer('per_page', 1)}`;
  const links = [...(next === undefined ? [] : [`<${first}&cursor=${next}>; rel="next"`]), `<${first}>; rel="first"`];
  return { data, headers: { link: links.join(', ') } };
}

/** A continuation whose cursor is the id of the last record. It stays valid when that record leaves. */
function afterLastId(request: PageRequest): Page {
  const id = request.input.after ?? undefined;
  const { texts, next } = request.after(id, request.records.placeOf(String(id)), request.size('limit'));
  return { data: texts, members: (items) => ({ items, more: String(next !== undefined) }) };
}
