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
  /** Whether the page says that none follows, in the place where the entry or the style looks for it. Otherwise its end is inferred. */
  readonly isEndTold?: boolean | undefined;
  /** A list whose pages name each other: the page says nothing of another, neither that there is one nor that there is none. */
  readonly isSilent?: boolean | undefined;
  /** The response has no body, or is null as a whole: nothing in it shows that it is of this list. */
  readonly isBlank?: boolean | undefined;
  /** How many records a page has at most, where a member around them says so. */
  readonly statedSize?: number | undefined;
  /** The value that the page does not tell, though the list's first page must, in a message's words: a wrong place would look like a value that is left out. */
  readonly lacks?: string | undefined;
  /** Signs in other places around the records that more follow. */
  readonly signs?: readonly Sign[] | undefined;
  /** An empty page: something around its records says that no more follow. */
  readonly deniesMore?: boolean | undefined;
  /** The doubt about a page that says itself to be a failure. Such a page without records is an error. */
  readonly denied?: Doubted | undefined;
}

const MEMBERS: readonly (keyof Envelope)[] = [
  ...(['total', 'nextToken', 'hasNext', 'isEndTold', 'isSilent', 'isBlank'] as const),
  ...(['statedSize', 'lacks', 'signs', 'deniesMore', 'denied'] as const),
];

/** The envelope alone of a page, or of a response that is kept. */
export function envelopeOf(page: Envelope): Envelope {
  const isSaid = (name: keyof Envelope) => page[name] !== undefined && (page[name] !== false || name === 'hasNext');
  return Object.fromEntries(MEMBERS.filter(isSaid).map((name) => [name, page[name]]));
}
