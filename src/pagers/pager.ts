import type { KeyHashes } from './hashes.js';

/** Any value that JSON can hold; a pager's state is one, because the state IS the checkpoint. */
export type JsonObject = { readonly [key: string]: unknown };

/** What to put into the request of a page, beside what the endpoint itself says. */
export interface PageInput {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
}

/** What a page says of itself, once its envelope was read and found consistent. */
export interface Page {
  /** What its records are known by, in the order received. */
  readonly keys: KeyHashes;
  /** totalRecords, where the envelope gives it. */
  readonly total?: number | undefined;
  /** The token of the next page; undefined = this was the last page of a token list, or the list has no tokens. */
  readonly nextToken?: string | undefined;
}

/** What this pass has received so far; rebuilt from the ledger after a restart. */
export interface PassMemory {
  hasAny(keys: KeyHashes): boolean;
  hasAll(keys: KeyHashes): boolean;
  hasToken(token: string): boolean;
  /** Distinct keys received in this pass. */
  readonly size: number;
}

/**
 * What follows from a page:
 * - `next`: the page counts; go on with `state`.
 * - `done`: the page counts; the list was read to its end.
 * - `again`: the page does not join what was received before: leave it, and ask with `state` (further back).
 */
export type Advance<S extends JsonObject> =
  | { readonly kind: 'next'; readonly state: S }
  | { readonly kind: 'done' }
  | { readonly kind: 'again'; readonly state: S };

/**
 * A pure state machine for one pass over a list.
 *
 * `next` throws MusterError: `contradicting_envelope` (asking for the same page again may help), `page_token_loop`,
 * `walk_limit_exceeded` (the pass is lost, a new one begins with `first`).
 */
export interface Pager<S extends JsonObject = JsonObject> {
  first(): S;
  request(state: S): PageInput;
  /** `memory` holds what the pages that counted brought, and nothing of `page` itself or of pages left by `again`. */
  next(state: S, page: Page, memory: PassMemory): Advance<S>;
  /**
   * What the requests after this one will be if every page brings what it is asked for, but for the first `skip` of them; at most
   * `count`, [] when unknown.
   */
  ahead(state: S, skip: number, count: number): readonly PageInput[];
}
