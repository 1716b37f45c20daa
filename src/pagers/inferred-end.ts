import type { MusterError } from '../core/errors.js';
import type { Sign } from './around.js';
import type { Doubted } from './doubt.js';
import type { EnvelopeFields } from './envelope.js';

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

/** What services answer to a position behind the end of a list. */
const NOTHING_BEHIND = new Set([400, 404, 416]);

/** Phrases in which words of a limit speak of the end of the list. */
const BEYOND_THE_END =
  /(exceed\w*|beyond|past|after|above|over|(greater|more|larger|higher) than)\W+(the\W+)?(last|end|total|final|available|existing|number of|count)\b/gi;
/**
 * Words of a refusal that has another reason than the end of the list: a service that pages through so many records only, or that does not know the
 * parameters. To take an end for a limit costs a proof, to take a limit for an end loses records.
 */
const OTHER_REASON = [
  /limit|maxim|\bmax\b|exceed|window|quota|allow|permit|support|upgrade|restrict|deep/i,
  /too[\s_-]*(large|big|high|deep|far|many|great|long)/i,
  /\b(at most|up to|no more than|not more than|only the first|(un(known|expected|recogni[sz]ed)|invalid) (query|parameter|argument|field|option))\b/i,
  /\b(must|should|ha(s|ve) to|needs? to|can ?not|can't|may not)\b.*(\b(less|smaller|lower|below|under|more|greater|larger|higher|beyond|past|between|multiple|over)\b|<)/i,
];

/** A refusal of a page that may stand behind the end of a list. */
export interface RefusedPage {
  readonly status: number;
  /** The service's own sentence gives another reason than the end of the list. */
  readonly hasOtherReason: boolean;
}

/** The refusal by which a service says in its own words, and no gateway for it, that there is no such page; undefined for other errors. */
export function refusedPage({ code, details }: MusterError): RefusedPage | undefined {
  const status = Number(details['status']);
  if (code !== 'service_refused' || details['own_words'] !== true || !NOTHING_BEHIND.has(status)) return undefined;
  const words = String(details['service_says'] ?? '')
    .replaceAll('_', ' ')
    .replaceAll(BEYOND_THE_END, '');
  return { status, hasOtherReason: OTHER_REASON.some((pattern) => pattern.test(words)) };
}

/** The end of a list whose service refuses the page behind the last one: the page behind that must be refused alike. */
export function refusedEnd(index: number, { status }: RefusedPage): InferredEnd {
  return { empty: 1, index, status };
}

/** Whether a refusal of the page behind such an end is another one than that which made it. */
export function isRefusedOtherwise({ status }: InferredEnd, refused: RefusedPage): boolean {
  return status !== undefined && status !== refused.status;
}
