/**
 * Reads JSON as it was received, without making objects of it. It accepts exactly what JSON.parse accepts (RFC 8259), but for nesting
 * deeper than MAX_DEPTH, and works on UTF-8; what is no ASCII stands only inside strings and needs no decoding. One grammar for all who
 * read pages: what one of them takes for JSON, none of them passes over.
 */

import { BYTES_A_TURN, ITEMS_A_TURN } from '../core/turns.js';

export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const MINUS = 0x2d;
const PLUS = 0x2b;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
export const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;
const LETTER_E = 0x65;
const LETTER_U = 0x75;
const LITERALS = [Buffer.from('true'), Buffer.from('false'), Buffer.from('null')];
/** 1 for every byte that means itself in a string. */
const PLAIN = Uint8Array.from({ length: 256 }, (_, byte) => (byte >= SPACE && byte !== QUOTE && byte !== BACKSLASH ? 1 : 0));
const ESCAPED = new Set(Buffer.from('"\\/bfnrt'));

/** No record of people's data is nested deeper, and PostgreSQL's own parser gives up at some thousands. */
export const MAX_DEPTH = 1_000;
/** Digits of an exponent, and characters of a number, that numeric may not hold, or that many digits come of: see unstorable.ts. */
const LARGE_EXPONENT_DIGITS = 2;
const LONG_NUMBER = 6_000;

/** The index of a value that is not there. */
export const NONE = -1;

/** A value of the text: its first byte, and the byte after its last one. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Index of the first byte from `index` on that is no white space. */
export function skipSpace(text: Buffer, index: number): number {
  let at = index;
  for (let byte = text[at]; byte !== undefined && byte <= SPACE; byte = text[++at]) {
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) break;
  }
  return at;
}

/** Every method reads the value at an index and returns where it ends, or NONE where there is no such value. */
export class JsonText {
  protected readonly text: Buffer;
  /** Whether any value read so far may be one that PostgreSQL cannot keep. */
  protected isSuspicious = false;
  /** Whether a string read since this was last set to false, as before each key, has an escape in it. */
  protected hasEscape = false;

  constructor(text: Buffer) {
    this.text = text;
  }

  protected value(at: number, depth: number): number {
    switch (this.text[at]!) {
      case QUOTE:
        return this.string(at);
      case OPEN_BRACE:
        return depth === MAX_DEPTH ? NONE : this.object(at, depth + 1);
      case OPEN_BRACKET:
        return depth === MAX_DEPTH ? NONE : this.elements(at, depth + 1);
      default:
        return this.scalar(at);
    }
  }

  /** `member` reads a member's value and says where it ends. */
  protected object(index: number, depth: number, member?: (keyStart: number, keyEnd: number, start: number) => number): number {
    const text = this.text;
    let at = skipSpace(text, index + 1);
    if (text[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      const keyEnd = this.key(at);
      const start = this.behindColon(keyEnd);
      if (start === NONE) return NONE;
      const end = member ? member(at, keyEnd, start) : this.value(start, depth);
      if (end === NONE) return NONE;
      at = skipSpace(text, end);
      if (text[at] === CLOSE_BRACE) return at + 1;
      if (text[at] !== COMMA) return NONE;
      at = skipSpace(text, at + 1);
    }
  }

  /** Reads an object whose members may be read in portions. */
  protected *objectInTurns(
    index: number,
    member: (keyStart: number, keyEnd: number, start: number) => number | Generator<void, number>,
  ): Generator<void, number> {
    const text = this.text;
    let at = skipSpace(text, index + 1);
    if (text[at] === CLOSE_BRACE) return at + 1;
    for (;;) {
      const keyEnd = this.key(at);
      const start = this.behindColon(keyEnd);
      if (start === NONE) return NONE;
      const read = member(at, keyEnd, start);
      const end = typeof read === 'number' ? read : yield* read;
      if (end === NONE) return NONE;
      at = skipSpace(text, end);
      if (text[at] === CLOSE_BRACE) return at + 1;
      if (text[at] !== COMMA) return NONE;
      at = skipSpace(text, at + 1);
    }
  }

  /** Where the value begins whose key ends there. */
  private behindColon(keyEnd: number): number {
    const colon = keyEnd === NONE ? NONE : skipSpace(this.text, keyEnd);
    return colon === NONE || this.text[colon] !== COLON ? NONE : skipSpace(this.text, colon + 1);
  }

  /** `element` reads an element and says where it ends. */
  protected elements(index: number, depth: number, element?: (start: number) => number): number {
    const text = this.text;
    let at = skipSpace(text, index + 1);
    if (text[at] === CLOSE_BRACKET) return at + 1;
    for (;;) {
      const end = element ? element(at) : this.value(at, depth);
      if (end === NONE) return NONE;
      at = skipSpace(text, end);
      if (text[at] === CLOSE_BRACKET) return at + 1;
      if (text[at] !== COMMA) return NONE;
      at = skipSpace(text, at + 1);
    }
  }

  /** Reads the elements in portions. */
  protected *elementsInTurns(index: number, element: (start: number) => number): Generator<void, number> {
    const text = this.text;
    let at = skipSpace(text, index + 1);
    if (text[at] === CLOSE_BRACKET) return at + 1;
    for (let from = at, items = 0; ; ) {
      const end = element(at);
      if (end === NONE) return NONE;
      items += 1;
      if (items === ITEMS_A_TURN || end - from >= BYTES_A_TURN) {
        yield;
        from = end;
        items = 0;
      }
      at = skipSpace(text, end);
      if (text[at] === CLOSE_BRACKET) return at + 1;
      if (text[at] !== COMMA) return NONE;
      at = skipSpace(text, at + 1);
    }
  }

  protected key(at: number): number {
    this.hasEscape = false;
    return this.text[at] === QUOTE ? this.string(at) : NONE;
  }

  /** Whether the key read last, quotes included, is this name. */
  protected isKey(start: number, end: number, name: Buffer): boolean {
    const text = this.text;
    if (this.hasEscape) return JSON.parse(text.toString('utf8', start, end)) === name.toString();
    return end - start === name.length + 2 && this.hasAt(start + 1, name);
  }

  protected hasAt(index: number, bytes: Buffer): boolean {
    for (let n = 0; n < bytes.length; n += 1) if (this.text[index + n] !== bytes[n]) return false;
    return true;
  }

  protected string(index: number): number {
    const text = this.text;
    for (let at = index + 1; ; at += 1) {
      while (PLAIN[text[at]!] === 1) at += 1;
      if (text[at] === QUOTE) return at + 1;
      if (text[at] !== BACKSLASH) return NONE;
      this.hasEscape = true;
      at += 1;
      if (text[at] === LETTER_U) {
        const unit = text.toString('latin1', at + 1, at + 5);
        if (!/^[0-9a-fA-F]{4}$/.test(unit)) return NONE;
        if (/^(0000|[dD][89a-fA-F])/.test(unit)) this.isSuspicious = true;
        at += 4;
      } else if (!ESCAPED.has(text[at]!)) return NONE;
    }
  }

  protected scalar(at: number): number {
    const text = this.text;
    const byte = text[at];
    if (byte === MINUS || isDigit(byte)) return this.number(byte === MINUS ? at + 1 : at);
    for (const literal of LITERALS) if (byte === literal[0]) return this.hasAt(at, literal) ? at + literal.length : NONE;
    return NONE;
  }

  protected number(index: number): number {
    const text = this.text;
    let at = text[index] === ZERO ? index + 1 : this.digits(index);
    if (at !== NONE && text[at] === POINT) at = this.digits(at + 1);
    if (at - index > LONG_NUMBER) this.isSuspicious = true;
    if (at === NONE || (text[at]! | SPACE) !== LETTER_E) return at;
    const sign = text[at + 1];
    const digits = sign === PLUS || sign === MINUS ? at + 2 : at + 1;
    at = this.digits(digits);
    if (at - digits >= LARGE_EXPONENT_DIGITS) this.isSuspicious = true;
    return at;
  }

  protected digits(index: number): number {
    let at = index;
    while (isDigit(this.text[at])) at += 1;
    return at === index ? NONE : at;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= ZERO && byte <= NINE;
}
