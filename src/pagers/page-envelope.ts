import type { Sign } from './around.js';
import type { Doubted } from './doubt.js';

/** The values around the records of a response. */
export interface Envelope {
  /** Records of the whole list. */
  readonly total?: number | undefined;
  /** The value that leads to the next page of a list whose pages name each other; undefined on the last one. */
  readonly nextToken?: string | number | undefined;
  /** Whether another page follows, where the list says so and its pages do not name each other. */
  readonly hasNext?: boolean | undefined;
  /** Whether the page says that none follows, where the entry, or else the style, looks for that. Else its end is inferred from what it lacks. */
  readonly isEndTold?: boolean | undefined;
  /** A list whose pages name each other: the page says nothing of another, neither that there is one nor that there is none. */
  readonly isSilent?: boolean | undefined;
  /** The answer has no body, or is null as a whole: nothing in it shows that it is of this list. */
  readonly isBlank?: boolean | undefined;
  /** How many records a page has at most, where a member around them says so. */
  readonly statedSize?: number | undefined;
  /** The value that the page does not tell, though the list's first page must, in a message's words: a wrong place would look like a value that is left out. */
  readonly lacks?: string | undefined;
  /** All else around the records that may say that more follow. */
  readonly signs?: readonly Sign[] | undefined;
  /** An empty page: something around its records says that no more follow. */
  readonly deniesMore?: boolean | undefined;
  /** The doubt about a page that says itself to be a failure. Such a page without records is an error. */
  readonly denied?: Doubted | undefined;
}

/** The envelope of a page, or of an answer that is kept, and nothing else of it. */
export function envelopeOf({
  total,
  nextToken,
  hasNext,
  isEndTold,
  isSilent,
  isBlank,
  statedSize,
  lacks,
  signs,
  deniesMore,
  denied,
}: Envelope): Envelope {
  return {
    total,
    nextToken,
    hasNext,
    ...(isEndTold && { isEndTold }),
    ...(isSilent && { isSilent }),
    ...(isBlank && { isBlank }),
    ...(statedSize !== undefined && { statedSize }),
    ...(lacks !== undefined && { lacks }),
    ...(signs && { signs }),
    ...(deniesMore && { deniesMore }),
    ...(denied && { denied }),
  };
}
