import type { EnvelopeFields } from './envelope.js';
import type { Sign } from './around.js';
import type { Doubted } from './doubt.js';

/**
 * The end of a list that is asked for by position and tells neither its total nor whether another page follows. It ends where a page brings
 * nothing, but a page may bring nothing since all its records are hidden from whoever asks. So the pages behind it are asked for:
 * one, and as long as something around the records says that more follow, three.
 */
export interface InferredEnd {
  /** Pages in a row that brought nothing. */
  readonly empty: number;
  /** A page behind the end was asked for: the page that this state leads to. */
  readonly isBehind: boolean;
  /** What the last page that spoke of it said of further ones, where nothing has contradicted that. */
  readonly doubted?: Doubted | undefined;
}

/** Pages that may say that more follow while they bring nothing. */
const MOST_EMPTY = 3;

/**
 * What follows from a page that brings nothing new. `isEmpty`: it brings nothing at all, or stands behind the end and repeats what came. `more`:
 * what around its records says that more follow. Returns the state of the end that the next page is asked with, or `done`.
 */
export function behindEnd(
  before: InferredEnd | undefined,
  isEmpty: boolean,
  more: Sign | undefined,
  fields: EnvelopeFields,
): { readonly kind: 'done'; readonly doubted?: Doubted } | { readonly kind: 'ask'; readonly end: InferredEnd } {
  const empty = (before?.empty ?? 0) + (isEmpty ? 1 : 0);
  if (!more) return before?.isBehind ? { kind: 'done' } : { kind: 'ask', end: { empty, isBehind: true } };
  const doubted = fields.contradictedBy(more);
  return empty >= MOST_EMPTY ? { kind: 'done', doubted } : { kind: 'ask', end: { empty, isBehind: true, doubted } };
}

/** What services answer to a position behind the end of a list. */
const NOTHING_BEHIND = new Set([400, 404, 416]);

/** Whether the service says that there is no page behind the end. */
export function isBehindLast(status: unknown, end: InferredEnd | undefined): end is InferredEnd {
  return end?.isBehind === true && NOTHING_BEHIND.has(Number(status));
}
