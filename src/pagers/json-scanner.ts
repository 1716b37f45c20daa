/**
 * Finds where the records of a JSON text stand, so that they go to the database as they were received: no digit lost, nothing
 * parsed into objects or serialized anew. It accepts exactly what JSON.parse accepts (RFC 8259), but for nesting deeper than
 * MAX_DEPTH, and works on UTF-8 as received; what is no ASCII stands only inside strings and needs no decoding.
 */

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const LITERALS = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')];
/** 1 for every byte that stands in a string for itself. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0));
const ESCAPED = new Set(Buffer.from('"\\/bfnrt'));

/** No record of people's data is nested deeper, and PostgreSQL's own parser gives up at some thousands. */
export const MAX_DEPTH = 1_000;
/** Digits of an exponent, and characters of a number, that numeric may not hold: see unstorable.ts. */
const LARGE_EXPONENT_DIGITS = 5;
const LONG_NUMBER = 6_000;

/** A value of the text: from its first byte to behind its last one. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** An element of the array of records. */
export interface ScannedRecord extends Span {
  /** The values of the members asked for, in that order; undefined where it has none. Of several the last one, as JSON.parse takes it. */
  readonly members: readonly (Span | undefined)[];
}

/** Where a text holds its array of records. */
export interface ScannedArray extends Span {
  readonly records: readonly ScannedRecord[];
}

export interface ScannedText {
  /** The array at the path; of several members of one name the last one counts. Undefined when there is something else. */
  readonly array?: ScannedArray;
  /** Whether any value may be one that PostgreSQL cannot keep. */
  readonly isSuspicious: boolean;
}

/** A record by itself. */
export type ScannedAlone = ScannedRecord & Pick<ScannedText, 'isSuspicious'>;

/** Reads all of the text. `path` leads to the array of records; `members`: those of its records whose values are wanted. Undefined: no JSON. */
export function scanJson(text: Buffer, path: readonly string[], members: readonly string[]): ScannedText | undefined {
  return new JsonScanner(text).scan(path.map(asBytes), members.map(asBytes));
}

/** Reads the value at an index as a record of the array at the path; undefined when there is none. */
export function recordScanner(
  text: Buffer,
  path: readonly string[],
  members: readonly string[],
): (index: number) => ScannedAlone | undefined {
  const names = members.map(asBytes);
  return (index) => new JsonScanner(text).recordAt(index, path.length + 1, names);
}

/**
 * Where the array begins to which `path` leads, taking the first member of each name. The text may be cut off anywhere:
 * undefined when the array does not begin before that, or when there is something else.
 */
export function arrayStart(text: Buffer, path: readonly string[]): number | undefined {
  const start = new JsonScanner(text).start(path.map(asBytes));
  return text[start] === OPEN_BRACKET ? start : undefined;
}

/** Index of the first byte at or behind `index` that is no white space. */
export function skipSpace(text: Buffer, index: number): number {
  let at = index;
  for (let byte = text[at]; byte !== undefined && byte <= SPACE; byte = text[++at]) {
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
  }
  return at;
}

/** What an index is where there is no such value. */
const NONE = -1;

class JsonScanner {
  readonly #text: Buffer;
  #array: ScannedArray | undefined;
  #isSuspicious = false;
  /** Whether the string read last has an escape in it. */
  #hasEscape = false;

  constructor(text: Buffer) {
    this.#text = text;
  }

  scan(path: readonly Buffer[], members: readonly Buffer[]): ScannedText | undefined {
    const end = this.#onPath(skipSpace(this.#text, 0), path, 0, members);
    if (end === NONE || skipSpace(this.#text, end) !== this.#text.length) return undefined;
    return { isSuspicious: this.#isSuspicious, ...(this.#array && { array: this.#array }) };
  }

  start(path: readonly Buffer[]): number {
    let at = skipSpace(this.#text, 0);
    for (const name of path) {
      at = this.#firstMember(at, name);
      if (at === NONE) break;
    }
    return at;
  }

  recordAt(start: number, depth: number, names: readonly Buffer[]): ScannedAlone | undefined {
    const { end, members } = this.#recordOrOther(start, depth, names);
    return end === NONE ? undefined : { start, end, members, isSuspicious: this.#isSuspicious };
  }

  #value(at: number, depth: number): number {
    switch (this.#text[at]!) {
      case QUOTE:
        return this.#string(at);
      case OPEN_BRACE:
        return depth === MAX_DEPTH ? NONE : this.#object(at, depth + 1);
      case OPEN_BRACKET:
        return depth === MAX_DEPTH ? NONE : this.#elements(at, depth + 1);
      default:
        return this.#scalar(at);
    }
  }

  /** A value that the path leads to or through. */
  #onPath(at: number, path: readonly Buffer[], depth: number, members: readonly Buffer[]): number {
    this.#array = undefined;
    if (depth === path.length)
      return this.#text[at] === OPEN_BRACKET ? this.#records(at, depth, members) : this.#value(at, depth);
    if (this.#text[at] !== OPEN_BRACE) return this.#value(at, depth);
    return this.#object(at, depth + 1, (keyStart, keyEnd, start) =>
      this.#isKey(keyStart, keyEnd, path[depth]!) ? this.#onPath(start, path, depth + 1, members) : this.#value(start, depth + 1),
    );
  }

  #records(index: number, depth: number, names: readonly Buffer[]): number {
    const records: ScannedRecord[] = [];
    const end = this.#elements(index, depth + 1, (start) => {
      const record = this.#recordOrOther(start, depth + 1, names);
      records.push(record);
      return record.end;
    });
    if (end !== NONE) this.#array = { start: index, end, records };
    return end;
  }

  #recordOrOther(start: number, depth: number, names: readonly Buffer[]): ScannedRecord {
    const members: (Span | undefined)[] = names.map(() => undefined);
    const isObject = this.#text[start] === OPEN_BRACE;
    const end = isObject ? this.#record(start, depth + 1, names, members) : this.#value(start, depth);
    return { start, end, members };
  }

  #record(index: number, depth: number, names: readonly Buffer[], members: (Span | undefined)[]): number {
    return this.#object(index, depth, (keyStart, keyEnd, start) => {
      const n = this.#whichKey(keyStart, keyEnd, names);
      const end = this.#value(start, depth);
      if (n >= 0) members[n] = { start, end };
      return end;
    });
  }

  /** `member` reads a member's value and says where it ends. */
  #object(index: number, depth: number, member?: (keyStart: number, keyEnd: number, start: number) => number): number {
    const text = this.#text;
    let at = skipSpace(text, index + 1);
    if (text[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      const keyEnd = this.#key(at);
      const colon = keyEnd === NONE ? NONE : skipSpace(text, keyEnd);
      if (colon === NONE || text[colon] !== COLON) return NONE;
      const start = skipSpace(text, colon + 1);
      const end = member ? member(at, keyEnd, start) : this.#value(start, depth);
      if (end === NONE) return NONE;
      at = skipSpace(text, end);
      if (text[at] === CLOSE_BRACE) return at + 1;
      if (text[at] !== COMMA) return NONE;
      at = skipSpace(text, at + 1);
    }
  }

  /** `element` reads an element and says where it ends. */
  #elements(index: number, depth: number, element?: (start: number) => number): number {
    const text = this.#text;
    let at = skipSpace(text, index + 1);
    if (text[at] === CLOSE_BRACKET) return at + 1;
    for (;;) {
      const end = element ? element(at) : this.#value(at, depth);
      if (end === NONE) return NONE;
      at = skipSpace(text, end);
      if (text[at] === CLOSE_BRACKET) return at + 1;
      if (text[at] !== COMMA) return NONE;
      at = skipSpace(text, at + 1);
    }
  }

  #firstMember(index: number, name: Buffer): number {
    let found = NONE;
    if (this.#text[index] === OPEN_BRACE) {
      this.#object(index, 1, (keyStart, keyEnd, start) => {
        if (!this.#isKey(keyStart, keyEnd, name)) return this.#value(start, 1);
        found = start;
        return NONE;
      });
    }
    return found;
  }

  #key(at: number): number {
    this.#hasEscape = false;
    return this.#text[at] === QUOTE ? this.#string(at) : NONE;
  }

  /** Which of the names the key read last is; NONE of them. Without a function a member: they would be most of a page's garbage. */
  #whichKey(start: number, end: number, names: readonly Buffer[]): number {
    for (let n = 0; n < names.length; n += 1) if (this.#isKey(start, end, names[n]!)) return n;
    return NONE;
  }

  /** Whether the key read last, quotes included, is this name. */
  #isKey(start: number, end: number, name: Buffer): boolean {
    const text = this.#text;
    if (this.#hasEscape) return JSON.parse(text.toString('utf8', start, end)) === name.toString();
    return end - start === name.length + 2 && this.#hasAt(start + 1, name);
  }

  #hasAt(index: number, bytes: Buffer): boolean {
    for (let n = 0; n < bytes.length; n += 1) if (this.#text[index + n] !== bytes[n]) return false;
    return true;
  }

  #string(index: number): number {
    const text = this.#text;
    for (let at = index + 1; ; at += 1) {
      while (PLAIN[text[at]!] === 1) at += 1;
      if (text[at] === QUOTE) return at + 1;
      if (text[at] !== BACKSLASH) return NONE;
      this.#hasEscape = true;
      at += 1;
      if (text[at] === LETTER_U) {
        const unit = text.toString('latin1', at + 1, at + 5);
        if (!/^[0-9a-fA-F]{4}$/.test(unit)) return NONE;
        if (/^(0000|[dD][89a-fA-F])/.test(unit)) this.#isSuspicious = true;
        at += 4;
      } else if (!ESCAPED.has(text[at]!)) return NONE;
    }
  }

  #scalar(at: number): number {
    const text = this.#text;
    const byte = text[at];
    if (byte === MINUS || isDigit(byte)) return this.#number(byte === MINUS ? at + 1 : at);
    for (const literal of LITERALS) if (byte === literal[0]) return this.#hasAt(at, literal) ? at + literal.length : NONE;
    return NONE;
  }

  #number(index: number): number {
    const text = this.#text;
    let at = text[index] === ZERO ? index + 1 : this.#digits(index);
    if (at !== NONE && text[at] === POINT) at = this.#digits(at + 1);
    if (at - index > LONG_NUMBER) this.#isSuspicious = true;
    if (at === NONE || (text[at]! | SPACE) !== LETTER_E) return at;
    const sign = text[at + 1];
    const digits = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = this.#digits(digits);
    if (at - digits >= LARGE_EXPONENT_DIGITS) this.#isSuspicious = true;
    return at;
  }

  #digits(index: number): number {
    let at = index;
    while (isDigit(this.#text[at])) at += 1;
    return at === index ? NONE : at;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}

function asBytes(text: string): Buffer {
  return Buffer.from(text);
}
