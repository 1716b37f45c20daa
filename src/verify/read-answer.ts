import { isUtf8 } from 'node:buffer';
import { MusterError } from '../core/errors.js';
import { BYTES_A_TURN, ITEMS_A_TURN } from '../core/turns.js';

/** A page as the second reader sees it. */
export interface AnswerRead {
  /** The parsed answer, with an empty array in the place of its records. */
  readonly rest: unknown;
  /** The text of each record, byte for byte as it was sent. */
  readonly texts: readonly string[];
}

/** Where a value stands in a JSON text: `start` is its first character, `end` the one behind it. */
interface Place {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads a page without the scanner by which walks read: were both to misread a page alike, nothing would be found. JSON.parse says whether it
 * is JSON, and reads what stands around the records. The records are cut out of the text, in portions, since JSON.parse would round their numbers.
 *
 * Throws MusterError `malformed_response`, and `malformed_envelope` where no array stands at `dataPath`.
 */
export function* readAnswer(
  bytes: Buffer,
  { resource, dataPath }: { resource: string; dataPath: readonly string[] },
): Generator<void, AnswerRead> {
  const json = isUtf8(bytes) ? bytes.toString('utf8').replace(/^\u{feff}/u, '') : '';
  let rest: unknown;
  try {
    rest = JSON.parse(json);
  } catch {
    // The parser's own message would quote the body.
    throw unreadable('malformed_response', resource, `it is not JSON in UTF-8 (${bytes.length} bytes)`);
  }
  if (json.length >= BYTES_A_TURN) yield;
  let place: Place | undefined = { start: skipSpace(json, 0), end: json.length };
  for (const name of dataPath) place = place && memberAt(json, place.start, name);
  if (!place || json[place.start] !== '[')
    throw unreadable('malformed_envelope', resource, `${dataPath.join('.') || 'the answer itself'} is not an array`);
  const texts = yield* elementsAt(json, place.start);
  return { rest: withoutRecords(rest, dataPath), texts };
}

/** Bytes of heap for a parsed value, the text of it, and as much again until they are collected. */
const VALUE_HEAP = 150;
const BEGINS_A_VALUE = Uint8Array.from({ length: 256 }, (_, byte) => (Buffer.from(',[{').includes(byte) ? 1 : 0));

/** Bytes of heap that JSON takes once it is parsed, at most: a value begins behind each comma and each bracket. Counted in portions. */
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
 * The id of a record, of the first member of these that it has: a string as decoded, a number with its digits as written. Undefined for whatever
 * is no object or has no id.
 */
export function idIn(text: string, members: readonly string[]): string | undefined {
  if (text[0] !== '{') return undefined;
  for (const name of members) {
    const place = memberAt(text, 0, name);
    const written = place && text.slice(place.start, place.end);
    if (written?.startsWith('"')) return (JSON.parse(written) as string) || undefined;
    if (written !== undefined && /^[-\d]/.test(written)) return written;
  }
  return undefined;
}

/** The place of a member's value in the object that begins at `at`; of the last one of that name, as JSON.parse and PostgreSQL have it. */
function memberAt(json: string, at: number, name: string): Place | undefined {
  if (json[at] !== '{') return undefined;
  let found: Place | undefined;
  for (let next = skipSpace(json, at + 1); json[next] === '"'; ) {
    const end = endOfText(json, next);
    const start = skipSpace(json, skipSpace(json, end) + 1);
    const value = { start, end: endOfValue(json, start) };
    if (JSON.parse(json.slice(next, end)) === name) found = value;
    next = skipSpace(json, value.end);
    if (json[next] === ',') next = skipSpace(json, next + 1);
  }
  return found;
}

/** The texts of the elements of the array that begins at `at`. */
function* elementsAt(json: string, at: number): Generator<void, string[]> {
  const texts: string[] = [];
  let from = at;
  for (let next = skipSpace(json, at + 1); json[next] !== ']'; ) {
    const end = endOfValue(json, next);
    texts.push(json.slice(next, end));
    if (texts.length % ITEMS_A_TURN === 0 || end - from >= BYTES_A_TURN) {
      yield;
      from = end;
    }
    next = skipSpace(json, end);
    if (json[next] === ',') next = skipSpace(json, next + 1);
  }
  return texts;
}

/** The end of the value that begins at `at`, in a text that is known to be JSON. */
function endOfValue(json: string, at: number): number {
  if (json[at] === '"') return endOfText(json, at);
  let depth = 0;
  for (let next = at; ; next += 1) {
    const char = json[next];
    if (char === '"') next = endOfText(json, next) - 1;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') {
      // The end of what the value stands in, where it is a number or a name.
      if (depth === 0) return next;
      depth -= 1;
      if (depth === 0) return next + 1;
    } else if (depth === 0 && (char === undefined || char === ',' || /\s/.test(char))) return next;
  }
}

/** Behind the quote that ends the string at `at`: one with an even number of backslashes before it. */
function endOfText(json: string, at: number): number {
  for (let end = json.indexOf('"', at + 1); ; end = json.indexOf('"', end + 1)) {
    let before = end;
    while (json[before - 1] === '\\') before -= 1;
    if ((end - before) % 2 === 0) return end + 1;
  }
}

function skipSpace(json: string, at: number): number {
  let next = at;
  while (next < json.length && /[\s]/.test(json[next]!)) next += 1;
  return next;
}

function withoutRecords(answer: unknown, path: readonly string[]): unknown {
  const [name, ...deeper] = path;
  if (name === undefined) return [];
  const holder = answer as Record<string, unknown>;
  return { ...holder, [name]: withoutRecords(holder[name], deeper) };
}

function unreadable(code: 'malformed_response' | 'malformed_envelope', resource: string, why: string): MusterError {
  return new MusterError(
    code,
    `The answer of the list ${resource} cannot be read a second time: ${why}. Check path, base URL and fields of this list.`,
    { details: { resource } },
  );
}
