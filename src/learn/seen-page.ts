import { isUtf8 } from 'node:buffer';
import { isObject, type Members, parseJson } from '../core/json.js';
import type { HttpResponse } from '../http/http-client.js';
import { membersAround, type Sign, wholeNumber } from '../pagers/around.js';
import { signsOfMore } from '../pagers/signs-of-more.js';

/** A parsed record. Its numbers may be rounded. */
export type SeenRecord = Members;

/** A response that holds a list of records. */
export interface SeenPage {
  /** The members that lead to the array; [] = the response is the array. */
  readonly dataPath: readonly string[];
  readonly records: readonly SeenRecord[];
  /** The parsed response with an empty array instead of its records. */
  readonly rest: unknown;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The address of the request. */
  readonly url: string;
  /** Whole numbers around the records, by their places as a catalogue entry names them: dot paths, or `header NAME`. */
  readonly numbers: ReadonlyMap<string, number>;
  /** Members and headers that announce more records. */
  readonly signs: readonly Sign[];
}

/** A response that holds no list, in a few words. */
export interface NoPage {
  readonly problem: string;
  readonly isTooLarge?: true;
}

/** A larger response is not examined, since it would be parsed as a whole. */
export const MOST_BYTES = 4 * 1024 * 1024;
/** Levels of objects in which a list is searched. */
const MOST_DEPTH = 4;
/** Arrays with these names are no lists. */
const NO_LISTS = /^(errors?|warnings?|links|messages|facets|filters|sort|schemas|included)$/i;
/** Headers that may have the number of records. */
const COUNT_HEADERS = /^(x-)?(total|count|pagination)[\w-]*$|^x-[\w-]*(total|count)$|^content-range$/;
/** Names that lists have, the likeliest first. */
const LIST_NAMES = ['data', 'value', 'items', 'results', 'records', 'resources', 'rows', 'entries', 'content', 'list', 'result'];

/** Finds the list in a response, at `known` if it has an array of records there. Otherwise describes the response, without any value of it. */
export function seePage(
  { bytes, headers, url }: Pick<HttpResponse, 'bytes' | 'headers' | 'url'>,
  known?: readonly string[],
): SeenPage | NoPage {
  if (bytes.length > MOST_BYTES)
    return {
      problem: `a response of ${Math.ceil(bytes.length / 1024 / 1024)} MB, which is too large to examine`,
      isTooLarge: true,
    };
  const parsed = isUtf8(bytes) ? parseJson(new TextDecoder().decode(bytes)) : undefined;
  if (parsed === undefined) return { problem: `no JSON in UTF-8 (${bytes.length} bytes, ${kindOfContent(headers)})` };
  const arrays = arraysIn(parsed, [], 0).toSorted((a, b) => likeliness(b) - likeliness(a));
  const found = arrays.find(({ path }) => path.join('.') === known?.join('.')) ?? arrays[0];
  if (!found) return { problem: noListIn(parsed) };
  const { path: dataPath, records } = found;
  const rest = without(parsed, dataPath);
  const numbers = new Map([...numbersIn(rest, '', 0), ...numbersOfHeaders(headers)]);
  const around = membersAround(rest, dataPath.slice(0, -1));
  return { dataPath, records, rest, headers, url, numbers, signs: signsOfMore({ headers, url }, around, () => false) };
}

/** The page's content type, without its parameters. */
function kindOfContent(headers: Readonly<Record<string, string>>): string {
  const type = headers['content-type']?.split(';')[0]?.trim();
  return type ? `content type ${type.slice(0, 60)}` : 'no content type';
}

interface FoundArray {
  readonly path: readonly string[];
  readonly records: readonly SeenRecord[];
}

/** The arrays of objects, and empty arrays, that are not inside another array. */
function arraysIn(value: unknown, path: readonly string[], depth: number): FoundArray[] {
  if (Array.isArray(value)) return value.every(isObject) ? [{ path, records: value }] : [];
  if (!isObject(value) || depth > MOST_DEPTH) return [];
  return Object.entries(value)
    .filter(([name]) => !NO_LISTS.test(name) && /^[^.\s]+$/.test(name))
    .flatMap(([name, inner]) => arraysIn(inner, [...path, name], depth + 1));
}

/** The longest array is the list. Between equal ones, a usual name wins, then the array that is nested less deeply. */
function likeliness({ path, records }: FoundArray): number {
  const place = LIST_NAMES.indexOf((path.at(-1) ?? 'data').toLowerCase());
  return records.length * 1_000 + (place === -1 ? 0 : 100 - place * 5) - path.length;
}

function noListIn(value: unknown): string {
  if (Array.isArray(value)) return 'an array of something other than objects';
  if (!isObject(value)) return 'JSON that is neither an array nor an object';
  const names = Object.keys(value).slice(0, 10);
  return `an object without an array of objects (its members: ${names.map((name) => name.slice(0, 40)).join(', ') || 'none'})`;
}

function without(value: unknown, [name, ...deeper]: readonly string[]): unknown {
  if (name === undefined) return [];
  const holder = value as SeenRecord;
  return { ...holder, [name]: without(holder[name], deeper) };
}

function numbersIn(value: unknown, path: string, depth: number): [string, number][] {
  if (!isObject(value) || depth > MOST_DEPTH) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    if (/\s/.test(name)) return [];
    const number = wholeNumber(inner);
    return number === undefined
      ? numbersIn(inner, `${path}${name}.`, depth + 1)
      : [[`${path}${name}`, number] as [string, number]];
  });
}

function numbersOfHeaders(headers: Readonly<Record<string, string>>): [string, number][] {
  return Object.entries(headers).flatMap(([name, value]) => {
    if (!COUNT_HEADERS.test(name)) return [];
    const [, digits] = (name === 'content-range' ? /\/(\d{1,15})$/ : /^(\d{1,15})$/).exec(value.trim()) ?? [];
    return digits === undefined ? [] : [[`header ${inTitleCase(name)}`, Number(digits)] as [string, number]];
  });
}

/** A header's name as people write it: `X-Total-Count`. */
export function inTitleCase(header: string): string {
  return header.replace(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
}
