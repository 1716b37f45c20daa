import type { MusterError } from '../core/errors.js';
import type { Sign } from './around.js';
import type { Doubted } from './doubt.js';
import type { Envelope } from './page-envelope.js';
import type { ParsedResponse } from './parsed-response.js';

/** Any value that JSON can hold; a pager's state is one, because the state IS the checkpoint. */
export type JsonObject = { readonly [key: string]: unknown };

/** The parameters of a page's request, besides the endpoint's. */
export interface PageInput {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Path and query on the API's own origin, in the place of the endpoint's path and constants. `query` is added to it. */
  readonly link?: string;
}

/** A page whose envelope was read and found consistent. */
export interface Page extends Envelope {
  /** Records on the page, rejected ones included. */
  readonly count: number;
}

/** The pages that the pass had received before; rebuilt from the ledger after a restart. */
export interface Received {
  /** Records of the page whose keys the pass had received on earlier pages. */
  readonly repeats: number;
  /** Whether the page has the very records of the first page of the pass, in their order. */
  readonly isFirstPage: boolean;
  /** Whether the page, if it has records, ends with all those of the last page that had any, in their order. */
  readonly endsAsBefore: boolean;
  /** Whether an earlier page of the pass gave this token. */
  hasToken(token: string | number): boolean;
}

/**
 * The consequence of a page:
 * - `next`: the page counts; go on with `state`.
 * - `done`: the page counts; the list was read to its end, or seems to have been where it is `doubted`. `overruled` says more, and the list's total or its own words overrule it.
 * - `again`: the page does not join what was received before: leave it, and ask with `state` (further back).
 */
export type Advance<S extends JsonObject> =
  | { readonly kind: 'next'; readonly state: S }
  | { readonly kind: 'done'; readonly doubted?: Doubted | undefined; readonly overruled?: Sign | undefined }
  | { readonly kind: 'again'; readonly state: S };

/**
 * The meaning of an error for its pass:
 * - `token-lost`: what leads to the next page is not known any more; only the beginning of the list is left.
 * - `contradicted`: the list contradicts its totals.
 * - `ended`: no page follows the last one, which is the end of the list.
 * - `again`: the page is to be asked for with another state.
 */
export type ErrorMeaning<S extends JsonObject> =
  | { readonly kind: 'token-lost' }
  | { readonly kind: 'contradicted' }
  | { readonly kind: 'ended'; readonly doubted?: Doubted | undefined }
  | { readonly kind: 'again'; readonly state: S };

/** How the pages of a pass hang together: each overlaps with the page before it, each was named by the page before it, or neither. */
export type Linkage = 'join' | 'token-chain' | 'none';

/**
 * A pure state machine for one pass over a list, and all that depends on the list's paging style. A pager keeps nothing between
 * calls: one serves any number of passes.
 *
 * `next` throws MusterError: `contradicting_envelope` (asking for the same page again may help), `page_token_loop`,
 * `walk_limit_exceeded` (the pass is lost, a new one begins with `first`), `malformed_envelope`, `pager_misdeclared`.
 */
export interface Pager<S extends JsonObject = JsonObject> {
  /** The members that lead from the response to its array of records; [] = the response is the array. */
  readonly dataPath: readonly string[];
  /** Whether readEnvelope asks for the text of the page's last record. */
  readonly readsLastRecord: boolean;
  /** Whether some value of a page is in a header, about which an ETag of the body says nothing. */
  readonly readsHeaders: boolean;
  /** Whether a page may begin with records that the pass has already. Where it may not, a record that comes again has the id of another one. */
  readonly overlaps: boolean;
  first(): S;
  request(state: S): PageInput;
  /** `received` tells of the pages that counted, and nothing of `page` itself or of pages left by `again`. */
  next(state: S, page: Page, received: Received): Advance<S>;
  /**
   * The requests that will follow this one if every page brings what it is asked for, without the first `skip` of them; at most
   * `count`, [] when unknown.
   */
  ahead(state: S, skip: number, count: number): readonly PageInput[];
  /** Reads the values around a page's records. Throws MusterError `malformed_envelope` or `contradicting_envelope`. */
  readEnvelope(response: ParsedResponse, ignoreTotals: boolean): Envelope;
  /** The request for the page after the one that ended the list, which had `count` records; undefined where only that page could name another. */
  beyond(state: S, count: number): PageInput | undefined;
  /** How the pages of a pass hang together, asked with the state whose page ended it. */
  linkage(state: S): Linkage;
  /** How many records the list had when it ended, told by where the page of `count` records stood that ended it; undefined where the place tells nothing. */
  lengthAtEnd(state: S, count: number): number | undefined;
  /** The meaning of an error for its pass; undefined: it ends the walk. */
  meaningOf(error: MusterError, state: S): ErrorMeaning<S> | undefined;
}
