import type { FieldNames } from '../pagers/fields.js';
import type { PageInput } from '../pagers/pager.js';
import type { PagerSpec } from '../pagers/registry.js';
import type { Privacy } from '../privacy/rules.js';
import type { DeclaredColumns } from './declared-columns.js';

/** A person decides if more than `share` of the living rows, and at least `rows` of them, would be deleted at once. */
export interface DeleteGuard {
  /** Share of the living rows, 0 to 1. */
  readonly share: number;
  /** The guard ignores deletions of fewer rows. */
  readonly rows: number;
}

/** One list endpoint of the service: a catalogue entry with all defaults filled in. */
export interface Endpoint {
  /** Name of the resource, and of its table in schema mirror. */
  readonly resource: string;
  readonly method: 'GET' | 'POST';
  /** Name of the further host of the API that has the list; undefined: {base_url}. */
  readonly base?: string;
  /** Path on {base_url}; holds `{company_id}`, and `{id}` if the list has a parent. */
  readonly path: string;
  /** Constants sent with every request in addition to the pager's parameters, but not with a link from a page. */
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly pager: PagerSpec;
  /** Candidates for the record's id (id-candidate.ts); the first that the records have is used. */
  readonly id: readonly string[];
  /** Dot path to the paging envelope in the response; '' = the response itself; 'none' = a bare array. */
  readonly envelope: string;
  /** Places of the values of a page, if they are not the usual ones. */
  readonly fields?: FieldNames;
  readonly order: 'stable' | 'unstable';
  /** The ETags that prove a response unchanged, including its totals and tokens. */
  readonly etag: 'strong' | 'weak' | 'ignore';
  readonly parent?: string;
  /** A company may lack this list. If it was never received for a company, a refusal makes it unavailable there and fails no run. */
  readonly optional?: true;
  /** When the list is walked, as cron in the time zone of SYNC_CRON; undefined: every night. */
  readonly schedule?: string;
  /** Levels of nested objects whose members become columns of the typed views, 1 to 4; undefined: 1. */
  readonly flatten?: number;
  /** Privacy rules, applied to records before anything else; undefined: none. */
  readonly privacy?: Privacy;
  /** Declared types of warehouse columns; undefined: all are inferred. */
  readonly columns?: DeclaredColumns;
  /** Dot paths of members that hold ids of another list's records, or of this one's, and the name of that list. */
  readonly references?: Readonly<Record<string, string>>;
  readonly deleteGuard: DeleteGuard;
}

/** The endpoints by resource, in the order in which a run walks them: parents before children. */
export interface Catalogue {
  readonly endpoints: readonly Endpoint[];
  get(resource: string): Endpoint | undefined;
}

/** The lists that are walked by a schedule of their own, with it. */
export function scheduledLists({
  endpoints,
}: Pick<Catalogue, 'endpoints'>): { readonly resource: string; readonly schedule: string }[] {
  return endpoints.flatMap(({ resource, schedule }) => (schedule === undefined ? [] : [{ resource, schedule }]));
}

/** The lists that are walked every night. */
export function nightlyLists({ endpoints }: Pick<Catalogue, 'endpoints'>): string[] {
  return endpoints.filter(({ schedule }) => schedule === undefined).map(({ resource }) => resource);
}

/** These lists with their parents, in the order in which a run walks them: the proof of a list is never newer than that of its parent. */
export function withParents({ endpoints }: Pick<Catalogue, 'endpoints'>, resources: readonly string[]): string[] {
  const isWanted = ({ resource }: Endpoint) => resources.includes(resource);
  const parents = new Set(endpoints.filter(isWanted).map(({ parent }) => parent));
  return endpoints.filter((each) => isWanted(each) || parents.has(each.resource)).map(({ resource }) => resource);
}

/** The levels of nested objects whose members become columns, by resource; resources with one level are left out. */
export function flattenLevels({ endpoints }: Catalogue): Readonly<Record<string, number>> {
  return Object.fromEntries(endpoints.flatMap(({ resource, flatten }) => (flatten === undefined ? [] : [[resource, flatten]])));
}

/** The request for a page of a company's list; of a child list, for one parent. */
export function pageRequest(endpoint: Endpoint, companyId: string, { query, body, link }: PageInput, parent = '') {
  return {
    method: endpoint.method,
    path: endpoint.path.replace('{company_id}', companyId).replace('{id}', () => encodeURIComponent(parent)),
    query: link === undefined ? { ...endpoint.query, ...query } : query,
    body: (endpoint.body || body) && { ...endpoint.body, ...body },
    link,
  };
}
