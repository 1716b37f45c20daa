/**
 * Finds the exact text of values inside a JSON text, so that records go to the database as they were received: no digit
 * lost, nothing serialized anew. Every function takes text that JSON.parse has accepted, and the index of a value's first
 * character; it relies on that grammar instead of checking it again.
 */

/** From the first character of a value to behind its last one. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;

/** Index of the first character at or behind `index` that is no white space. JSON knows no white space above U+0020. */
export function skipSpace(text: string, index: number): number {
  while (text.charCodeAt(index) <= SPACE) index += 1;
  return index;
}

/** The elements of the array at `index`, in order. */
export function elementSpans(text: string, index: number): Span[] {
  const spans: Span[] = [];
  let at = skipSpace(text, index + 1);
  while (text.charCodeAt(at) !== CLOSE_BRACKET) {
    const end = valueEnd(text, at);
    spans.push({ start: at, end });
    at = skipSeparator(text, end);
  }
  return spans;
}

/** The value of the member `name` of the object at `index`; of several the last one, as JSON.parse takes it. */
export function memberSpan(text: string, index: number, name: string): Span | undefined {
  let found: Span | undefined;
  let at = skipSpace(text, index + 1);
  while (text.charCodeAt(at) !== CLOSE_BRACE) {
    const keyEnd = stringEnd(text, at);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, start);
    if (isKey(text, at, keyEnd, name)) found = { start, end };
    at = skipSeparator(text, end);
  }
  return found;
}

/**
 * Where the array begins to which `path` leads, taking the first member of each name. The text may be cut off anywhere:
 * undefined when the array does not begin before that, or when there is something else.
 */
export function arrayStart(text: string, path: readonly string[]): number | undefined {
  let at: number | undefined = skipSpace(text, 0);
  for (const name of path) {
    at = firstMemberStart(text, at, name);
    if (at === undefined) return undefined;
  }
  return text.charCodeAt(at) === OPEN_BRACKET ? at : undefined;
}

function firstMemberStart(text: string, index: number, name: string): number | undefined {
  if (text.charCodeAt(index) !== OPEN_BRACE) return undefined;
  let at = skipSpace(text, index + 1);
  while (text.charCodeAt(at) === QUOTE) {
    const keyEnd = stringEnd(text, at);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    if (text.slice(at + 1, keyEnd - 1) === name) return start;
    at = skipSeparator(text, valueEnd(text, start));
  }
  return undefined;
}

function skipSeparator(text: string, index: number): number {
  const at = skipSpace(text, index);
  return text.charCodeAt(at) === COMMA ? skipSpace(text, at + 1) : at;
}

function isKey(text: string, start: number, end: number, name: string): boolean {
  if (end - start === name.length + 2 && text.startsWith(name, start + 1)) return true;
  const key = text.slice(start, end);
  return key.includes('\\') && JSON.parse(key) === name;
}

/** Behind the value at `index`. */
export function valueEnd(text: string, index: number): number {
  switch (text.charCodeAt(index)) {
    case QUOTE:
      return stringEnd(text, index);
    case OPEN_BRACE:
    case OPEN_BRACKET:
      return nestedEnd(text, index);
    default:
      return scalarEnd(text, index);
  }
}

function nestedEnd(text: string, index: number): number {
  let depth = 0;
  for (let at = index; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = stringEnd(text, at) - 1;
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return text.length;
}

function stringEnd(text: string, index: number): number {
  for (let at = index + 1; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  return text.length;
}

function scalarEnd(text: string, index: number): number {
  let at = index;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code <= SPACE || code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET) break;
  }
  return at;
}
