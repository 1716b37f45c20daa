import type { MusterError } from '../core/errors.js';
import { refusalTexts } from '../core/refusal-texts.js';

/**
 * Whether the list refused a request with one of these statuses, in JSON, with a sentence or without a body. A page of HTML is that of another server, and says
 * nothing of what was asked.
 */
export function isRefusedWith({ code, details }: MusterError, statuses: ReadonlySet<number>): boolean {
  const isOfTheApi = details['own_words'] === true || details['service_says'] !== undefined;
  return code === 'service_refused' && isOfTheApi && statuses.has(Number(details['status']));
}

/** Statuses that services answer to a position after the end of a list. */
const NOTHING_BEHIND = new Set([400, 404, 416]);

/** Phrases in which words of a limit speak of the end of the list. */
const BEYOND_THE_END =
  /(exceed\w*|beyond|past|after|above|over|(greater|more|larger|higher) than)\W+(the\W+)?(last|end|total|final|available|existing|number of|count)\b/gi;
/** Phrases that say that there is no such page. */
const NO_SUCH_PAGE = [
  /\bnot found\b|out of (range|bounds?)|no (more|further|such|other|additional|results?|records?|items?|data|content|rows|entries)\b/i,
  /\b(does|do|did) ?(not|n't) exist|not exist|\bnon-?existent|there (is|are) no\b|(no|not|cannot be) satisf|(invalid|illegal|bad) (page|offset|position|start|index|range)\b(?! ?size)|page is empty/i,
  /nicht gefunden|existiert nicht|introuvable|n.existe pas|no existe\b|no encontrad|não encontrad|non trovat|不存在|未找到|找不到/i,
];
/** The name of a status is no more than the status. */
const STATUS_NAME =
  /^\W*((the )?(resource|page|record|entity|object|requested resource)( was)? )?not found( error| exception)?\W*$/i;
/**
 * Words of a refusal that has another reason than the end of the list: a service that pages through so many records only, or that does not know the
 * parameters. To take an end for a limit costs a proof, to take a limit for an end loses records.
 */
const OTHER_REASON = [
  /limit|maxim|\bmax\b|exceed|window|quota|allow|permit|(un|not |n't )support|upgrade|restrict|deep/i,
  /\b(plan|subscription|licen[cs]e|tier|cap(ped)?|export|cursor|scroll|first \d+|most recent)\b/i,
  /too[\s_-]*(large|big|high|deep|far|many|great|long)/i,
  /\b(at most|up to|no more than|not more than|only the first|(un(known|expected|recogni[sz]ed)|invalid) (query|parameter|argument|field|option))\b/i,
  /\b(must|should|ha(s|ve) to|needs? to|can ?not|can't|may not)\b.*(\b(less|smaller|lower|below|under|more|greater|larger|higher|beyond|past|between|multiple|over)\b|[<≤])/i,
  /\b(less|smaller|lower) than or equal/i,
];
/** Words that tell nothing but that the request was refused. */
const SAYS_NOTHING =
  /^(an?|the|is|was|has|occurred|one|or|more|http|api|rest|bad|invalid|illegal|wrong|client|user|server|request|response|error|errors|exception|status|code|fail|failed|failure|refused|validation|value|argument|parameter|query)$/i;

/**
 * The reason that the texts of a refusal give:
 * - `end`: there is no such page, or nothing but that the request was wrong.
 * - `limit`: it has another reason.
 * - `unclear`: they are in words that are not known.
 */
export type RefusalReason = 'end' | 'limit' | 'unclear';

/** A refusal of a page that may come after the end of a list. */
export interface RefusedPage {
  readonly status: number;
  readonly reason: RefusalReason;
}

/** The refusal where the service itself, and no gateway for it, says that there is no such page; undefined for other errors. */
export function refusedPage(error: MusterError): RefusedPage | undefined {
  const status = Number(error.details['status']);
  if (error.code !== 'service_refused' || error.details['own_words'] !== true || !NOTHING_BEHIND.has(status)) return undefined;
  return { status, reason: reasonOf(refusalTexts(error)) };
}

function reasonOf(texts: readonly string[] | undefined): RefusalReason {
  if (texts === undefined) return 'unclear';
  const said = new Set(texts.map(saidBy));
  if (said.has('limit')) return 'limit';
  return said.has('end') || !said.has('unclear') ? 'end' : 'unclear';
}

/** The reason that one of the texts gives; undefined where it says no more than the status does. */
function saidBy(text: string): RefusalReason | undefined {
  const words = text.replaceAll(/(?<=[a-z\d])(?=[A-Z])|[_-]+/g, ' ');
  const rest = words.replaceAll(BEYOND_THE_END, '');
  if (OTHER_REASON.some((pattern) => pattern.test(rest))) return 'limit';
  if (STATUS_NAME.test(words)) return undefined;
  if (rest !== words || NO_SUCH_PAGE.some((pattern) => pattern.test(words))) return 'end';
  return isClear(text, words) ? undefined : 'unclear';
}

/** Whether a text is known to tell no reason: an address, a number, an identifier, one word, or words that say nothing. */
function isClear(text: string, words: string): boolean {
  if (/^(https?:\/)?\/\S*$|^\S*\d\S*$/.test(text.trim())) return true;
  const telling = (words.match(/\p{L}{2,}/gu) ?? []).filter((word) => !SAYS_NOTHING.test(word));
  return telling.length === 0 || (telling.length === 1 && /^[\w.:-]+$/.test(text.trim()) && !/[_-]/.test(text.trim()));
}
