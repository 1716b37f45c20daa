import { z } from 'zod';
import { MusterError } from '../core/errors.js';
import { type Doubted, limitedEnd, repeatedEnd } from './doubt.js';
import { isRefusedOtherwise, lengthBefore, pastEnd, refusedEnd } from './inferred-end.js';
import type { Advance, ErrorMeaning, Linkage, Page, PageInput } from './pager.js';
import { type Findings, PositionPager, type PositionState } from './position-pager.js';
import type { RefusedPage } from './refusal.js';
import type { Here } from './signs-of-more.js';
import { differ, firstNumber, PAGE_SIZE, PARAMETER_NAME, PLACE, type Placed } from './spec.js';

/** The number of the first position. It has no default: one would be a change of every entry, whose lists are then walked from their beginning. */
const FIRST = firstNumber('record').optional();

export const SKIP_TAKE_SCHEMA = z
  .strictObject({
    style: z.literal('skip-take'),
    in: PLACE.optional(),
    skipName: PARAMETER_NAME.default('skip'),
    takeName: PARAMETER_NAME.default('take'),
    first: FIRST,
    size: PAGE_SIZE,
  })
  .refine((pager) => pager.skipName !== pager.takeName, differ('skipName', 'takeName'));

export const ODATA_SCHEMA = z
  .strictObject({
    style: z.literal('odata'),
    in: z.literal('query', { error: 'must be query: OData has its parameters nowhere else' }).default('query'),
    skipName: PARAMETER_NAME.default('$skip'),
    takeName: PARAMETER_NAME.default('$top'),
    first: FIRST,
    size: PAGE_SIZE,
  })
  .refine((pager) => pager.skipName !== pager.takeName, differ('skipName', 'takeName'));

export type OffsetState = PositionState & {
  /** Index of the first record to ask for, from 0. */
  readonly offset: number;
  /** Records to ask for. */
  readonly size: number;
  /** Width of the last step back since a page counted; 0 while the pages join. */
  readonly back: number;
  /** Pages were too short to overlap, or records followed a gap: pages are taken one after the other, and prove nothing. */
  readonly plain: boolean;
  /** Most records that a page has brought: the distance of pages that are asked for after the end. */
  readonly widest?: number | undefined;
  /** Records followed such an end: positions no longer tell the length of the list. */
  readonly hasGap?: true | undefined;
};

type OffsetSpec = Placed<z.output<typeof SKIP_TAKE_SCHEMA> | z.output<typeof ODATA_SCHEMA>>;

/**
 * Pages by index: skip-take and OData, which differ only in how the parameters are spelt and where they stand. A service may count its
 * positions from 1, as SCIM's startIndex (RFC 7644, 3.4.2.4): `first: 1`.
 *
 *     -> { skip: 0, take: 3 }    <- { totalRecords: 5, totalDisplayRecords: 3, data: [A, B, C] }
 *     -> { skip: 2, take: 3 }    <- { totalRecords: 5, totalDisplayRecords: 3, data: [C, D, E] }      C joins; 5 of 5: done
 *
 * An index says nothing once the list has moved. Therefore every page after the first begins one record early and must JOIN:
 * bring a record that this pass has already received. With an order that the service keeps, everything before
 * such a record was received, and the page holds all that follows it: nothing that was there throughout can be missed.
 * A page that does not join says that records moved towards the front; then the pager steps back, further each time.
 *
 *     -> { skip: 0, take: 3 }    <- { totalRecords: 6, data: [A, B, C] }
 *                                                                         A, B and C are deleted
 *     -> { skip: 2, take: 3 }    <- { totalRecords: 3, data: [F] }        does not join: D and E would be lost
 *     -> { skip: 1, take: 3 }    <- { totalRecords: 3, data: [E, F] }     nor does this one
 *     -> { skip: 0, take: 3 }    <- { totalRecords: 3, data: [D, E, F] }  at the front every page counts; 3 of 3: done
 *
 * A bare array tells no total. It ends where a page that joins brings nothing beyond the record it overlaps with, and the page a whole size further
 * on brings nothing new either:
 *
 *     -> { skip: 0, take: 3 }    <- [A, B, C]
 *     -> { skip: 2, take: 3 }    <- [C, D]
 *     -> { skip: 3, take: 3 }    <- [D]                                   nothing after D
 *     -> { skip: 6, take: 3 }    <- []                                    nor after a gap: done
 *
 * Where records follow such a gap, the pass goes on from there, without an overlap.
 */
export class OffsetPager extends PositionPager<OffsetState, OffsetSpec> {
  first(): OffsetState {
    return { offset: 0, size: this.spec.size, requests: 0, back: 0, barren: 0, plain: false };
  }

  request({ offset, size }: Pick<OffsetState, 'offset' | 'size'>): PageInput {
    const { skipName, takeName } = this.spec;
    return this.input({ [skipName]: this.#positionOf(offset), [takeName]: size });
  }

  protected get positionMember(): [string, string] {
    return ['pager.skipName', this.spec.skipName];
  }

  /** Requests do not count pages: they overlap, and more are asked for where a list has a gap. */
  protected placeOf({ offset }: OffsetState): Here {
    return { page: Math.floor(offset / this.spec.size), position: this.#positionOf(offset) };
  }

  protected advance(state: OffsetState, page: Page, found: Findings): Advance<OffsetState> {
    const { isBarren, received, again, more } = found;
    const { count, hasNext, total } = page;
    const end = state.offset + count;
    this.#refuseContradiction(state, page);
    const counts = state.plain || state.end !== undefined || state.offset === 0 || received.repeats > 0;
    // The entry's own word that more follow goes before a total, which may be that of the page: until a page brings nothing new.
    const isTotal = total !== undefined && end >= total && (hasNext !== true || (isBarren && state.requests > 0));
    const isPageTotal = more !== undefined && state.requests === 0 && total === count && this.fields.isNamed('total');
    const isProved = !this.#needsProof(count) && !(count > 0 && isPageTotal);
    if (counts && (hasNext === false || isTotal) && isProved)
      return hasNext && more ? { kind: 'done', doubted: this.fields.contradictedBy(more) } : { kind: 'done', overruled: more };
    if (counts && total === undefined && hasNext !== false && this.#seemsToEnd(state, count, found))
      return this.#askPastEnd(state, count, found);

    // The first page tells how many records the service gives at once, whatever it was asked for.
    const isFirst = state.requests === 0;
    const size = isFirst ? count : state.size;
    const counted = this.countRequest(state, total, size - 1);
    const widest = Math.max(state.widest ?? 0, count);
    const seen = { size, ...counted, total, again, widest };

    if (!counts) {
      const back = state.back === 0 ? Math.max(1, Math.floor(size / 2)) : state.back * 2;
      // After the last record there is nothing to join with.
      const last = total === undefined ? Infinity : total - 1;
      const offset = Math.max(0, Math.min(state.offset - back, last));
      return { kind: 'again', state: { offset, back, barren: state.barren, plain: state.plain, ...seen } };
    }

    const barren = this.countBarren(state, isBarren);
    const hasGap = state.hasGap ?? (state.end ? true : undefined);
    // A page of one record is all overlap: beginning early again would stand still.
    const plain = state.plain || count === 1 || hasGap === true;
    return { kind: 'next', state: { offset: plain ? end : end - 1, back: 0, barren, plain, hasGap, ...seen } };
  }

  ahead(state: OffsetState, skip: number, count: number): readonly PageInput[] {
    const { total, size, back, plain } = state;
    if (total === undefined || back > 0) return [];
    const step = plain ? size : size - 1;
    const inputs: PageInput[] = [];
    for (let n = skip; inputs.length < count && state.offset + n * step + size < total; n += 1)
      inputs.push(this.request({ offset: state.offset + (n + 1) * step, size }));
    return inputs;
  }

  /** Whether a page that counts looks like the end of a list that does not tell its total. */
  #seemsToEnd(state: OffsetState, count: number, { isBarren, isLastAgain, again }: Findings): boolean {
    if (count === 0) return true;
    // A service may give its last page for any position after it.
    if (state.end) return isBarren;
    // A service that does not read the position gives its first page. Where pages have one record each, any of them may come again in a list that is reordered.
    if (state.plain) return isLastAgain && again === 0 && (state.widest ?? 0) > 1;
    // On the first page, one record may be all that the service gives at once; later it is the overlap alone.
    return count === 1 && state.requests > 0;
  }

  /** The service's number of the position at an index. */
  #positionOf(offset: number): number {
    return offset + (this.spec.first ?? 0);
  }

  /** Looks past an apparent end: hidden records may precede more of them. */
  #askPastEnd(state: OffsetState, count: number, { isBarren, isLastAgain, again, more }: Findings): Advance<OffsetState> {
    const requests = state.requests + 1;
    // A page without an overlap that is the last one again stands nowhere.
    const repeated = state.plain && isBarren && count > 0 ? count : undefined;
    const isEmpty = count === 0 || repeated !== undefined || state.end !== undefined;
    const index = state.offset + (repeated === undefined ? count : 0);
    const beyond = pastEnd(state.end, { index, isEmpty, repeated }, more, this.fields);
    if (beyond.kind === 'done') return { doubted: this.#doubtOfRepetition(state, count, isLastAgain), ...beyond };
    const widest = Math.max(state.widest ?? 0, count);
    const offset = state.offset + (widest || state.size);
    const { plain, hasGap } = state;
    const { barren } = state;
    const next = { offset, size: this.spec.size, requests, back: 0, barren, again, plain, widest, hasGap, end: beyond.end };
    return { kind: 'next', state: next };
  }

  /**
   * Whether the page that follows must prove an end, by bringing the overlap alone: a page as long as was
   * asked for may tell its own length, or something else, in the place that the entry names.
   */
  #needsProof(count: number): boolean {
    return count > 1 && count === this.spec.size && (this.fields.isNamed('total') || this.fields.isNamed('hasNext'));
  }

  /** Taking such a page for the end of the list would lose records; taking it for a page in between would go in circles. */
  #refuseContradiction(state: OffsetState, { count: received, total, hasNext }: Page): void {
    if (total === undefined) return;
    const missing = state.offset + received < total && (received === 0 || hasNext === false);
    const surplus = received > 0 && state.offset + received > total;
    if (!missing && !surplus) return;
    throw new MusterError(
      'contradicting_envelope',
      `The list ${this.resource} says that it has ${total} records, but gave ${received} from index ${state.offset} on${hasNext === false ? ', and none after them' : ''}. ` +
        'Ask again; if this repeats, check fields and envelope of this list in the catalogue; else the service counts wrongly.',
      { details: { resource: this.resource, total, received, offset: state.offset } },
    );
  }

  beyond({ offset, end, widest }: OffsetState, count: number): PageInput {
    const { size } = this.spec;
    return this.request({ offset: offset + (end ? widest || size : count), size });
  }

  /** Pages that are too short to overlap join nothing: then only two passes in a row that agree prove anything. */
  linkage({ plain }: OffsetState): Linkage {
    return plain ? 'none' : 'join';
  }

  lengthAtEnd({ offset, end, hasGap }: OffsetState, count: number): number | undefined {
    if (hasGap) return undefined;
    return end ? lengthBefore(end, count) : offset + count;
  }

  /**
   * A service may give its last page again where its limit is. Where that page was not full, the list ended before. Another page than the last has no
   * place behind the end.
   */
  #doubtOfRepetition({ end, widest = 0 }: OffsetState, count: number, isLastAgain: boolean): Doubted | undefined {
    if (!end || count === 0) return undefined;
    return !isLastAgain || (end.repeated !== undefined && count >= widest) ? repeatedEnd(end.index) : undefined;
  }

  protected meaningOfRefusal(refused: RefusedPage, state: OffsetState): ErrorMeaning<OffsetState> | undefined {
    const { end, requests, promised, offset, widest, plain, back } = state;
    const { reason, status } = refused;
    // A service may cut its pages short where its limit is, so that a short page proves less than among pages by number.
    const doubt =
      reason === 'limit' || (reason === 'unclear' && (plain || end)) ? limitedEnd(end?.index ?? offset, status) : undefined;
    const doubted = state.doubted ?? end?.doubted ?? promised ?? doubt;
    if (end && isRefusedOtherwise(end, refused)) return undefined;
    if (end || reason === 'limit') return { kind: 'ended', doubted };
    const { size } = this.spec;
    if (!plain) {
      // There is a record, unless the list has become shorter: the page is asked for once more, further to the front.
      if (back > 0) return undefined;
      const step = Math.max(1, Math.floor(state.size / 2));
      return { kind: 'again', state: { ...state, offset: Math.max(0, offset - step), back: step, requests: requests + 1 } };
    }
    const beyond = { offset: offset + (widest || size), size, requests: requests + 1, end: refusedEnd(offset, refused, doubted) };
    return { kind: 'again', state: { ...state, ...beyond } };
  }
}
