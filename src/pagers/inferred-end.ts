import type { Sign } from './around.js';
import { type Doubted, skippedPage } from './doubt.js';
import type { EnvelopeFields } from './envelope.js';
import type { Advance, JsonObject, Page } from './pager.js';
import type { RefusedPage } from './refusal.js';
import { type Here, moreBehind } from './signs-of-more.js';

/**
 * The end of a list that is asked for by position and tells neither its total nor whether another page follows. It ends where a page brings
 * nothing, but a page may bring nothing since all its records are hidden from the caller. Therefore the pager asks for the pages after it:
 * for one, and while a sign around the records says that more follow, for three. Its state holds the end while it asks for these pages.
 */
export interface InferredEnd {
  /** Pages in a row that brought nothing. */
  readonly empty: number;
  /** How many positions, or records, stood before it. */
  readonly index: number;
  /** Records of its page, where that was the last page again. If an empty page follows, they stood where they were asked for. */
  readonly repeated?: number | undefined;
  /** The status with which its page was refused, where it was. */
  readonly status?: number | undefined;
  /** The doubt of the last page that said something of further ones, where nothing has contradicted it. */
  readonly doubted?: Doubted | undefined;
}

/** Pages that may say that more follow while they bring nothing. */
const MOST_EMPTY = 3;

/**
 * Decides what follows from a page that brings nothing new. `index`: how many positions precede the end, if this is one. `isEmpty`: the page brings nothing at all, or comes after the end
 * and repeats earlier records. `repeated`: the records of a page that is the last one again. `more`: the sign around its records that more follow. Returns the state of the end for the next request, or `done`.
 */
export function pastEnd(
  before: InferredEnd | undefined,
  { index, isEmpty, repeated }: { readonly index: number; readonly isEmpty: boolean; readonly repeated: number | undefined },
  more: Sign | undefined,
  fields: EnvelopeFields,
): { readonly kind: 'done'; readonly doubted?: Doubted } | { readonly kind: 'ask'; readonly end: InferredEnd } {
  const empty = (before?.empty ?? 0) + (isEmpty ? 1 : 0);
  const end = before ? { empty, index: before.index, repeated: before.repeated } : { empty, index, repeated };
  if (!more) return before ? { kind: 'done' } : { kind: 'ask', end };
  const doubted = fields.contradictedBy(more);
  return empty >= MOST_EMPTY ? { kind: 'done', doubted } : { kind: 'ask', end: { ...end, doubted } };
}

/** How many positions precede the end, once the page after it has come, with `count` records. */
export function lengthBefore({ index, repeated = 0 }: InferredEnd, count: number): number {
  return count === 0 ? index + repeated : index;
}

/** The end of a list whose service refuses the page after the last one: it must refuse the page after that alike. */
export function refusedEnd(index: number, { status }: RefusedPage, doubted: Doubted | undefined): InferredEnd {
  return { empty: 1, index, status, doubted };
}

/** Whether the page after such an end is refused in another way than the end itself. */
export function isRefusedOtherwise({ status }: InferredEnd, refused: RefusedPage): boolean {
  return status !== undefined && status !== refused.status;
}

/** The part of a pager's state that speaks of the end of such a list. */
export type EndState = {
  /** The list seems to have ended before this page. */
  readonly end?: InferredEnd | undefined;
  /** Why not all of the list may have come, wherever it ends. */
  readonly doubted?: Doubted | undefined;
  /** The promise of the last page that spoke of further ones: the doubt about an end that comes before them. */
  readonly promised?: Doubted | undefined;
};

/**
 * Adds to what follows from a page the doubts that the pass has from then on:
 * - A page that is given after one that was refused shows that the refused one was not the end, and its records may be missing.
 * - A page that says that more follow (`more`) is believed until another page denies it, be it by records with nothing more said of further ones. An empty page that says nothing denies nothing.
 */
export function withDoubts<S extends JsonObject & EndState>(
  state: EndState & { readonly total?: number | undefined },
  page: Page,
  advance: Advance<S>,
  { more, fields }: { readonly more: Sign | undefined; readonly fields: EnvelopeFields },
): Advance<S> {
  const { end } = state;
  if (advance.kind === 'again')
    return { ...advance, state: { ...advance.state, doubted: state.doubted, promised: state.promised } };
  const doubted = state.doubted ?? (end?.status !== undefined ? skippedPage(end.index, end.status) : undefined);
  const isTold = (page.total ?? state.total) !== undefined || page.hasNext === false;
  const isDenied = page.count > 0 || page.deniesMore || page.signs?.some(({ kind }) => kind === 'page');
  const kept = isDenied ? undefined : state.promised;
  const promised = isTold ? undefined : more ? fields.contradictedBy(more) : kept;
  if (advance.kind === 'done') return { ...advance, doubted: doubted ?? advance.doubted ?? promised };
  return { ...advance, state: { ...advance.state, doubted, promised } };
}

/** The sign that more records follow a page: in the place that the entry names, or elsewhere around the records. */
export function saidOfMore({ hasNext, signs }: Page, here: Here, fields: EnvelopeFields): Sign | undefined {
  return hasNext ? { member: fields.nameOf('hasNext'), value: true, kind: 'flag' } : moreBehind(signs, here);
}
