/**
 * Finds where the records of a JSON text stand, so that they go to the database as they were received: no digit lost, nothing
 * parsed into objects or serialized again.
 */
import { MusterError } from '../core/errors.js';
import { JsonText, NONE, OPEN_BRACE, OPEN_BRACKET, type Span, skipSpace } from './json-text.js';

/** An element of the array of records. */
export interface ScannedRecord extends Span {
  /** The values of the members asked for, in that order; undefined where it has none. Of several members of one name it is the last one, as JSON.parse has it. */
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

/** Is told, while a text is read, what its records take so far: bytes of heap, and by how many bytes the text has grown. Throws where that is too much. */
export interface FitMade {
  fitMade(heap: number, growth: number): void;
}

/** Bytes of heap for a record from its scan to its commit, and as many until they are collected: measured with `[1,1,…]`, the densest page there is. */
const RECORD_HEAP = 1_500;
/** Records that are scanned before it is looked again whether they fit. */
const LOOK_EVERY = 256;
/** No list is read in larger pages: steps over all records of a page would delay all other companies. */
export const MOST_RECORDS = 200_000;

/**
 * Reads all of the text, in portions. `path` leads to the array of records; `members` names the members of records whose values are wanted. Undefined: no JSON.
 * Throws what `fit` throws.
 */
export function scanJson(
  text: Buffer,
  path: readonly string[],
  members: readonly string[],
  fit?: FitMade,
): Generator<void, ScannedText | undefined> {
  return new JsonScanner(text, members, fit).scan(path);
}

/** Reads the value at an index as a record of the array at the path; undefined when there is none. */
export function recordScanner(
  text: Buffer,
  path: readonly string[],
  members: readonly string[],
): (index: number) => ScannedAlone | undefined {
  const names = members.map(asBytes);
  return (index) => new JsonScanner(text, names).recordAt(index, path.length + 1);
}

/**
 * Where the array begins to which `path` leads, taking the first member of each name. The text may be cut off anywhere:
 * undefined when the array does not begin before that, or when there is something else.
 */
export function arrayStart(text: Buffer, path: readonly string[]): number | undefined {
  const start = new JsonScanner(text, []).start(path.map(asBytes));
  return text[start] === OPEN_BRACKET ? start : undefined;
}

/** Records where records and the values of some of their members stand. A subclass may change the text as it reads (src/privacy/redact.ts). */
export class JsonScanner extends JsonText {
  readonly #names: readonly Buffer[];
  readonly #fit: FitMade | undefined;
  #array: ScannedArray | undefined;
  #records = 0;
  /** How much longer the text has become so far, and bytes of heap for what makes it so. */
  protected growth = 0;
  protected growthHeap = 0;

  constructor(text: Buffer, members: readonly (string | Buffer)[], fit?: FitMade) {
    super(text);
    this.#names = members.map(asBytes);
    this.#fit = fit;
  }

  *scan(path: readonly string[]): Generator<void, ScannedText | undefined> {
    const end = yield* this.#onPath(skipSpace(this.text, 0), path.map(asBytes), 0);
    if (end === NONE || skipSpace(this.text, end) !== this.text.length) return undefined;
    return { isSuspicious: this.isSuspicious, ...(this.#array && { array: this.#array }) };
  }

  start(path: readonly Buffer[]): number {
    let at = skipSpace(this.text, 0);
    for (const name of path) {
      at = this.#firstMember(at, name);
      if (at === NONE) break;
    }
    return at;
  }

  recordAt(start: number, depth: number): ScannedAlone | undefined {
    const members = this.#noMembers();
    const end = this.record(start, depth, members);
    return end === NONE ? undefined : { start, end, members, isSuspicious: this.isSuspicious };
  }

  /** A value that the path leads to or through. */
  *#onPath(at: number, path: readonly Buffer[], depth: number): Generator<void, number> {
    this.#array = undefined;
    if (depth === path.length) return this.text[at] === OPEN_BRACKET ? yield* this.#elements(at, depth) : this.value(at, depth);
    if (this.text[at] !== OPEN_BRACE) return this.value(at, depth);
    return yield* this.objectInTurns(at, (keyStart, keyEnd, start) =>
      this.isKey(keyStart, keyEnd, path[depth]!) ? this.#onPath(start, path, depth + 1) : this.value(start, depth + 1),
    );
  }

  *#elements(index: number, depth: number): Generator<void, number> {
    const records: ScannedRecord[] = [];
    const from = this.placed(index);
    const end = yield* this.elementsInTurns(index, (at) => {
      const members = this.#noMembers();
      const start = this.placed(at);
      const after = this.record(at, depth + 1, members);
      this.#records = records.push({ start, end: this.placed(after), members });
      if (this.#records % LOOK_EVERY === 0) this.look();
      return after;
    });
    if (end !== NONE) this.#array = { start: from, end: this.placed(end), records };
    return end;
  }

  /** Sees that what was found and made so far fits. */
  protected look(): void {
    if (this.#records > MOST_RECORDS) throw tooManyRecords();
    this.#fit?.fitMade(this.#records * RECORD_HEAP + this.growthHeap, Math.max(0, this.growth));
  }

  #noMembers(): (Span | undefined)[] {
    return this.#names.map(() => undefined);
  }

  /** The place of the byte at an index in the text that comes out; everything before it has been read. */
  protected placed(index: number): number {
    return index + this.growth;
  }

  /** Reads a record, or another value in its place, and records the places of the members asked for. */
  protected record(index: number, depth: number, members: (Span | undefined)[]): number {
    if (this.text[index] !== OPEN_BRACE) return this.value(index, depth);
    return this.object(index, depth + 1, (keyStart, keyEnd, start) => {
      const n = this.whichKey(keyStart, keyEnd);
      const end = this.value(start, depth + 1);
      if (n !== NONE) members[n] = { start: this.placed(start), end: this.placed(end) };
      return end;
    });
  }

  #firstMember(index: number, name: Buffer): number {
    let found = NONE;
    if (this.text[index] === OPEN_BRACE) {
      this.object(index, 1, (keyStart, keyEnd, start) => {
        if (!this.isKey(keyStart, keyEnd, name)) return this.value(start, 1);
        found = start;
        return NONE;
      });
    }
    return found;
  }

  /** Which of the names asked for the key read last is; NONE of them. Without a function a member: they would be most of a page's garbage. */
  protected whichKey(start: number, end: number): number {
    const names = this.#names;
    for (let n = 0; n < names.length; n += 1) if (this.isKey(start, end, names[n]!)) return n;
    return NONE;
  }
}

function tooManyRecords(): MusterError {
  return new MusterError(
    'response_too_large',
    `The answer holds more than ${MOST_RECORDS} records: have the catalogue ask for smaller pages, or for pages at all where the service sends everything at once.`,
  );
}

function asBytes(text: string | Buffer): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text;
}
