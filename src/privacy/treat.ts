import { JsonText, MAX_DEPTH, NONE, OPEN_BRACE, OPEN_BRACKET, QUOTE, skipSpace } from '../pagers/json-text.js';
import { withoutMark } from '../pagers/read-page.js';
import type { Privacy, RuleEdge } from './rules.js';

/** An answer whose records were treated. */
export interface TreatedAnswer {
  readonly bytes: Buffer;
  /** Paths of the rules that found a member in any record. */
  readonly matched: ReadonlySet<string>;
}

/**
 * Replaces what the rules name in every record of an answer, and leaves every other byte as it was: digits, the order of members, members that
 * stand there twice, white space. `dataPath` leads to the array of records. What is no JSON, and what has none of the members, comes back as
 * it was given. docs/privacy.md says what each rule makes of a value.
 */
export function treat(bytes: Buffer, dataPath: readonly string[], privacy: Privacy): Buffer {
  return treatAnswer(bytes, dataPath, privacy).bytes;
}

/** The same, and which rules found something. */
export function treatAnswer(bytes: Buffer, dataPath: readonly string[], privacy: Privacy): TreatedAnswer {
  const treatment = new Treatment(withoutMark(bytes), privacy);
  if (!treatment.readAnswer(dataPath)) return { bytes, matched: new Set() };
  return { bytes: treatment.result() ?? bytes, matched: treatment.matched };
}

/** Treats the text of one record. */
export function treatRecord(text: string, privacy: Privacy): string {
  const treatment = new Treatment(Buffer.from(text), privacy);
  if (!treatment.readRecord()) throw new TypeError('the text of a record is no JSON');
  return treatment.result()?.toString() ?? text;
}

/** Elements of an array stand at the same place of a path as the array does, at whatever depth: so do the records themselves. */
class Treatment extends JsonText {
  readonly matched = new Set<string>();
  readonly #privacy: Privacy;
  /** What to take out, in the order of the text, and the ASCII to put there. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #replacements: string[] = [];

  constructor(text: Buffer, privacy: Privacy) {
    super(text);
    this.#privacy = privacy;
  }

  /** Whether the whole text is JSON. */
  readAnswer(dataPath: readonly string[]): boolean {
    return this.#isAll(
      this.#onPath(
        skipSpace(this.text, 0),
        dataPath.map((name) => Buffer.from(name)),
        0,
      ),
    );
  }

  readRecord(): boolean {
    return this.#isAll(this.#through(skipSpace(this.text, 0), 0, this.#privacy.edges));
  }

  /** The text as it is to be; undefined where nothing was found in it. */
  result(): Buffer | undefined {
    if (this.#starts.length === 0) return undefined;
    let length = this.text.length;
    for (const [n, text] of this.#replacements.entries()) length += text.length + this.#starts[n]! - this.#ends[n]!;
    // Memory of its own, which can be given back.
    const result = Buffer.allocUnsafeSlow(length);
    let from = 0;
    let at = 0;
    for (const [n, text] of this.#replacements.entries()) {
      at += this.text.copy(result, at, from, this.#starts[n]);
      at += result.write(text, at, 'latin1');
      from = this.#ends[n]!;
    }
    this.text.copy(result, at, from);
    return result;
  }

  #isAll(end: number): boolean {
    return end !== NONE && skipSpace(this.text, end) === this.text.length;
  }

  /** A value that the path to the records leads to or through: of several members with one name, whoever reads the page may take either. */
  #onPath(at: number, path: readonly Buffer[], depth: number): number {
    if (depth === path.length)
      return this.text[at] === OPEN_BRACKET
        ? this.elements(at, depth + 1, (start) => this.#through(start, depth + 1, this.#privacy.edges))
        : this.value(at, depth);
    if (this.text[at] !== OPEN_BRACE) return this.value(at, depth);
    return this.object(at, depth + 1, (keyStart, keyEnd, start) =>
      this.isKey(keyStart, keyEnd, path[depth]!) ? this.#onPath(start, path, depth + 1) : this.value(start, depth + 1),
    );
  }

  /** A value in which rules lead on. */
  #through(at: number, depth: number, edges: readonly RuleEdge[]): number {
    switch (this.text[at]!) {
      case OPEN_BRACKET:
        return depth === MAX_DEPTH ? NONE : this.elements(at, depth + 1, (start) => this.#through(start, depth + 1, edges));
      case OPEN_BRACE:
        return depth === MAX_DEPTH ? NONE : this.#members(at, depth + 1, edges);
      default:
        return this.value(at, depth);
    }
  }

  #members(at: number, depth: number, edges: readonly RuleEdge[]): number {
    /** Behind the last member that stays, or that was taken out behind one that stays. */
    let before = NONE;
    /** Behind the last member that was taken out, while none stays: the comma behind it must go, too. */
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
      before = edge ? this.#treated(start, depth, edge) : this.value(start, depth);
      return before;
    });
  }

  #edgeOf(keyStart: number, keyEnd: number, edges: readonly RuleEdge[]): RuleEdge | undefined {
    for (let n = 0; n < edges.length; n += 1) if (this.isKey(keyStart, keyEnd, edges[n]!.name)) return edges[n];
    return undefined;
  }

  #treated(at: number, depth: number, { kind, next }: RuleEdge): number {
    if (next) return this.#through(at, depth, next);
    return this.#leaves(
      at,
      depth,
      kind === 'hash' ? (start, end) => this.#hash(start, end) : (start, end) => this.#mask(start, end),
    );
  }

  /** Replaces a value, or every value within it. */
  #leaves(at: number, depth: number, by: (start: number, end: number) => string): number {
    switch (this.text[at]!) {
      case OPEN_BRACKET:
        return depth === MAX_DEPTH ? NONE : this.elements(at, depth + 1, (start) => this.#leaves(start, depth + 1, by));
      case OPEN_BRACE:
        return depth === MAX_DEPTH
          ? NONE
          : this.object(at, depth + 1, (_keyStart, _keyEnd, start) => this.#leaves(start, depth + 1, by));
    }
    this.hasEscape = false;
    const end = this.value(at, depth);
    if (end !== NONE && this.text[at] !== LETTER_N) this.#replace(at, end, by(at, end));
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

  /** Of the string read last, from behind its first quote to its last one. */
  #characters(start: number, end: number): number {
    if (this.hasEscape) return [...(JSON.parse(this.text.toString('utf8', start - 1, end + 1)) as string)].length;
    let count = 0;
    // Bytes that begin with the bits 10 carry on a character.
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
  }
}

const LETTER_F = 0x66;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
