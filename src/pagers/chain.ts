import { MusterError } from '../core/errors.js';
import type { Sign } from './around.js';
import { EnvelopeFields, type ListShape } from './envelope.js';
import { countFirstPages, type FirstPageState, pagerMisdeclared } from './first-page-again.js';
import type { Envelope } from './page-envelope.js';
import type { Advance, ErrorMeaning, Page, PageInput, Pager, Received } from './pager.js';
import type { ParsedResponse } from './parsed-response.js';
import { MAX_BARREN_PAGES, MAX_REQUESTS_WITHOUT_TOTAL, passLimitExceeded } from './pass-limits.js';
import { isRefusedWith } from './refusal.js';
import { moreBehind } from './signs-of-more.js';

export type ChainState = FirstPageState & {
  /** The token or link of the page to ask for; null asks for the first page. */
  readonly token: string | number | null;
  /** Pages in a row that brought no new record. */
  readonly barren: number;
  /** The total as it was told last; a page may leave it out. */
  readonly total?: number | undefined;
  /** The service refused what the entry has its links asked with beside their own parameters: they are asked as they came. */
  readonly asGiven?: true | undefined;
  /** Most records that a page has brought. */
  readonly widest?: number | undefined;
  /** How many records the page is asked for, where that is fewer than usual; or that the service refused to give fewer. */
  readonly fewer?: number | 'refused' | undefined;
  /** A response without a body is taken for the page: it has come each time. */
  readonly takesBlank?: true | undefined;
};

/** Statuses that services answer to a page token that they no longer know: no standard says which. */
const TOKEN_REFUSED = new Set([400, 404, 410, 422]);

/**
 * Paging by a chain: each page names the next one, by a token or by a link. Only that name decides: an empty page that names another
 * goes on. A name that this pass has followed before would lead in a circle.
 */
export abstract class ChainPager implements Pager<ChainState> {
  readonly overlaps = false;
  protected readonly fields: EnvelopeFields;
  readonly #resource: string;
  readonly #size: number;

  /** `standard`: where the style has its values, unless the list's entry names other places. */
  constructor(list: ListShape, size: number, standard: { readonly hasNext?: string; readonly next?: string }) {
    this.fields = new EnvelopeFields(list, { total: 'totalRecords', ...standard });
    this.#resource = list.resource;
    this.#size = size;
  }

  get dataPath(): readonly string[] {
    return this.fields.dataPath;
  }

  get readsLastRecord(): boolean {
    return this.fields.readsLastRecord;
  }

  get readsHeaders(): boolean {
    return this.fields.readsHeaders;
  }

  first(): ChainState {
    return { token: null, requests: 0, barren: 0 };
  }

  /** The members of the entry that lead from a page to the next one, with what they say. */
  protected abstract readonly members: Readonly<Record<string, string | undefined>>;

  abstract request(state: ChainState): PageInput;

  /** Reads the token or link of the next page, or what the page says in its place. */
  protected abstract readNext(response: ParsedResponse): Pick<Envelope, 'nextToken' | 'isEndTold' | 'isSilent' | 'lacks'>;

  /** A chain need not say how many records it has; where it does, the number is held against it, whatever else is doubted. */
  readEnvelope(response: ParsedResponse): Envelope {
    const around = this.fields.around(response);
    const total = this.fields.total(response);
    const { lacks, ...next } = this.readNext(response);
    const lacksTotal = this.fields.isNamed('total') ? this.fields.lacking('total', total) : undefined;
    const statedSize = this.fields.statedSize(response);
    return this.fields.judged(response, { total, ...next, statedSize, lacks: lacks ?? lacksTotal, ...around });
  }

  next(state: ChainState, page: Page, received: Received): Advance<ChainState> {
    const token = page.nextToken;
    const isFirst = state.requests === 0;
    const { total = state.total } = page;
    this.fields.checkFirst(state.requests, page);
    if (page.isBlank && !isFirst && !state.takesBlank) throw blankPage(this.#resource, state.requests);
    if (token === undefined) return this.#judgeEnd(state, { ...page, total });
    const requests = state.requests + 1;
    const again = countFirstPages(state, page, received, this.#resource, this.members);
    if (token === state.token || received.hasToken(token)) {
      // No list that moves gives the same records with the same token.
      if (!isFirst && page.count > 0 && received.isFirstPage) throw pagerMisdeclared(this.#resource, again, this.members);
      throw new MusterError(
        'page_token_loop',
        `The list ${this.#resource} named an earlier page of the same pass as its next one (request ${requests}). ` +
          'The walk starts again; if this repeats, check the pager of this list in the catalogue: the names of its parameters, and where the next page is named.',
        { details: { resource: this.#resource, requests } },
      );
    }
    if (requests >= MAX_REQUESTS_WITHOUT_TOTAL) throw passLimitExceeded(this.#resource, requests, 'every page named another');
    const barren = received.repeats === page.count ? state.barren + 1 : 0;
    if (barren > MAX_BARREN_PAGES)
      throw passLimitExceeded(this.#resource, requests, `${barren} pages in a row brought nothing new`);
    const widest = Math.max(state.widest ?? 0, page.count);
    return { kind: 'next', state: { token, requests, barren, again, total, asGiven: state.asGiven, widest } };
  }

  /** Decides whether a list may go on after a page that names no other. */
  #judgeEnd(state: ChainState, page: Page): Advance<ChainState> {
    const { token, requests, asGiven } = state;
    if (asGiven) return { kind: 'done', doubted: { doubt: 'constants_lost', detail: this.constantsLost } };
    const more = moreBehind(page.signs, { token, page: requests, position: requests });
    // A total is held against what came, and says more than any sign.
    if (more && page.total === undefined && !page.isEndTold) return { kind: 'done', doubted: this.fields.contradictedBy(more) };
    const isOpen = this.#isFull(state, page) && this.#isUntold(state, page, more);
    if (!isOpen || page.total !== undefined) return { kind: 'done', overruled: more };
    // A page that is asked for fewer records must name the page of the others.
    if (this.canAskForFewer && state.fewer === undefined && page.count > 1)
      return { kind: 'again', state: { ...state, fewer: page.count - 1 } };
    return { kind: 'done', doubted: { doubt: 'end_unproved', detail: this.#unproved(requests, page.count) } };
  }

  /** Whether a page holds as many records as one can: as were asked for, as the longest one before it, or as it says itself. */
  #isFull({ widest, fewer }: ChainState, { count, statedSize }: Page): boolean {
    const asked = typeof fewer === 'number' ? fewer : this.#size;
    return count > 0 && count >= Math.min(asked, widest ?? asked, statedSize ?? asked);
  }

  /**
   * Whether nothing says that a page is the last. A page that names no other may be so, or the name is spelt otherwise than the entry says, or was lost on
   * the way. On the first page a place that the entry names wrongly would say the same.
   */
  #isUntold({ requests }: ChainState, page: Page, more: Sign | undefined): boolean {
    if (requests > 0) return !page.isEndTold && page.lacks !== undefined;
    const isFlagNamed = this.fields.isNamed('hasNext');
    const isTold = page.isEndTold && !more && (!isFlagNamed || this.fields.isCalledMore());
    return !isTold && (isFlagNamed || this.fields.isNamed('next') || page.isSilent === true);
  }

  #unproved(requests: number, count: number): string {
    return (
      `${requests === 0 ? 'The first page' : `Page ${requests + 1}`} holds ${count} records, as many as a page can, and says nothing of another page (${this.fields.nameOf('next')}). ` +
      'If that is where another would be named, raise size above the number of records, or name a total (fields: { total: … }), which the records are held against.'
    );
  }

  /** Whether a page can be asked for with fewer records. */
  protected get canAskForFewer(): boolean {
    return false;
  }

  /** Where links were asked without constants of the entry: what to do. */
  protected get constantsLost(): string | undefined {
    return undefined;
  }

  /** The next page is known only once the page before it has come. */
  ahead(): readonly PageInput[] {
    return [];
  }

  beyond(): undefined {}

  linkage(): 'token-chain' {
    return 'token-chain';
  }

  lengthAtEnd(): undefined {}

  meaningOf(error: MusterError, state: ChainState): ErrorMeaning<ChainState> | undefined {
    if (error.code === 'page_token_loop') return { kind: 'token-lost' };
    if (error.details['is_blank'] === true) return { kind: 'again', state: { ...state, takesBlank: true } };
    if (!isRefusedWith(error, TOKEN_REFUSED)) return undefined;
    if (typeof state.fewer === 'number') return { kind: 'again', state: { ...state, fewer: 'refused' } };
    return state.token === null ? undefined : { kind: 'token-lost' };
  }
}

/** The error of a response without a body in the place of a page that the page before it has named. */
function blankPage(resource: string, requests: number): MusterError {
  return new MusterError(
    'contradicting_envelope',
    `The list ${resource} named another page, and gave an answer without a body for it (request ${requests + 1}). It is asked for again.`,
    { details: { resource, requests, is_blank: true } },
  );
}
