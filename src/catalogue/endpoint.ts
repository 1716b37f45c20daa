import type { FieldNames } from '../pagers/fields.js';
import type { PagerSpec } from '../pagers/registry.js';
import type { Privacy } from '../privacy/rules.js';

/** When more than `share` of the living rows, and at least `rows` of them, would go at once, a person decides. */
export interface DeleteGuard {
  /** Share of the living rows, 0 to 1. */
  readonly share: number;
  /** Below so many rows the guard stays out of the way. */
  readonly rows: number;
}

/** One list endpoint of the service: what a catalogue entry says, with every default filled in. */
export interface Endpoint {
  /** Name of the resource, and of its table in schema mirror. */
  readonly resource: string;
  readonly method: 'GET' | 'POST';
  /** Name of the further host of the API that has the list; undefined: {base_url} has. */
  readonly base?: string;
  /** Path on {base_url}; holds `{company_id}`, and `{id}` when it has a parent. */
  readonly path: string;
  /** Constants sent with every request, beside what the pager asks with; not with a link that a page gave. */
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly pager: PagerSpec;
  /** Candidates for the record's id (id-candidate.ts); the first one that the records carry is it. */
  readonly id: readonly string[];
  /** Dot path to the paging envelope in the response; '' = the response itself; 'none' = a bare array. */
  readonly envelope: string;
  /** Where the values of a page stand, where that is not as SERVICE.md has it. */
  readonly fields?: FieldNames;
  readonly order: 'stable' | 'unstable';
  /** Which ETags stand for an answer that has not changed in anything, its totals and tokens included. */
  readonly etag: 'strong' | 'weak' | 'ignore';
  readonly parent?: string;
  /** A company may lack it: a refusal of a list that was never received for a company makes it unavailable there, and fails no run. */
  readonly optional?: true;
  /** What is done to members of its records before anything else is; undefined where nothing is. */
  readonly privacy?: Privacy;
  readonly deleteGuard: DeleteGuard;
}

/** The endpoints by resource, in the order in which a run walks them: parents before children. */
export interface Catalogue {
  readonly endpoints: readonly Endpoint[];
  get(resource: string): Endpoint | undefined;
}
