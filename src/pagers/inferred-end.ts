import type { Sign } from './around.js';
import { type Doubted, skippedPage } from './doubt.js';
import type { EnvelopeFields } from './envelope.js';
import type { Advance, JsonObject, Page, Received } from './pager.js';
import type { RefusedPage } from './refusal.js';

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

/** What a pager's state says of the end of such a list. */
export type EndState = {
  /** The list seems to have ended before this page. */
  readonly end?: InferredEnd | undefined;
  /** Why not all of the list may have come, wherever it ends. */
  readonly doubted?: Doubted | undefined;
};

/**
 * Adds to what follows from a page the doubt that the pass has from then on: a page that brings new records behind one that was refused shows that the refused one
 * was not the end, and its records are missing.
 */
export function withDoubt<S extends JsonObject & EndState>(
  { end, doubted: before }: EndState,
  page: Page,
  received: Received,
  advance: Advance<S>,
): Advance<S> {
  const isSkipped = end?.status !== undefined && received.repeats < page.count;
  const doubted = before ?? (isSkipped ? skippedPage(end.index, end.status!) : undefined);
  if (doubted === undefined) return advance;
  return advance.kind === 'done' ? { ...advance, doubted } : { ...advance, state: { ...advance.state, doubted } };
}
