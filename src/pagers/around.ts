import type { ParsedResponse } from './parsed-response.js';

/** Something around a page's records that speaks of more of them, or of a failure. */
export interface Sign {
  /** Dot path from the answer's root, or `header NAME`. */
  readonly member: string;
  /** The value as received; a text that leads nowhere is cut short, since it may be about people. */
  readonly value: string | number | boolean;
  /**
   * - `flag`: says yes or no.
   * - `name`: leads to another page by a token or a link.
   * - `number`: leads to another page by its number or position.
   * - `page`: the number of this page, of a list of `of` pages.
   */
  readonly kind: 'flag' | 'name' | 'number' | 'page';
  readonly of?: number;
}

/** Whether to pass over a member: the catalogue entry reads it itself, or says that it means nothing. Named as in Sign.member. */
export type PassedOver = (member: string) => boolean;

export interface Member {
  /** See Sign.member. */
  readonly member: string;
  /** Without what a format puts before it (`@odata.nextLink`), in lower case and without `_` and `-`. */
  readonly name: string;
  readonly value: unknown;
}

/** Members that hold paging values, at the top, in the envelope, and in each other. */
const HOLDERS = new Set(
  [
    ['links', 'paging', 'pagination', 'page', 'meta'],
    ['metadata', 'responsemetadata', 'pageinfo', 'paginginfo', 'paginationinfo', 'cursor', 'cursors'],
    // Some services have the status of the response in an object.
    ['status', 'responsestatus', 'result'],
  ].flat(),
);
const MOST_DEPTH = 5;
/** Characters of a text that a message may quote. */
const MOST_WORD = 20;
const WHOLE = /^\d{1,15}$/;
/** Texts that services write where they have nothing to say. */
const NOTHING = /^(|null|none|nil|false|no|0|-1|undefined)$/i;

/**
 * The members of the response, of the objects that lead to its envelope, and of those in them whose names are those of holders of paging values; one array for each
 * object. Records are not looked into. `envelope`: the members that lead to the paging envelope.
 */
export function membersAround(rest: unknown, envelope: readonly string[]): Member[][] {
  const holders: Member[][] = [];
  const visit = (value: unknown, path: string, along: readonly string[], depth: number): void => {
    if (!isObject(value) || depth > MOST_DEPTH) return;
    const members = Object.entries(value).map(([key, inner]) => ({
      key,
      member: `${path}${key}`,
      name: plainName(key),
      value: inner,
    }));
    holders.push(members);
    for (const { key, member, name, value: inner } of members) {
      const isAlong = along[0] === key;
      if (isAlong || HOLDERS.has(name)) visit(inner, `${member}.`, isAlong ? along.slice(1) : [], depth + 1);
    }
  };
  visit(rest, '', envelope, 0);
  return holders;
}

/** The headers, without the `X-` and `X-MS-` that some services put before their names. */
export function membersOfHeaders({ headers }: Pick<ParsedResponse, 'headers'>): Member[] {
  return Object.entries(headers).map(([name, value]) => ({
    member: `header ${name}`,
    name: plainName(name.replace(/^x-(ms-)?/, '')),
    value,
  }));
}

export function plainName(name: string): string {
  return name
    .replace(/^.*[.:@]/, '')
    .replaceAll(/[_-]/g, '')
    .toLowerCase();
}

/** A whole number of 0 or more, or the text of one. */
export function wholeNumber(value: unknown): number | undefined {
  if (typeof value === 'string' && WHOLE.test(value.trim())) return Number(value);
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
}

export function saysNothing(text: string): boolean {
  return NOTHING.test(text.trim());
}

export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as a message may quote it: long texts may be about people. */
export function briefly(value: unknown): Sign['value'] {
  if (typeof value === 'boolean' || typeof value === 'number') return value;
  return typeof value === 'string' && value.length <= MOST_WORD ? value : '…';
}
