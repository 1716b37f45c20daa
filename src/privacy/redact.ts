import { MusterError } from '../core/errors.js';
import { atOnce, ITEMS_A_TURN } from '../core/turns.js';
import { type FitMade, JsonScanner, type ScannedText } from '../pagers/json-scanner.js';
import { MAX_DEPTH, NONE, OPEN_BRACE, OPEN_BRACKET, QUOTE, type Span, skipSpace } from '../pagers/json-text.js';
import { withoutMark } from '../pagers/read-page.js';
import type { Privacy, RuleEdge } from './rules.js';

/** A response whose records were redacted. */
export interface RedactedResponse {
  readonly bytes: Buffer;
  /** The places of its records after redaction, and of the members that were asked for; undefined where it is no JSON. */
  readonly scanned: ScannedText | undefined;
  /** Paths of the rules that found a member in any record. */
  readonly matched: ReadonlySet<string>;
}

/**
 * Replaces the members that rules name in every record of a response, and leaves every other byte as it was: digits, the order of members, repeated
 * members, white space. `dataPath` leads to the array of records. A response that is no JSON, or has none of the members, is returned unchanged.
 * docs/privacy.md says what each rule makes of a value.
 */
export function* redact(bytes: Buffer, dataPath: readonly string[], privacy: Privacy, fit?: FitMade): Generator<void, Buffer> {
  return (yield* redactResponse(bytes, dataPath, [], privacy, fit)).bytes;
}

/** Redacts a response, and returns the rules that matched, and the places of `members` of the records; rules may name members within these. Throws what `fit` throws. */
export function* redactResponse(
  bytes: Buffer,
  dataPath: readonly string[],
  members: readonly string[],
  privacy: Privacy,
  fit?: FitMade,
): Generator<void, RedactedResponse> {
  const redaction = new Redaction(withoutMark(bytes), members, privacy, fit);
  const scanned = yield* redaction.scan(dataPath);
  if (!scanned) return { bytes, scanned, matched: new Set() };
  return { bytes: (yield* redaction.result()) ?? bytes, scanned, matched: redaction.matched };
}

/** Redacts the text of one record. */
export function redactRecord(text: string, privacy: Privacy): string {
  const redaction = new Redaction(Buffer.from(text), [], privacy);
  if (!redaction.readRecord()) throw new TypeError('the text of a record is no JSON');
  return atOnce(redaction.result())?.toString() ?? text;
}

/** Paths ignore arrays: the elements of an array have the path of the array, at any depth, and so have the records. */
class Redaction extends JsonScanner {
  readonly matched = new Set<string>();
  readonly #privacy: Privacy;
  /** The places to replace, in the order of the text, and the ASCII that goes there. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #replacements: string[] = [];
  /** Values that were replaced in the record that is read. */
  #ofRecord = 0;

  constructor(text: Buffer, members: readonly string[], privacy: Privacy, fit?: FitMade) {
    super(text, members, fit);
    this.#privacy = privacy;
  }

  readRecord(): boolean {
    const end = this.record(skipSpace(this.text, 0), 0, []);
    return end !== NONE && skipSpace(this.text, end) === this.text.length;
  }

  /** The redacted text, joined in portions; undefined where no rule matched. */
  *result(): Generator<void, Buffer | undefined> {
    if (this.#starts.length === 0) return undefined;
    // A buffer outside of Node's pool, whose memory can be given back.
    const result = Buffer.allocUnsafeSlow(this.text.length + this.growth);
    let from = 0;
    let at = 0;
    for (let n = 0; n < this.#starts.length; n += 1) {
      at += this.text.copy(result, at, from, this.#starts[n]);
      at += result.write(this.#replacements[n]!, at, 'latin1');
      from = this.#ends[n]!;
      if (n % ITEMS_A_TURN === ITEMS_A_TURN - 1) yield;
    }
    this.text.copy(result, at, from);
    return result;
  }

  protected override record(index: number, depth: number, wanted: (Span | undefined)[]): number {
    this.#ofRecord = 0;
    return this.#through(index, depth, this.#privacy.edges, wanted);
  }

  /** Reads a value within which rules may match. `wanted` takes the places of a record's members that were asked for. */
  #through(at: number, depth: number, edges: readonly RuleEdge[], wanted?: (Span | undefined)[]): number {
    switch (this.text[at]!) {
      case OPEN_BRACKET:
        return depth === MAX_DEPTH ? NONE : this.elements(at, depth + 1, (start) => this.#through(start, depth + 1, edges));
      case OPEN_BRACE:
        return depth === MAX_DEPTH ? NONE : this.#members(at, depth + 1, edges, wanted);
      default:
        return this.value(at, depth);
    }
  }

  #members(at: number, depth: number, edges: readonly RuleEdge[], wanted?: (Span | undefined)[]): number {
    /** The end of the last member that stays, or that was taken out after one that stays. */
    let before = NONE;
    /** The end of the last member that was taken out, while none stays: the comma after it must go, too. */
    let gone = NONE;
    return this.object(at, depth, (keyStart, keyEnd, start) => {
      if (gone !== NONE) this.#replace(gone, keyStart, '');
      gone = NONE;
      const edge = this.#edgeOf(keyStart, keyEnd, edges);
      if (edge?.kind) this.matched.add(edge.path);
      if (edge?.kind === 'drop') {
        const end = this.value(start, depth);
        if (before === NONE) {
          this.#replace(keyStart, end, '');
          gone = end;
        } else {
          this.#replace(before, end, '');
          before = end;
        }
        return end;
      }
      const n = wanted ? this.whichKey(keyStart, keyEnd) : NONE;
      // Must run before a replacement within the value changes its length.
      const placed = this.placed(start);
      before = edge ? this.#redacted(start, depth, edge) : this.value(start, depth);
      if (n !== NONE) wanted![n] = { start: placed, end: this.placed(before) };
      return before;
    });
  }

  #edgeOf(keyStart: number, keyEnd: number, edges: readonly RuleEdge[]): RuleEdge | undefined {
    for (let n = 0; n < edges.length; n += 1) if (this.isKey(keyStart, keyEnd, edges[n]!.name)) return edges[n];
    return undefined;
  }

  #redacted(at: number, depth: number, { kind, next }: RuleEdge): number {
    if (next) return this.#through(at, depth, next);
    return this.#leaves(at, depth, kind === 'hash');
  }

  /** Replaces a value, or every value within it, by its hash or its mask. */
  #leaves(at: number, depth: number, isHashed: boolean): number {
    switch (this.text[at]!) {
      case OPEN_BRACKET:
        return depth === MAX_DEPTH ? NONE : this.elements(at, depth + 1, (start) => this.#leaves(start, depth + 1, isHashed));
      case OPEN_BRACE:
        return depth === MAX_DEPTH
          ? NONE
          : this.object(at, depth + 1, (_keyStart, _keyEnd, start) => this.#leaves(start, depth + 1, isHashed));
    }
    this.hasEscape = false;
    const end = this.value(at, depth);
    if (end !== NONE && this.text[at] !== LETTER_N) this.#replace(at, end, isHashed ? this.#hash(at, end) : this.#mask(at, end));
    return end;
  }

  #mask(start: number, end: number): string {
    switch (this.text[start]!) {
      case QUOTE:
        return `"${'*'.repeat(this.#characters(start + 1, end - 1))}"`;
      case LETTER_T:
      case LETTER_F:
        return 'false';
      default:
        return this.text.toString('latin1', start, end).replaceAll(/[^.]/g, '9');
    }
  }

  /** The characters of the string that was read last, between its quotes. */
  #characters(start: number, end: number): number {
    if (this.hasEscape) return [...(JSON.parse(this.text.toString('utf8', start - 1, end + 1)) as string)].length;
    let count = 0;
    // Bytes that begin with the bits 10 continue a character.
    for (let at = start; at < end; at += 1) if ((this.text[at]! & 0xc0) !== 0x80) count += 1;
    return count;
  }

  #hash(start: number, end: number): string {
    const { key } = this.#privacy;
    if (!key) throw new TypeError('a privacy rule hashes, and there is no key');
    return `"${key.hash(this.#plainText(start, end))}"`;
  }

  /** The text of a string, or a number, true or false as it is written. */
  #plainText(start: number, end: number): string | Buffer {
    if (this.text[start] !== QUOTE) return this.text.subarray(start, end);
    if (this.hasEscape) return JSON.parse(this.text.toString('utf8', start, end)) as string;
    return this.text.subarray(start + 1, end - 1);
  }

  #replace(start: number, end: number, text: string): void {
    this.#starts.push(start);
    this.#ends.push(end);
    this.#replacements.push(text);
    this.growth += text.length - (end - start);
    this.growthHeap += REPLACED_HEAP + text.length;
    this.#ofRecord += 1;
    if (this.#ofRecord > MOST_OF_RECORD) throw tooMany();
    if (this.#starts.length % LOOK_EVERY === 0) this.look();
  }
}

/** Bytes of heap for a value that is replaced, without its new text. */
const REPLACED_HEAP = 100;
const LOOK_EVERY = 256;
/** A record is redacted in one turn: with more values it would delay all other work. */
const MOST_OF_RECORD = 20_000;

function tooMany(): MusterError {
  return new MusterError(
    'response_too_large',
    `A record has more than ${MOST_OF_RECORD} values that privacy rules of its list replace: let a rule drop the member that holds them.`,
  );
}

const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
