import type { MusterError } from '../core/errors.js';

/**
 * Whether the list refused a request with one of these statuses, in JSON, with a sentence or without a body. A page of HTML is somebody else's, and says
 * nothing of what was asked.
 */
export function isRefusedWith({ code, details }: MusterError, statuses: ReadonlySet<number>): boolean {
  const isOfTheApi = details['own_words'] === true || details['service_says'] !== undefined;
  return code === 'service_refused' && isOfTheApi && statuses.has(Number(details['status']));
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
