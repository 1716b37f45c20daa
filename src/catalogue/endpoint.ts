/** How a list is paged and how its parameters are spelt. Sizes are records a page. */
export type PagerSpec =
  | {
      readonly style: 'skip-take';
      readonly in: 'query' | 'body';
      readonly skipName: string;
      readonly takeName: string;
      readonly size: number;
    }
  | { readonly style: 'odata'; readonly in: 'query'; readonly skipName: string; readonly takeName: string; readonly size: number }
  | {
      readonly style: 'continuation';
      readonly in: 'query' | 'body';
      readonly tokenName: string;
      readonly sizeName: string;
      readonly size: number;
    };

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
  /** Path on {base_url}; holds `{company_id}`, and `{id}` when it has a parent. */
  readonly path: string;
  readonly pager: PagerSpec;
  /** Candidates for the record's id; the first one that the records carry is it. */
  readonly id: readonly string[];
  /** Dot path to the paging envelope in the response; '' = the response itself; 'none' = a bare array. */
  readonly envelope: string;
  readonly order: 'stable' | 'unstable';
  /** Which ETags stand for an answer that has not changed in anything, its totals and tokens included. */
  readonly etag: 'strong' | 'weak' | 'ignore';
  readonly parent?: string;
  readonly deleteGuard: DeleteGuard;
}

/** The endpoints by resource, in the order in which a run walks them: parents before children. */
export interface Catalogue {
  readonly endpoints: readonly Endpoint[];
  get(resource: string): Endpoint | undefined;
}
