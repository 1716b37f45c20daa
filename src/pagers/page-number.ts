import { z } from 'zod';
import { type Doubted, limitedEnd, repeatedEnd } from './doubt.js';
import { isRefusedOtherwise, lengthBefore, pastEnd, refusedEnd } from './inferred-end.js';
import type { Advance, ErrorMeaning, Page, PageInput } from './pager.js';
import { type Findings, PositionPager, type PositionState } from './position-pager.js';
import type { RefusedPage } from './refusal.js';
import type { Here } from './signs-of-more.js';
import { differ, firstNumber, PAGE_SIZE, PARAMETER_NAME, PLACE, type Placed } from './spec.js';

export const PAGE_NUMBER_SCHEMA = z
  .strictObject({
    style: z.literal('page-number'),
    in: PLACE.optional(),
    pageName: PARAMETER_NAME.default('page'),
    sizeName: PARAMETER_NAME.default('pageSize'),
    first: firstNumber('page').default(1),
    size: PAGE_SIZE,
  })
  .refine((pager) => pager.pageName !== pager.sizeName, differ('pageName', 'sizeName'));

export type PageNumberState = PositionState & {
  /** Number of the page to ask for. */
  readonly page: number;
  /** Records on the pages so far, and so the index at which the page to ask for begins. */
  readonly offset: number;
  /** Records on the first page: how many the service gives at once, whatever it was asked for. */
  readonly step: number;
  /** Records on the page before. */
  readonly last?: number;
  /** The second page was the first one again. */
  readonly begunTwice?: boolean;
};

/**
 * Pages by number.
 *
 *     -> { page: 1, pageSize: 3 }    <- { totalRecords: 5, data: [A, B, C] }
 *     -> { page: 2, pageSize: 3 }    <- { totalRecords: 5, data: [D, E] }       5 of 5: done
 *
 * The pages of a list that moves shift, and a number cannot ask for the record before a page, so that nothing shows whether two pages join:
 *
 *     -> { page: 1, pageSize: 3 }    <- { totalRecords: 6, data: [A, B, C] }
 *                                                                               A is deleted
 *     -> { page: 2, pageSize: 3 }    <- { totalRecords: 5, data: [E, F] }       D was never received
 *
 * Therefore one pass proves nothing, and two passes in a row must receive the same records (docs/verification.md). Without a total, the list
 * ends where `hasNext` says so, or else on an empty page after which another one brings nothing new either (inferred-end.ts).
 */
export class PageNumberPager extends PositionPager<PageNumberState, Placed<z.output<typeof PAGE_NUMBER_SCHEMA>>> {
  first(): PageNumberState {
    return { page: this.spec.first, requests: 0, offset: 0, step: this.spec.size, barren: 0 };
  }

  request({ page }: Pick<PageNumberState, 'page'>): PageInput {
    const { pageName, sizeName, size } = this.spec;
    return this.input({ [pageName]: page, [sizeName]: size });
  }

  protected get positionMember(): [string, string] {
    return ['pager.pageName', this.spec.pageName];
  }

  protected placeOf({ page }: PageNumberState): Here {
    return { page, position: page, first: this.spec.first };
  }

  protected advance(
    state: PageNumberState,
    { count, hasNext, total }: Page,
    { isBarren, isLastAgain, again, more }: Findings,
  ): Advance<PageNumberState> {
    // A service that numbers its pages from 1 may take 0 for 1.
    const begunTwice = state.begunTwice === true || (this.spec.first === 0 && state.requests === 1 && again === 1);
    const offset = state.offset + (state.end?.repeated ?? 0) + count;
    const isTold = total !== undefined || hasNext !== undefined;
    if (!isTold && (count === 0 || (isLastAgain && this.#mayEnd(state, again)))) {
      const repeated = count > 0 ? count : undefined;
      const beyond = pastEnd(state.end, { index: state.offset, isEmpty: true, repeated }, more, this.fields);
      if (beyond.kind === 'done')
        return this.#end(state, count, begunTwice, beyond.doubted ?? this.#doubtOfRepetition(state, count));
      return {
        kind: 'next',
        state: {
          ...state,
          page: state.page + 1,
          requests: state.requests + 1,
          again,
          begunTwice,
          end: beyond.end,
        },
      };
    }
    const isLast = hasNext === undefined ? total !== undefined && offset >= total : !hasNext;
    const isMissing = total !== undefined && offset < total && (count === 0 || isLast);
    const isSurplus = total !== undefined && count > 0 && offset > total;
    if (isMissing || isSurplus)
      this.fields.fail(
        'contradicting_envelope',
        `${this.fields.nameOf('total')} is ${total}, but the pages up to number ${state.page} hold ${offset}, and ${isLast ? 'none' : 'another'} follows`,
      );
    // A total may be that of the page: where a sign says that more follow, the page after the first one must bring nothing.
    const isPageTotal = more !== undefined && state.requests === 0 && total === count && this.fields.isNamed('total');
    if (isLast && !(count > 0 && isPageTotal)) return { ...this.#end(state, count, begunTwice), overruled: more };
    const step = state.requests === 0 ? count : state.step;
    const counted = this.countRequest(state, total, step);
    const barren = this.countBarren(state, isBarren);
    return {
      kind: 'next',
      state: { page: state.page + 1, ...counted, offset, step, last: count, barren, again, begunTwice, total },
    };
  }

  /**
   * Whether the last page that comes again may tell the end: a service may give it for any number after it. One that does not read the number gives
   * its first page. Where pages have one record each, any of them may come again in a list that is reordered.
   */
  #mayEnd({ end, offset, requests }: PageNumberState, again: number): boolean {
    return end !== undefined || (again === 0 && offset > requests);
  }

  /** A service may give its last page again where its limit is. Where that page was not full, the list ended before. */
  #doubtOfRepetition({ end, last = 0, step }: PageNumberState, count: number): Doubted | undefined {
    return end?.repeated !== undefined && count > 0 && last >= step ? repeatedEnd(end.index) : undefined;
  }

  #end(
    { requests }: PageNumberState,
    count: number,
    begunTwice: boolean,
    doubted?: Doubted,
  ): Extract<Advance<PageNumberState>, { kind: 'done' }> {
    if (doubted) return { kind: 'done', doubted };
    if (begunTwice) return { kind: 'done', doubted: { doubt: 'first_page_repeated' } };
    // A full page may tell its own length, or something else, where the entry says that a value of the list stands.
    const isTold = this.fields.isNamed('total') || this.fields.isNamed('hasNext');
    const mayBeMisnamed = requests === 0 && isTold && count === this.spec.size;
    return mayBeMisnamed ? { kind: 'done', doubted: { doubt: 'end_unproved' } } : { kind: 'done' };
  }

  ahead({ page, offset, step, total }: PageNumberState, skip: number, count: number): readonly PageInput[] {
    if (total === undefined) return [];
    const inputs: PageInput[] = [];
    for (let n = skip + 1; inputs.length < count && offset + n * step < total; n += 1)
      inputs.push(this.request({ page: page + n }));
    return inputs;
  }

  beyond({ page }: PageNumberState): PageInput {
    return this.request({ page: page + 1 });
  }

  linkage(): 'none' {
    return 'none';
  }

  lengthAtEnd({ offset, end }: PageNumberState, count: number): number {
    return end ? lengthBefore(end, count) : offset + count;
  }

  protected meaningOfRefusal(refused: RefusedPage, state: PageNumberState): ErrorMeaning<PageNumberState> | undefined {
    const { end, offset } = state;
    if (end && isRefusedOtherwise(end, refused)) return undefined;
    const doubted = state.doubted ?? end?.doubted ?? state.promised ?? this.#doubtOf(refused, state);
    if (end || (doubted && refused.reason === 'limit')) {
      return { ...this.#end(state, 0, state.begunTwice === true, doubted), kind: 'ended' };
    }
    const next = { page: state.page + 1, requests: state.requests + 1, end: refusedEnd(offset, refused, doubted) };
    return { kind: 'again', state: { ...state, ...next } };
  }

  /**
   * A page shorter than the others is the last one, whatever a service says of the next. After a full page, a refusal in unknown words may have another reason. Where
   * the service calls every request after a full first page wrong, its parameters may be wrong.
   */
  #doubtOf({ status, reason }: RefusedPage, { end, offset, step, last = step }: PageNumberState): Doubted | undefined {
    const index = end?.index ?? offset;
    const isOnlyPage = index === step;
    const isFull = isOnlyPage ? step >= this.spec.size : last >= step;
    if (isOnlyPage && isFull && status === 400 && reason !== 'limit') return { doubt: 'end_unproved' };
    const isUnproved = reason === 'limit' ? isFull || isOnlyPage : isFull && reason === 'unclear';
    return isUnproved && (!end || end.status !== undefined) ? limitedEnd(index, status) : undefined;
  }
}
