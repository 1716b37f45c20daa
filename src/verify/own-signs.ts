import type { ParsedResponse } from '../pagers/parsed-response.js';

type Around = Pick<ParsedResponse, 'rest' | 'headers'>;

/** Names that lead to another page, and flags that say that there is one, wherever they are around the records. */
const LEADS_ON = /(^|[^a-z])next$|next[-_]?(page|cursor|token|link|url|uri|href|batch|set)|continuation|skiptoken/i;
const SAYS_MORE = /^(has|is)?[-_]?(next|more|truncated|incomplete)/i;
const NOTHING = /^(|null|none|false|no|0|-?1|\d{4}-\d\d-\d\d.*)$/i;

/**
 * A member or header that says that more records follow, by rules of the second reader's own: if walks and it knew the same names only, neither would find
 * what the other misses. It knows fewer places, and any name that is like one of these. `ignored`: members that the entry says to mean nothing.
 */
export function ownSignOfMore(response: Around, ignored: readonly string[]): string | undefined {
  const found = placesOf(response).find(([place, value]) => {
    return !ignored.some((each) => place === each || place.startsWith(`${each}.`)) && saysMore(nameIn(place), value);
  });
  return found?.[0];
}

/** Whether a member or header of such a name is there, and says that none follow; so does a Link header without a next one, and a page number without a later one. */
export function ownSignOfEnd(response: Around): boolean {
  return placesOf(response).some(([place, value]) => {
    const name = nameIn(place);
    if (name === 'link') return typeof value === 'string' && !saysMore(name, value);
    const isOfPaging = LEADS_ON.test(name) || SAYS_MORE.test(name) || /^(total[-_]?)?pages$/i.test(name);
    return isOfPaging && !saysMore(name, value);
  });
}

/** The members at the top and one level below, and the headers. */
function placesOf({ rest, headers }: Around): readonly [place: string, value: unknown][] {
  const top = members(rest);
  return [
    ...Object.entries(headers).map(([name, value]): [string, unknown] => [`header ${name}`, value]),
    ...top,
    ...top.flatMap(([name, value]) => members(value).map(([inner, each]): [string, unknown] => [`${name}.${inner}`, each])),
  ];
}

function nameIn(place: string): string {
  return place.replace(/^header |^.*\./, '');
}

function saysMore(name: string, value: unknown): boolean {
  if (value === true || /^(true|yes)$/i.test(String(value).trim())) return SAYS_MORE.test(name);
  // A number may count something else where the name does not ask a question.
  if (String(value).trim() === '1') return /^(has|is)/i.test(name) && SAYS_MORE.test(name);
  if (name === 'link') return /rel\s*=\s*"?[^",;]*\bnext\b/i.test(String(value));
  if (name === 'content-range') return isPart(String(value));
  const link = typeof value === 'object' && value !== null && 'href' in value ? value.href : value;
  return typeof link === 'string' && !NOTHING.test(link.trim()) && LEADS_ON.test(name);
}

/** Whether `items 10-19/40` ends before its length. */
function isPart(range: string): boolean {
  const [, last, length] = /(\d+)\s*\/\s*(\d+)\s*$/.exec(range) ?? [];
  return Number(last) + 1 < Number(length);
}

function members(value: unknown): [string, unknown][] {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? Object.entries(value) : [];
}
