import { isUtf8 } from 'node:buffer';
import { isMusterError, MusterError } from '../core/errors.js';
import { atOnce, BYTES_A_TURN, ITEMS_A_TURN } from '../core/turns.js';
import { idParts } from '../pagers/id-candidate.js';
import type { NoRecords } from '../pagers/parsed-response.js';

/** A page as the second reader sees it. */
export interface ResponseRead {
  /** The parsed answer, with an empty array in the place of its records. */
  readonly rest: unknown;
  /** The text of each record, byte for byte as it was sent. */
  readonly texts: readonly string[];
  /** The value in the place of the records, where that is no array and says that there are none. */
  readonly noRecords?: NoRecords;
}

/** A page without a body (status 204). */
export const NO_CONTENT: ResponseRead = { rest: undefined, texts: [], noRecords: 'no-content' };

/** The place of a value in a JSON text: `start` is its first character, `end` the one after its last. */
interface Place {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a page without the scanner of walks: were both to misread a page alike, nothing would be found. The records are cut out of the text,
 * since JSON.parse would round their numbers. JSON.parse says of each of them, and of what stands around them, whether it is JSON. In portions.
 *
 * Throws MusterError `malformed_response`, `response_too_large`, and `malformed_envelope` where no array stands at `dataPath`.
 */
export function* readAnswer(
  bytes: Buffer,
  { resource, dataPath }: { resource: string; dataPath: readonly string[] },
): Generator<void, ResponseRead> {
  const json = isUtf8(bytes) ? bytes.toString('utf8').replace(/^\u{feff}/u, '') : '';
  try {
    let place: Place | undefined = { start: skipSpace(json, 0), end: json.length };
    for (const name of dataPath) place = place && (yield* memberAt(json, place.start, name));
    if (!place || json[place.start] !== '[') {
      const rest = parseAround(json, resource);
      const noRecords = place ? emptyValue(json.slice(place.start, place.end), dataPath) : missingIn(rest, dataPath);
      if (noRecords) return { rest, texts: [], noRecords };
      throw unreadable('malformed_envelope', resource, `${dataPath.join('.') || 'the answer itself'} is not an array`);
    }
    const { texts, end } = yield* elementsAt(json, place.start);
    return { rest: parseAround(`${json.slice(0, place.start)}[]${json.slice(end)}`, resource), texts };
  } catch (error) {
    if (isMusterError(error)) throw error;
    // The parser's own message would quote the body.
    throw unreadable('malformed_response', resource, `it is not JSON in UTF-8 (${bytes.length} bytes)`);
  }
}

/** A value in the place of the records that stands for an empty array, as services write it. */
function emptyValue(text: string, { length }: readonly string[]): NoRecords | undefined {
  const value = text.trim();
  if (value === 'null') return 'null';
  return length > 0 && /^\{\s*\}$/.test(value) ? 'empty' : undefined;
}

/** A place that is not there: its path ends at an object that lacks the next name, or at null. Another value on the way is no envelope. */
function missingIn(rest: unknown, [name, ...further]: readonly string[]): NoRecords | undefined {
  if (name === undefined || typeof rest !== 'object' || rest === null || Array.isArray(rest)) return undefined;
  if (!Object.hasOwn(rest, name)) return 'missing';
  const inner = (rest as Record<string, unknown>)[name];
  return inner === null ? 'missing' : missingIn(inner, further);
}

/** Most characters around the records, which are parsed in one step. */
const MOST_AROUND = 4 * 1024 * 1024;

function parseAround(text: string, resource: string): unknown {
  if (text.length <= MOST_AROUND) return JSON.parse(text);
  throw unreadable(
    'response_too_large',
    resource,
    `around its records stand ${text.length} characters, and more than ${MOST_AROUND} are not read`,
  );
}

/** Bytes of heap for a parsed value, the text of it, and as much again until they are collected. */
const VALUE_HEAP = 150;
const BEGINS_A_VALUE = Uint8Array.from({ length: 256 }, (_, byte) => (Buffer.from(',[{').includes(byte) ? 1 : 0));

/** Bytes of heap that JSON takes once it is parsed, at most: a value begins after each comma and each bracket. Counted in portions. */
export function* heapOfParsed(json: Buffer): Generator<void, number> {
  let values = 1;
  for (let from = 0; from < json.length; from += BYTES_A_TURN) {
    if (from > 0) yield;
    const end = Math.min(from + BYTES_A_TURN, json.length);
    for (let at = from; at < end; at += 1) values += BEGINS_A_VALUE[json[at]!]!;
  }
  return values * VALUE_HEAP;
}

/**
 * The id of a record, by the first of these candidates that it has: a string as decoded, a number with its digits as written, and the values of several
 * members joined by slashes. Undefined where the text is no object or has no id.
 */
export function idIn(text: string, candidates: readonly string[]): string | undefined {
  if (text[0] !== '{') return undefined;
  for (const candidate of candidates) {
    const parts = idParts(candidate).map((path) => valueOf(text, path));
    if (parts.length === 1 && parts[0] !== undefined) return parts[0] || undefined;
    if (parts.length > 1 && parts.every(Boolean))
      return parts.map((part) => part!.replaceAll('\\', '\\\\').replaceAll('/', '\\/')).join('/');
  }
  return undefined;
}

function valueOf(text: string, path: string): string | undefined {
  const place = placeAt(text, 0, path.split('.'));
  const written = place && text.slice(place.start, place.end);
  if (written?.startsWith('"')) return JSON.parse(written) as string;
  return written !== undefined && /^[-\d]/.test(written) ? written : undefined;
}

/** The place of the value to which these names lead from the object at `at`. Names that hold dots are tried first where the member is called so as a whole. */
function placeAt(json: string, at: number, names: readonly string[]): Place | undefined {
  for (const count of [names.length, ...names.keys()].filter((n) => n > 0)) {
    const place = atOnce(memberAt(json, at, names.slice(0, count).join('.')));
    const found = place && count < names.length ? placeAt(json, place.start, names.slice(count)) : place;
    if (found) return found;
  }
  return undefined;
}

/**
 * The place of a member's value in the object that begins at `at`; of the last one of that name, as JSON.parse and PostgreSQL have it. Like all that
 * follows, it finds its way in JSON alone: for other texts it throws SyntaxError, or gives what JSON.parse refuses.
 */
function* memberAt(json: string, at: number, name: string): Generator<void, Place | undefined> {
  if (json[at] !== '{') return undefined;
  let found: Place | undefined;
  for (let next = skipSpace(json, at + 1); json[next] === '"'; ) {
    const end = endOfText(json, next);
    const start = skipSpace(json, skipSpace(json, end) + 1);
    const value = { start, end: yield* endOfValue(json, start) };
    if (JSON.parse(json.slice(next, end)) === name) found = value;
    next = skipSpace(json, value.end);
    if (json[next] === ',') next = skipSpace(json, next + 1);
  }
  return found;
}

/** The texts of the elements of the array that begins at `at`, each checked to be JSON, and the end of the array. */
function* elementsAt(json: string, at: number): Generator<void, { readonly texts: readonly string[]; readonly end: number }> {
  const texts: string[] = [];
  const first = skipSpace(json, at + 1);
  if (json[first] === ']') return { texts, end: first + 1 };
  for (let next = first, from = at; ; next = skipSpace(json, next + 1)) {
    const end = yield* endOfValue(json, next);
    const text = json.slice(next, end);
    JSON.parse(text);
    texts.push(text);
    next = skipSpace(json, end);
    if (json[next] === ']') return { texts, end: next + 1 };
    if (json[next] !== ',') throw new SyntaxError('no comma between two elements');
    if (texts.length % ITEMS_A_TURN !== 0 && end - from < BYTES_A_TURN) continue;
    yield;
    from = end;
  }
}

/** The end of the value that begins at `at`, in portions. */
function* endOfValue(json: string, at: number): Generator<void, number> {
  if (json[at] === '"') return endOfText(json, at);
  let depth = 0;
  let from = at;
  for (let next = at; ; next += 1) {
    const char = json[next];
    if (char === '"') next = endOfText(json, next) - 1;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') {
      // Ends the object or array that holds the value, where that is a number or a name.
      if (depth === 0) return next;
      depth -= 1;
      if (depth === 0) return next + 1;
    } else if (depth === 0 && (char === undefined || char === ',' || SPACE.test(char))) return next;
    else if (char === undefined) throw new SyntaxError('the text ends within a value');
    if (next - from < BYTES_A_TURN) continue;
    yield;
    from = next;
  }
}

/** The place after the quote that ends the string at `at`: a quote with an even number of backslashes before it. */
function endOfText(json: string, at: number): number {
  for (let end = json.indexOf('"', at + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let before = end;
    while (json[before - 1] === '\\') before -= 1;
    if ((end - before) % 2 === 0) return end + 1;
  }
  throw new SyntaxError('the text ends within a string');
}

const SPACE = /[ \t\n\r]/;

function skipSpace(json: string, at: number): number {
  let next = at;
  while (next < json.length && SPACE.test(json[next]!)) next += 1;
  return next;
}

function unreadable(
  code: 'malformed_response' | 'malformed_envelope' | 'response_too_large',
  resource: string,
  why: string,
): MusterError {
  return new MusterError(
    code,
    `The answer of the list ${resource} cannot be read a second time: ${why}. Check path, base URL and fields of this list.`,
    { details: { resource } },
  );
}
