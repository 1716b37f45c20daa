import {
  briefly,
  isObject,
  type Member,
  membersOfHeaders,
  type PassedOver,
  plainName,
  type Sign,
  saysNothing,
  wholeNumber,
} from './around.js';
import { parseLinkHeader } from './link-header.js';
import type { ParsedResponse } from './parsed-response.js';
import { flagOf, nextOf } from './spellings.js';

/** Names that lead to the next page, in lower case and without `_` and `-`. */
const NEXT_NAMES = new Set(
  [
    ['next', 'nextpage', 'nextlink', 'nexturl', 'nexturi', 'nexthref', 'nextcursor', 'nexttoken', 'nextmarker'],
    ['nextpagetoken', 'nextpagelink', 'nextpageurl', 'nextpageuri', 'nextpagecursor', 'nextpagenumber', 'nextrecordsurl'],
    [
      'nextoffset',
      'nextskip',
      'nextstart',
      'nextindex',
      'continuation',
      'continuationtoken',
      'nextcontinuationtoken',
      'skiptoken',
    ],
  ].flat(),
);
const MORE_NAMES = new Set(
  [
    ['more', 'hasmore', 'hasnext', 'hasnextpage', 'istruncated', 'truncated', 'moreavailable'],
    ['hasmorepages', 'hasmoreitems', 'hasmoreresults', 'hasmorerecords', 'hasmoredata'],
  ].flat(),
);
/** Names that say the end where they are true, and more where they are false. */
const LAST_NAMES = new Set(['last', 'islast', 'lastpage', 'islastpage']);
const PAGE_NAMES = new Set(['page', 'pagenumber', 'pageno', 'pageindex', 'currentpage', 'current', 'number']);
const PAGES_NAMES = new Set(['pages', 'totalpages', 'pagecount', 'pagestotal', 'numpages', 'lastpage']);
/** Members of a `next` object that lead on. */
const LEADS_BY = new Set(['href', 'url', 'uri', 'link', 'cursor', 'token', 'after', 'page', 'number', 'offset', 'skip', 'start']);
const YES = /^(true|yes|y|1)$/i;
const ADDRESS = /^([a-z][a-z\d+.-]*:)?\/|^\?/i;
const DATE = /^(\d{4}-\d\d(-\d\d)?([T ]\d\d:.*)?|\d{1,2}[./]\d{1,2}[./]\d{4}.*|(mon|tue|wed|thu|fri|sat|sun)[a-z]*,? .*\d.*)$/i;
/** Characters of a link or token that a message may quote. */
const MOST_QUOTED = 80;

/**
 * Finds whatever in the response's headers and around its records (`membersAround`) may say that more records follow. Whether it does depends on where
 * the page stands (`moreBehind`).
 */
export function signsOfMore(
  response: Pick<ParsedResponse, 'headers' | 'url'>,
  around: readonly Member[][],
  isPassedOver: PassedOver,
): readonly Sign[] {
  const signs: Sign[] = [];
  for (const members of [...around, membersOfHeaders(response)]) {
    const pages = members.find(({ name, value }) => PAGES_NAMES.has(name) && wholeNumber(value) !== undefined)?.value;
    for (const each of members) signs.push(...signsIn(each), ...pageNumberIn(each, pages));
  }
  signs.push(...linkToNext(response), ...partOfMore(response));
  return signs.filter((sign) => !isPassedOver(sign.member) && !isHere(sign, response.url));
}

/** Whether some member around the records (`membersAround`), or a header, says that no more follow, be it in a spelling that says little else. */
export function deniesMore(around: readonly Member[][], { headers }: Pick<ParsedResponse, 'headers'> = { headers: {} }): boolean {
  const links = headers['link'] === undefined ? undefined : parseLinkHeader(headers['link']);
  if (links && !links.some(({ rel }) => rel.includes('next'))) return true;
  return [...around, membersOfHeaders({ headers })].flat().some(({ name, value }) => {
    const flag = flagOf(value);
    if (flag.kind === 'said' && MORE_NAMES.has(name)) return !flag.value;
    if (flag.kind === 'said' && LAST_NAMES.has(name)) return flag.value;
    return NEXT_NAMES.has(name) && nextOf(value, LEADS_BY).kind === 'none';
  });
}

/** Whether a flag of this name says that more follow. */
export function isNameOfMore(name: string): boolean {
  return MORE_NAMES.has(plainName(name));
}

/** The place of a page in its pass. */
export interface Here {
  /** The token or link that led to the page; null for the first one. */
  readonly token?: string | number | null;
  /** The number of the page, or how many came before it. */
  readonly page: number;
  /** The position of its first record, where that is known; else its number. */
  readonly position: number;
  /** The number of the list's first page; undefined where that is not known. */
  readonly first?: number | undefined;
}

/** The first of the signs that says that more records follow the page. */
export function moreBehind(signs: readonly Sign[] | undefined, here: Here): Sign | undefined {
  return signs?.find((sign) => saysMore(sign, here));
}

function saysMore({ member, kind, value, of }: Sign, { token, page, position, first }: Here): boolean {
  if (kind === 'flag') return true;
  if (token !== undefined && token !== null && String(value) === String(token)) return false;
  if (kind === 'name') return true;
  const number = Number(value);
  if (kind === 'number') return number > (/page/i.test(member.replace(/^.*\./, '')) ? page : position);
  // A service that counts its pages from 0 calls the last one by a number below their count.
  const base = first ?? (number === 0 || number === page ? 0 : 1);
  return number - base + 1 < of!;
}

/** A sign in the words of a message: `meta.next is "abc"`. */
export function describeSign({ member, value, kind, of }: Sign): string {
  if (kind === 'page') return `${member} is ${value} of ${of} pages`;
  return `${member} is ${JSON.stringify(typeof value === 'string' ? value.slice(0, MOST_QUOTED) : value)}`;
}

/** The signs that a member is, or that the object is which it holds. */
function signsIn({ member, name, value }: Member): Sign[] {
  if (MORE_NAMES.has(name)) return isYes(value) ? [{ member, value: briefly(value), kind: 'flag' }] : [];
  if (LAST_NAMES.has(name) && (value === false || (typeof value === 'string' && /^false$/i.test(value.trim()))))
    return [{ member, value: briefly(value), kind: 'flag' }];
  if (name === 'links' && Array.isArray(value)) return value.flatMap((link) => linkIn(member, link));
  if (!NEXT_NAMES.has(name)) return [];
  if (!isObject(value)) return leadsOn(member, value);
  return Object.entries(value).flatMap(([inner, leads]) =>
    LEADS_BY.has(plainName(inner)) ? leadsOn(`${member}.${inner}`, leads) : [],
  );
}

function leadsOn(member: string, value: unknown): Sign[] {
  if (value === true) return [{ member, value, kind: 'flag' }];
  const number = wholeNumber(value);
  if (number !== undefined) return number > 0 ? [{ member, value: number, kind: 'number' }] : [];
  if (typeof value !== 'string' || saysNothing(value) || DATE.test(value.trim())) return [];
  return [{ member, value, kind: 'name' }];
}

/** An entry of a list of links: `{ "rel": "next", "href": … }`. */
function linkIn(member: string, link: unknown): Sign[] {
  if (!isObject(link)) return [];
  const { rel, href } = link as { readonly rel?: unknown; readonly href?: unknown };
  return typeof rel === 'string' && /^next$/i.test(rel) ? leadsOn(`${member}.next`, href) : [];
}

function pageNumberIn({ member, name, value }: Member, pages: unknown): Sign[] {
  const [number, of] = [wholeNumber(value), wholeNumber(pages)];
  return PAGE_NAMES.has(name) && number !== undefined && of !== undefined ? [{ member, value: number, kind: 'page', of }] : [];
}

/** A Link header that cannot be read as a whole, and speaks of a next page, says that there is one. */
function linkToNext({ headers }: Pick<ParsedResponse, 'headers'>): Sign[] {
  const { link } = headers;
  if (link === undefined) return [];
  const links = parseLinkHeader(link);
  const target = links ? links.find(({ rel }) => rel.includes('next'))?.target : /\bnext\b/i.exec(link)?.[0];
  return target === undefined ? [] : [{ member: 'header link', value: target, kind: 'name' }];
}

/** A Content-Range (RFC 9110, 14.4) that ends before its length. */
function partOfMore({ headers }: Pick<ParsedResponse, 'headers'>): Sign[] {
  const range = headers['content-range'];
  const [, last, length] = /-\s*(\d{1,15})\s*\/\s*(\d{1,15})/.exec(range ?? '') ?? [];
  return Number(last) + 1 < Number(length) ? [{ member: 'header content-range', value: range!, kind: 'flag' }] : [];
}

/** Whether a token or link only repeats what was asked: the address, or a value in it. The text of a flag may be that of a constant by chance. */
function isHere({ kind, value }: Sign, url: string): boolean {
  if (kind !== 'name' || typeof value !== 'string' || flagOf(value).kind === 'said' || !URL.canParse(url)) return false;
  const asked = new URL(url);
  if ([...asked.searchParams.values()].includes(value)) return true;
  return ADDRESS.test(value) && URL.canParse(value, url) && new URL(value, url).href === asked.href;
}

function isYes(value: unknown): boolean {
  if (typeof value === 'string') return YES.test(value.trim()) || ADDRESS.test(value.trim());
  return value === true || (typeof value === 'number' && value > 0);
}
