import { isObject, plainName, saysNothing } from './around.js';

// The spellings in which services write the values of an envelope; docs/configuration.md has the table.

/** The meaning of a value: nothing, something, or something that is not understood and fails the page. `found`: its kind, for a message, and nothing of what it holds. */
export type Said<T> =
  | { readonly kind: 'absent' }
  | { readonly kind: 'said'; readonly value: T }
  | { readonly kind: 'unclear'; readonly found: string };

/**
 * The meaning of the place of the next page:
 * - `silent`: nothing, since it is missing.
 * - `none`: there is no next page. `spelling`: null and an empty text mean nothing else, unlike 0 or "none".
 * - `named`: this token or link leads to it.
 */
export type SaidNext =
  | { readonly kind: 'silent' }
  | { readonly kind: 'none'; readonly spelling: 'null' | 'empty text' | 'other' }
  | { readonly kind: 'named'; readonly token: string | number }
  | { readonly kind: 'unclear'; readonly found: string };

const ABSENT = { kind: 'absent' } as const;
const DIGITS = /^\d{1,15}$/;
/** Texts that services write where they tell nothing. */
const NOTHING_TOLD = /^(|null|none|nil|undefined|-1)$/i;
/** `items 0-2/7` (RFC 9110, 14.4): the unit may be left out, the range may be `*`, and so may the length. */
const CONTENT_RANGE = /^(?:[\w-]+[ =])? *(?:\d+ *- *\d+|\*) *\/ *(\d{1,15}|\*)$/;
/** A header that was sent several times with one value. Without a space, three digits may be a group of one number. */
const SENT_AGAIN = /^(.*?)(?:, +\1)+$/;
const COUNT_SENT_AGAIN = /^(\d{1,2}|\d{4,15})(?:,\1)+$/;
const YES = /^(true|yes|y|1)$/i;
const NO = /^(false|no|n|0)$/i;

/** The value of a header that may have been sent several times. */
export function headerValue(text: string | undefined): string | undefined {
  return text?.trim().replace(SENT_AGAIN, '$1').replace(COUNT_SENT_AGAIN, '$1');
}

/** The records of the whole list: a whole number of 0 or more, its digits as a text, or in a header a Content-Range. */
export function totalOf(value: unknown, isHeader: boolean): Said<number> {
  if (value === undefined || value === null || value === -1) return ABSENT;
  if (Number.isSafeInteger(value) && (value as number) >= 0) return { kind: 'said', value: value as number };
  if (typeof value !== 'string') return unclear(value);
  const text = value.trim();
  if (NOTHING_TOLD.test(text)) return ABSENT;
  const length = isHeader ? (CONTENT_RANGE.exec(text)?.[1] ?? text) : text;
  if (length === '*') return ABSENT;
  return DIGITS.test(length) ? { kind: 'said', value: Number(length) } : unclear(value);
}

/** Whether another page follows: true or false, their texts in any case, 1 or 0. */
export function flagOf(value: unknown): Said<boolean> {
  if (value === undefined || value === null) return ABSENT;
  if (typeof value === 'boolean') return { kind: 'said', value };
  const text = typeof value === 'string' || typeof value === 'number' ? String(value).trim() : undefined;
  if (text === undefined) return unclear(value);
  if (YES.test(text) || NO.test(text)) return { kind: 'said', value: YES.test(text) };
  return typeof value === 'string' && NOTHING_TOLD.test(text) && text !== '-1' ? ABSENT : unclear(value);
}

/** Names of members that hold a link, and of members that hold a token, as `plainName` has them. */
export const LINK_MEMBERS: ReadonlySet<string> = new Set(['href', 'url', 'uri', 'link']);
export const TOKEN_MEMBERS: ReadonlySet<string> = new Set(['token', 'cursor', 'after', 'value', 'continuationtoken']);

/** The value that leads to the next page. `leadsBy`: names of the members that hold it in an object. */
export function nextOf(value: unknown, leadsBy: ReadonlySet<string>): SaidNext {
  if (value === undefined) return { kind: 'silent' };
  const plain = plainNone(value);
  if (plain) return plain;
  if (isObject(value)) return nextIn(value, leadsBy);
  const isEmpty = Array.isArray(value) ? value.length === 0 : saysNothing(String(value));
  if (isEmpty) return { kind: 'none', spelling: 'other' };
  return ownToken(value);
}

/** The value that leads to the next page, of a member of the last record, which may hold anything: 0 and "none" are ids as others are. */
export function nextOfRecord(value: unknown): SaidNext {
  if (value === undefined) return { kind: 'silent' };
  return plainNone(value) ?? ownToken(value);
}

function plainNone(value: unknown): SaidNext | undefined {
  if (value === null) return { kind: 'none', spelling: 'null' };
  return value === '' ? { kind: 'none', spelling: 'empty text' } : undefined;
}

function ownToken(value: unknown): SaidNext {
  const isToken = typeof value === 'string' || Number.isSafeInteger(value);
  return isToken ? { kind: 'named', token: value as string | number } : unclear(value);
}

/** An object that holds several names of other pages is not understood. */
function nextIn(holder: object, leadsBy: ReadonlySet<string>): SaidNext {
  const members = Object.entries(holder);
  const found = members.filter(([name]) => leadsBy.has(plainName(name))).map(([, value]) => nextOf(value, new Set()));
  const named = new Set(found.flatMap((each) => (each.kind === 'named' ? [each.token] : [])));
  const isUnclear = found.some(({ kind }) => kind === 'unclear') || named.size > 1 || (members.length > 0 && found.length === 0);
  if (isUnclear) return unclear(holder);
  const [token] = named;
  return token === undefined ? { kind: 'none', spelling: 'other' } : { kind: 'named', token };
}

function unclear(value: unknown): { readonly kind: 'unclear'; readonly found: string } {
  return { kind: 'unclear', found: kindOf(value) };
}

/** The kind of a value in a message's words: "an array". */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'a whole number' : 'a number with a fraction';
  return { string: 'a text', boolean: String(value), object: 'an object' }[typeof value as 'string' | 'boolean' | 'object'];
}
