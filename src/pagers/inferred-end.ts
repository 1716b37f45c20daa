import type { Sign } from './around.js';
import { type Doubted, skippedPage } from './doubt.js';
import type { EnvelopeFields } from './envelope.js';
import type { Advance, JsonObject, Page, Received } from './pager.js';
import type { RefusedPage } from './refusal.js';
import { type Here, moreBehind } from './signs-of-more.js';

/**
 * The end of a list that is asked for by position and tells neither its total nor whether another page follows. It ends where a page brings
 * nothing, but a page may bring nothing since all its records are hidden from whoever asks. So the pages behind it are asked for:
 * one, and as long as something around the records says that more follow, three. A pager's state has it for each page behind the end.
 */
export interface InferredEnd {
  /** Pages in a row that brought nothing. */
  readonly empty: number;
  /** How many positions, or records, stood before it. */
  readonly index: number;
  /** The status with which its page was refused, where it was. */
  readonly status?: number | undefined;
  /** What the last page that spoke of it said of further ones, where nothing has contradicted that. */
  readonly doubted?: Doubted | undefined;
}

/** Pages that may say that more follow while they bring nothing. */
const MOST_EMPTY = 3;

/**
 * What follows from a page that brings nothing new. `index`: how many positions stand before the end, if this is one. `isEmpty`: it brings nothing at all, or stands behind the end and repeats what came. `more`:
 * what around its records says that more follow. Returns the state of the end that the next page is asked with, or `done`.
 */
export function behindEnd(
  before: InferredEnd | undefined,
  { index, isEmpty }: { readonly index: number; readonly isEmpty: boolean },
  more: Sign | undefined,
  fields: EnvelopeFields,
): { readonly kind: 'done'; readonly doubted?: Doubted } | { readonly kind: 'ask'; readonly end: InferredEnd } {
  const empty = (before?.empty ?? 0) + (isEmpty ? 1 : 0);
  const end = { empty, index: before?.index ?? index };
  if (!more) return before ? { kind: 'done' } : { kind: 'ask', end };
  const doubted = fields.contradictedBy(more);
  return empty >= MOST_EMPTY ? { kind: 'done', doubted } : { kind: 'ask', end: { ...end, doubted } };
}

/** The end of a list whose service refuses the page behind the last one: the page behind that must be refused alike. */
export function refusedEnd(index: number, { status }: RefusedPage, doubted: Doubted | undefined): InferredEnd {
  return { empty: 1, index, status, doubted };
}

/** Whether a refusal of the page behind such an end is another one than that which made it. */
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
 * - A page that brings new records behind one that was refused shows that the refused one was not the end, and its records are missing.
 * - A page that says that more follow (`more`) is believed until another page denies it, be it by records with nothing more said of further ones. An empty page that says nothing denies nothing.
 */
export function withDoubts<S extends JsonObject & EndState>(
  state: EndState & { readonly total?: number | undefined },
  page: Page,
  received: Received,
  advance: Advance<S>,
  { more, fields }: { readonly more: Sign | undefined; readonly fields: EnvelopeFields },
): Advance<S> {
  const { end } = state;
  if (advance.kind === 'again')
    return { ...advance, state: { ...advance.state, doubted: state.doubted, promised: state.promised } };
  const isSkipped = end?.status !== undefined && received.repeats < page.count;
  const doubted = state.doubted ?? (isSkipped ? skippedPage(end.index, end.status) : undefined);
  const isTold = (page.total ?? state.total) !== undefined || page.hasNext === false;
  const isDenied = page.count > 0 || page.deniesMore || page.signs?.some(({ kind }) => kind === 'page');
  const kept = isDenied ? undefined : state.promised;
  const promised = isTold ? undefined : more ? fields.contradictedBy(more) : kept;
  if (advance.kind === 'done') return { ...advance, doubted: doubted ?? advance.doubted ?? promised };
  return { ...advance, state: { ...advance.state, doubted, promised } };
}

/** The sign that more follow behind a page: the place that the entry names, or something else around the records. */
export function saidOfMore({ hasNext, signs }: Page, here: Here, fields: EnvelopeFields): Sign | undefined {
  return hasNext ? { member: fields.nameOf('hasNext'), value: true, kind: 'flag' } : moreBehind(signs, here);
}
