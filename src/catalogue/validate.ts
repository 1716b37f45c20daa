import type { z } from 'zod';
import { type Fault, FaultsError } from '../core/errors.js';
import { isObject, type Members, present } from '../core/json.js';
import { nearestName } from '../core/nearest-name.js';
import { faultOfCandidate } from '../pagers/id-candidate.js';
import { type PagerSpec, styleNamed } from '../pagers/registry.js';
import type { PrivacyKey } from '../privacy/privacy-key.js';
import { faultsOfRules } from '../privacy/rule-faults.js';
import { privacyOf } from '../privacy/rules.js';
import { faultsOfColumns } from './declared-columns.js';
import type { Catalogue, Endpoint } from './endpoint.js';
import { type CatalogueEntry, DELETE_GUARD_SCHEMA, ENTRY_SCHEMA, FIELDS_SCHEMA } from './entry-schema.js';
import { faultsOfReferences } from './reference-faults.js';
import { isOwnName, listWithSameNames } from './view-names.js';

const RESOURCE = /^[a-z][a-z0-9_]{0,40}$/;

const EXAMPLES: Readonly<Record<string, string>> = {
  method: 'GET',
  path: '/api/companies/{company_id}/absences',
  base: 'numbers',
  pager: '{ style: skip-take, in: query, size: 500 }',
  style: 'skip-take',
  in: 'query',
  size: '500',
  skipName: 'skip',
  takeName: 'take',
  tokenName: 'continuationToken',
  sizeName: 'pageSize',
  id: '[uid, attributes.id.value, [userId, startDate]]',
  envelope: 'value',
  order: 'stable',
  etag: 'strong',
  parent: 'employees',
  optional: 'true',
  schedule: '"30 1 * * *"',
  flatten: '3',
  deleteGuard: '{ share: 0.2, rows: 10 }',
  pageName: 'page',
  first: '1',
  fields: '{ data: value.items, total: value.count }',
  data: 'value.items',
  total: 'value.count',
  hasNext: 'paging.hasMore',
  next: 'paging.next',
  ignore: '[meta.nextRun]',
  constants: 'keep',
  hosts: '[api-7.example.com]',
  query: '{ expand: department }',
  body: '{ active: true }',
  share: '0.2',
  rows: '10',
  privacy: '{ nationalId: drop, email: mask, address.street: hash }',
  columns: '{ terminationDate: date, amount: "numeric(12,2)", address.street: text }',
  references: '{ departmentId: departments, manager.id: employees }',
};
const ENTRY_EXAMPLE = `absences: { method: GET, path: ${EXAMPLES['path']}, pager: ${EXAMPLES['pager']} }`;

/**
 * Makes a catalogue from the contents of a file. Throws FaultsError `invalid_catalogue` with every fault; `source` names the file. Without a key the
 * catalogue can be read, but lists with a `hash` rule cannot be walked.
 */
export function validateCatalogue(input: unknown, source: string, key?: PrivacyKey): Catalogue {
  if (!isObject(input) || Object.keys(input).length === 0) {
    throw faultsError(source, [{ where: source, problem: 'must be a map with one entry a list', example: ENTRY_EXAMPLE }]);
  }
  const faults: Fault[] = [];
  const endpoints: Endpoint[] = [];
  for (const [resource, raw] of Object.entries(input)) {
    const parsed = ENTRY_SCHEMA.safeParse(raw);
    if (parsed.success) endpoints.push(toEndpoint(resource, parsed.data, key));
    else faults.push(...parsed.error.issues.flatMap((issue) => faultsOfIssue(resource, raw, issue)));
    faults.push(...nameFaults(resource, input), ...relationFaults(resource, raw, input));
  }
  if (faults.length > 0) throw faultsError(source, faults);
  return catalogueOf(endpoints);
}

function catalogueOf(endpoints: readonly Endpoint[]): Catalogue {
  const parentsFirst = [
    ...endpoints.filter(({ parent }) => parent === undefined),
    ...endpoints.filter(({ parent }) => parent !== undefined),
  ];
  const byResource = new Map(parentsFirst.map((endpoint) => [endpoint.resource, endpoint]));
  return { endpoints: parentsFirst, get: (resource) => byResource.get(resource) };
}

function toEndpoint(
  resource: string,
  {
    base,
    parent,
    optional,
    flatten,
    schedule,
    envelope,
    query,
    body,
    fields,
    columns,
    privacy: rules,
    references,
    ...entry
  }: CatalogueEntry,
  key: PrivacyKey | undefined,
): Endpoint {
  const privacy = privacyOf(rules, key);
  const pager = { ...entry.pager, in: entry.pager.in ?? (entry.method === 'GET' ? 'query' : 'body') } as PagerSpec;
  return {
    resource,
    ...entry,
    pager,
    envelope: envelope ?? '',
    ...present({
      base,
      query,
      body,
      fields,
      parent,
      privacy,
      columns,
      references,
      flatten,
      schedule,
      optional: optional || undefined,
    }),
  };
}

function nameFaults(resource: string, all: Members): Fault[] {
  const example = 'absences';
  if (isOwnName(resource)) return [{ where: resource, problem: 'is the name of a table of its own; choose another', example }];
  const same = listWithSameNames(resource, Object.keys(all));
  if (same) {
    const problem = `needs the name ${same.name}, which is kept for the views and functions of ${same.list}; choose another`;
    return [{ where: resource, problem, example }];
  }
  if (RESOURCE.test(resource)) return [];
  return [
    { where: resource, problem: 'cannot name a table; use a-z, 0-9 and _, a letter first, at most 41 characters', example },
  ];
}

/** Checks relations between members and between entries. It reads the raw input, so that no other fault hides these. */
function relationFaults(resource: string, raw: unknown, all: Members): Fault[] {
  if (!isObject(raw)) return [];
  const { method, path, parent, envelope } = raw;
  const pager = isObject(raw['pager']) ? raw['pager'] : {};
  const faults: Fault[] = [];
  const fault = (member: string, problem: string, example = EXAMPLES[member.split('.').at(-1) ?? '']) =>
    faults.push({ where: `${resource}.${member}`, problem, ...(example === undefined ? {} : { example }) });

  if (method === 'GET' && pager['in'] === 'body') fault('pager.in', 'must be query: a GET has no body');
  const style = styleNamed(pager['style']);
  const fields = isObject(raw['fields']) ? raw['fields'] : {};
  const { next } = fields;
  for (const rule of faultsOfRules(raw['privacy'], idsOf(raw), next))
    fault(`privacy.${rule.path}`, rule.problem, EXAMPLES['privacy']);
  for (const { path: at, problem } of faultsOfColumns(raw['columns'])) fault(`columns.${at}`, problem, EXAMPLES['columns']);
  for (const reference of faultsOfReferences(raw, Object.keys(all)))
    fault(`references.${reference.path}`, reference.problem, EXAMPLES['references']);
  const isBare = envelope === 'none' || fields['data'] === 'none';
  const standsInArray = [fields['total'], fields['hasNext'], next].some((place) =>
    /^(?!header |last |none$)/.test(String(place ?? 'none')),
  );
  if (isBare && style?.namesNextPage === 'token' && !/^(header|last) /.test(String(next))) {
    const where = envelope === 'none' ? 'envelope' : 'fields.data';
    fault(
      where,
      'must not be none: a bare array has no place for the page token, unless fields.next names a header or the last record',
    );
  } else if (isBare && standsInArray) fault('fields', 'must name headers only: a bare array has no members');
  if (envelope === 'none' && fields['data'] !== undefined && fields['data'] !== 'none')
    fault('fields.data', 'must be left out: envelope: none says that the answer is a bare array');
  if (fields['data'] === 'none' && envelope !== undefined && envelope !== 'none')
    fault('envelope', 'must be left out: fields.data: none says that the answer is a bare array, without an envelope', 'none');
  if (next === 'none' && style?.namesNextPage) fault('fields.next', 'must not be none: the pages of this style name each other');
  const places = Object.entries(fields).filter(([field, place]) => field !== 'ignore' && place !== 'none');
  for (const [n, [field, place]] of places.entries()) {
    const [other] = places.slice(0, n).find(([, each]) => each === place) ?? [];
    if (other !== undefined) fault(`fields.${field}`, `must not be ${String(place)}, which is the place of fields.${other}`);
  }
  if (next !== undefined && style && !style.namesNextPage)
    fault('fields.next', 'is not known: the pages of this style do not name each other');
  if (style?.namesNextPage === 'link' && method === 'POST') fault('method', 'must be GET: a link is followed by GET');
  if (method === 'GET' && raw['body'] !== undefined) fault('body', 'must be left out: a GET has no body');
  const spec = style?.schema.safeParse(pager).data ?? {};
  const parameters = new Set<unknown>(Object.entries(spec).flatMap(([member, name]) => (member.endsWith('Name') ? [name] : [])));
  for (const place of ['query', 'body'] as const) {
    for (const [name, value] of Object.entries(isObject(raw[place]) ? raw[place] : {})) {
      if (parameters.has(name)) fault(`${place}.${name}`, 'is a parameter of the pager, which sets it itself');
      const [placeholder] = /\{(company_id|id)\}/.exec(JSON.stringify(value)) ?? [];
      if (placeholder !== undefined) fault(`${place}.${name}`, `holds ${placeholder}, which is known in the path only`);
    }
  }
  if (typeof path === 'string') {
    const held: string[] = path.match(/\{[^}]*\}?/g) ?? [];
    const placeholders = new Set(held);
    for (const each of placeholders)
      if (held.indexOf(each) !== held.lastIndexOf(each)) fault('path', `must hold ${each} only once`);
    if (!placeholders.has('{company_id}')) fault('path', 'must hold {company_id}');
    if (parent !== undefined && !placeholders.has('{id}')) {
      fault('path', 'must hold {id}, since the list has a parent', '/api/companies/{company_id}/employees/{id}/absences');
    }
    if (parent === undefined && placeholders.has('{id}')) fault('path', 'holds {id}, which only a list with a parent has');
    for (const unknown of placeholders) {
      if (unknown !== '{company_id}' && unknown !== '{id}')
        fault('path', `holds ${unknown}, but only {company_id} and {id} are known`);
    }
    if (/(^|\/)(\.|%2e){1,2}(\/|$)/i.test(path)) fault('path', 'must not hold the segments . and ..');
  }
  if (typeof parent === 'string') {
    const others = Object.keys(all).filter((name) => name !== resource);
    if (parent === resource) fault('parent', 'must not be the list itself');
    else if (!others.includes(parent)) fault('parent', `names no list of this catalogue${hint(parent, others)}`);
    else if (isObject(all[parent]) && all[parent]['parent'] !== undefined)
      fault('parent', `must have no parent itself; ${parent} has one`);
  }
  return faults;
}

function faultsOfIssue(resource: string, raw: unknown, issue: z.core.$ZodIssue): Fault[] {
  const where = issue.path.reduce<string>(
    (place, part) => (typeof part === 'number' ? `${place}[${part}]` : `${place}.${String(part)}`),
    resource,
  );
  if (issue.code === 'unrecognized_keys') {
    const known = knownMembers(raw, issue.path[0]);
    return issue.keys.map((key) => ({
      where: `${where}.${key}`,
      problem: `is not known${hint(key, known)}`,
      example: known.join(', '),
    }));
  }
  const isMap = ['privacy', 'columns', 'references'].includes(String(issue.path[0]));
  const member = isMap ? (issue.path[0] as string) : issue.path.findLast((part) => typeof part === 'string');
  return [{ where, problem: issue.message, example: member === undefined ? ENTRY_EXAMPLE : (EXAMPLES[member] ?? ENTRY_EXAMPLE) }];
}

function knownMembers(raw: unknown, member: PropertyKey | undefined): string[] {
  if (member === 'deleteGuard') return Object.keys(DELETE_GUARD_SCHEMA.shape);
  if (member === 'fields') return Object.keys(FIELDS_SCHEMA.shape);
  if (member !== 'pager') return Object.keys(ENTRY_SCHEMA.shape);
  const style = isObject(raw) && isObject(raw['pager']) ? raw['pager']['style'] : undefined;
  return Object.keys(styleNamed(style)?.schema.shape ?? {});
}

function hint(name: string, known: readonly string[]): string {
  const meant = nearestName(name, known);
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

function faultsError(source: string, faults: readonly Fault[]): FaultsError {
  return new FaultsError(
    'invalid_catalogue',
    `The catalogue (${source}) is wrong in ${faults.length} ${faults.length === 1 ? 'place' : 'places'}:`,
    faults,
  );
}

/** The members, or dot paths, that may be part of the id. Candidates with faults are left out. */
function idsOf({ id = ENTRY_SCHEMA.shape.id.parse(undefined) }: Members): readonly string[] {
  const candidates: readonly unknown[] = Array.isArray(id) ? id : [];
  return candidates.filter((each) => faultOfCandidate(each) === undefined).flatMap((each) => each as string | string[]);
}
