import { MusterError } from '../core/errors.js';
import type { Sign } from './around.js';
import { type Answer, type Envelope, EnvelopeFields, type ListShape } from './envelope.js';
import { countFirstPages, pagerMisdeclared } from './first-page-again.js';
import type { Doubted } from './doubt.js';
import type { Advance, ErrorMeaning, Page, PageInput, Pager, Received } from './pager.js';
import { MAX_BARREN_PAGES, MAX_REQUESTS_WITHOUT_TOTAL, passLimitExceeded } from './pass-limits.js';
import { isRefusedWith } from './refusal.js';
import { moreBehind } from './signs-of-more.js';

export type ChainState = {
  /** What leads to the page to ask for; null asks for the first page. */
  readonly token: string | number | null;
  /** Requests of this pass that were answered so far. */
  readonly requests: number;
  /** Pages in a row that brought no new record. */
  readonly barren: number;
  /** Pages in a row that were the first page again. */
  readonly again?: number;
  /** The total as it was told last; a page may leave it out. */
  readonly total?: number | undefined;
  /** The service refused what the entry has its links asked with beside their own parameters: they are asked as they came. */
  readonly asGiven?: true | undefined;
};

/** What services answer to a page token that they no longer know: no standard says which one it is. */
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

  /** What leads to the next page, or what the page says in its place. */
  protected abstract readNext(answer: Answer): Pick<Envelope, 'nextToken' | 'isEndTold' | 'isSilent' | 'lacks'>;

  /** A chain need not say how many records it has; where it does, the number is held against it, whatever else is doubted. */
  readEnvelope(answer: Answer): Envelope {
    const around = this.fields.around(answer);
    const total = this.fields.total(answer);
    const { lacks, ...next } = this.readNext(answer);
    const lacksTotal = this.fields.isNamed('total') ? this.fields.lacking('total', total) : undefined;
    return this.fields.judged(answer, { total, ...next, lacks: lacks ?? lacksTotal, ...around });
  }

  next(state: ChainState, page: Page, received: Received): Advance<ChainState> {
    const token = page.nextToken;
    const isFirst = state.requests === 0;
    const { total = state.total } = page;
    this.fields.checkFirst(state.requests, page);
    if (token === undefined) return { kind: 'done', ...this.#judgeEnd(state, { ...page, total }) };
    const requests = state.requests + 1;
    const again = countFirstPages(state, page, received, this.#resource, this.members);
    if (token === state.token || received.hasToken(token)) {
      // The same records and the same token, which no list that moves gives.
      if (!isFirst && page.count > 0 && received.isFirstPage) throw pagerMisdeclared(this.#resource, again, this.members);
      throw new MusterError(
        'page_token_loop',
        `The list ${this.#resource} named an earlier page of the same pass as its next one (request ${requests}). ` +
          'The walk starts anew; if this repeats, check the pager of this list in the catalogue: the names of its parameters, and where the next page is named.',
        { details: { resource: this.#resource, requests } },
      );
    }
    if (requests >= MAX_REQUESTS_WITHOUT_TOTAL) throw passLimitExceeded(this.#resource, requests, 'every page named another');
    const barren = received.repeats === page.count ? state.barren + 1 : 0;
    if (barren > MAX_BARREN_PAGES)
      throw passLimitExceeded(this.#resource, requests, `${barren} pages in a row brought nothing new`);
    return { kind: 'next', state: { token, requests, barren, again, total, asGiven: state.asGiven } };
  }

  /** Whether the list may go on behind a page that names no other. */
  #judgeEnd({ token, requests, asGiven }: ChainState, page: Page): { readonly doubted?: Doubted; readonly overruled?: Sign } {
    if (asGiven) return { doubted: { doubt: 'constants_lost', detail: this.constantsLost } };
    const more = moreBehind(page.signs, { token, page: requests, position: requests });
    // A total is held against what came, and says more than any sign.
    if (more && page.total === undefined && !page.isEndTold) return { doubted: this.fields.contradictedBy(more) };
    const overruled = more && { overruled: more };
    if (page.total !== undefined) return { ...overruled };
    // A full page that names no other may be a list of just that length, or a name that is spelt otherwise than the entry says, or was lost on the way.
    // So may a full page further on that lacks what the pages before it told.
    const isNamed = this.fields.isNamed('next') || this.fields.isNamed('hasNext');
    const isUntold = requests === 0 ? isNamed || page.isSilent : page.lacks !== undefined && !page.isEndTold;
    if (page.count < this.#size || !isUntold) return { ...overruled };
    return { doubted: { doubt: 'end_unproved', detail: this.#unproved(requests, page.count) } };
  }

  #unproved(requests: number, count: number): string {
    return (
      `${requests === 0 ? 'The first page' : `Page ${requests + 1}`} holds ${count} records, as many as were asked for or more, and says nothing of another page (${this.fields.nameOf('next')}). ` +
      'If that is where another would be named, raise size above the number of records, or name a total (fields: { total: … }), which the records are held against.'
    );
  }

  /** Where links were asked without constants of the entry: what to do. */
  protected get constantsLost(): string | undefined {
    return undefined;
  }

  /** The next page is known only once the page before it has come. */
  ahead(): readonly PageInput[] {
    return [];
  }

  behind(): undefined {}

  linkage(): 'token-chain' {
    return 'token-chain';
  }

  lengthAtEnd(): undefined {}

  meaningOf(error: MusterError, { token }: ChainState): ErrorMeaning<ChainState> | undefined {
    if (error.code === 'page_token_loop') return { kind: 'token-lost' };
    return isRefusedWith(error, TOKEN_REFUSED) && token !== null ? { kind: 'token-lost' } : undefined;
  }
}
