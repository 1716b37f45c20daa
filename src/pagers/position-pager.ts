import type { MusterError } from '../core/errors.js';
import type { Sign } from './around.js';
import { EnvelopeFields, type ListShape, readTotals } from './envelope.js';
import { countFirstPages, type FirstPageState } from './first-page-again.js';
import { type EndState, saidOfMore, withDoubts } from './inferred-end.js';
import type { Envelope } from './page-envelope.js';
import type { Advance, ErrorMeaning, JsonObject, Linkage, Page, PageInput, Pager, Received } from './pager.js';
import type { ParsedResponse } from './parsed-response.js';
import { MAX_BARREN_POSITIONS, maxRequests, passLimitExceeded } from './pass-limits.js';
import { type RefusedPage, refusedPage } from './refusal.js';
import type { Here } from './signs-of-more.js';

export type PositionState = EndState &
  FirstPageState & {
    /** Pages in a row that brought no new record. */
    readonly barren: number;
    /** Newest total. */
    readonly total?: number | undefined;
    /** Requests that this pass may take; known after the first page. */
    readonly limit?: number;
  };

interface PositionSpec {
  readonly in: 'query' | 'body';
  readonly size: number;
}

/** Paging by the place of a page in its list: an index, or the number of a page. */
export abstract class PositionPager<S extends JsonObject & PositionState, Spec extends PositionSpec> implements Pager<S> {
  readonly overlaps = true;
  readonly readsLastRecord = false;
  protected readonly fields: EnvelopeFields;
  protected readonly resource: string;
  protected readonly spec: Spec;

  constructor(list: ListShape, spec: Spec) {
    this.fields = new EnvelopeFields(list, { total: 'totalRecords' });
    this.resource = list.resource;
    this.spec = spec;
  }

  get readsHeaders(): boolean {
    return this.fields.readsHeaders;
  }

  get dataPath(): readonly string[] {
    return this.fields.dataPath;
  }

  readEnvelope(response: ParsedResponse, ignoreTotals: boolean): Envelope {
    return readTotals(this.fields, response, ignoreTotals);
  }

  next(state: S, page: Page, received: Received): Advance<S> {
    const { fields } = this;
    const more = saidOfMore(page, this.placeOf(state), fields);
    fields.checkFirst(state.requests, page, this.spec.size);
    const [name, value] = this.positionMember;
    const members = { [name]: value, 'pager.in': this.spec.in };
    const again = countFirstPages(state, page, received, this.resource, members);
    // A page may leave the total out that a page before it told.
    const { total = state.total } = page;
    const isBarren = received.repeats === page.count;
    const isLastAgain = isBarren && page.count > 0 && received.endsAsBefore;
    const advance = this.advance(state, { ...page, total }, { isBarren, isLastAgain, received, again, more });
    return withDoubts(state, page, advance, { more, fields });
  }

  meaningOf(error: MusterError, state: S): ErrorMeaning<S> | undefined {
    if (error.code === 'contradicting_envelope') return { kind: 'contradicted' };
    const refused = refusedPage(error);
    const isEndKnown = state.requests === 0 || state.total !== undefined || (state.promised && !state.end);
    return refused && !isEndKnown ? this.meaningOfRefusal(refused, state) : undefined;
  }

  /** The member of the entry that names the parameter for the position, and its value. */
  protected abstract readonly positionMember: readonly [name: string, value: string];

  protected abstract placeOf(state: S): Here;

  /** Decides what follows from a page whose total, where the list has told one, is known. */
  protected abstract advance(state: S, page: Page, found: Findings): Advance<S>;

  /** The meaning of a refusal of a page that follows others, in a list that tells no total. */
  protected abstract meaningOfRefusal(refused: RefusedPage, state: S): ErrorMeaning<S> | undefined;

  abstract first(): S;
  abstract request(state: S): PageInput;
  abstract ahead(state: S, skip: number, count: number): readonly PageInput[];
  abstract beyond(state: S, count: number): PageInput | undefined;
  abstract linkage(state: S): Linkage;
  abstract lengthAtEnd(state: S, count: number): number | undefined;

  /** The parameters of a request, where the entry has them. */
  protected input(parameters: Readonly<Record<string, number>>): PageInput {
    if (this.spec.in === 'body') return { body: parameters };
    return { query: Object.fromEntries(Object.entries(parameters).map(([name, value]) => [name, String(value)])) };
  }

  /** Counts a request. `step`: records from one page to the next. Throws `walk_limit_exceeded`. */
  protected countRequest(state: S, total: number | undefined, step: number): { requests: number; limit: number } {
    const requests = state.requests + 1;
    const limit = state.limit ?? maxRequests(total, step);
    if (requests >= limit) throw passLimitExceeded(this.resource, requests, 'it grows or moves as fast as it is read');
    return { requests, limit };
  }

  /** Counts a page that brought nothing new. Throws `walk_limit_exceeded`. */
  protected countBarren(state: S, isBarren: boolean): number {
    const barren = isBarren ? state.barren + 1 : 0;
    if (barren > MAX_BARREN_POSITIONS)
      throw passLimitExceeded(this.resource, state.requests + 1, `${barren} pages in a row brought nothing new`);
    return barren;
  }
}

export interface Findings {
  /** Whether the page brought no new record. */
  readonly isBarren: boolean;
  /** Whether it is the last page again, or that page with records before it. */
  readonly isLastAgain: boolean;
  readonly received: Received;
  /** Pages in a row, this one included, that were the first page again. */
  readonly again: number;
  /** The sign that more records follow. */
  readonly more: Sign | undefined;
}
