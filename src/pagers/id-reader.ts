import { BYTES_A_TURN, ITEMS_A_TURN } from '../core/turns.js';
import { idParts } from './id-candidate.js';
import { recordScanner, type ScannedRecord } from './json-scanner.js';
import { OPEN_BRACE, QUOTE, type Span } from './json-text.js';

const NUMBER_STARTS = new Set(Buffer.from('-0123456789'));

/** Members of a record that must be found where its id is to be read by any of these candidates. */
export function membersRead(candidates: readonly string[]): string[] {
  return [...new Set(candidates.flatMap(idParts).flatMap(beginningsOf))];
}

/** Reads the ids of records that were scanned for `membersRead` of the same candidates. */
export class IdReader {
  readonly #bytes: Buffer;
  /** The parts of each candidate. */
  readonly #candidates: readonly (readonly PathReader[])[];

  constructor(bytes: Buffer, candidates: readonly string[]) {
    const names = membersRead(candidates);
    this.#bytes = bytes;
    this.#candidates = candidates.map((candidate) => idParts(candidate).map((path) => new PathReader(bytes, path, names)));
  }

  /**
   * The value of the n-th candidate: a text as decoded, and a number with its digits as written, for JSON.parse would round 12345678901234567890. The values
   * of several members are joined by `/`, with a backslash before each `/` and backslash in them. Undefined where the record lacks a member, or has
   * neither text nor number there; an empty text counts for a candidate of one member only.
   */
  valueAt({ members }: Pick<ScannedRecord, 'members'>, n: number): string | undefined {
    const parts = this.#candidates[n];
    if (parts === undefined) return undefined;
    if (parts.length === 1) return this.#textOf(parts[0]!.find(members));
    const texts = parts.map((part) => this.#textOf(part.find(members)));
    return texts.every(Boolean) ? texts.map((text) => text!.replace(/[\\/]/g, '\\$&')).join('/') : undefined;
  }

  /** Which candidate is the first that any of the records carries; -1 for none. In portions: for a dot path, records are read once more. */
  *firstCarried(records: readonly ScannedRecord[]): Generator<void, number> {
    for (const n of this.#candidates.keys()) {
      let from = records[0]?.start ?? 0;
      for (const [position, record] of records.entries()) {
        if (this.valueAt(record, n) !== undefined) return n;
        if (record.end - from < BYTES_A_TURN && position % ITEMS_A_TURN !== ITEMS_A_TURN - 1) continue;
        yield;
        from = record.end;
      }
    }
    return -1;
  }

  #textOf(value: Span | undefined): string | undefined {
    if (value === undefined) return undefined;
    const { start, end } = value;
    const first = this.#bytes[start]!;
    if (first !== QUOTE) return NUMBER_STARTS.has(first) ? this.#bytes.toString('latin1', start, end) : undefined;
    const written = this.#bytes.toString('utf8', start + 1, end - 1);
    return written.includes('\\') ? (JSON.parse(`"${written}"`) as string) : written;
  }
}

/**
 * Finds the value at a dot path among the members of a record. As with the values around the records (fields.ts), a name as a whole goes before its
 * parts; no path leads into an array.
 */
class PathReader {
  readonly #bytes: Buffer;
  readonly #whole: number;
  /** The members through which the path may lead. */
  readonly #through: readonly {
    readonly n: number;
    readonly scan: ReturnType<typeof recordScanner>;
    readonly rest: PathReader;
  }[];

  constructor(bytes: Buffer, path: string, names: readonly string[]) {
    this.#bytes = bytes;
    this.#whole = names.indexOf(path);
    this.#through = beginningsOf(path)
      .slice(0, -1)
      .map((name) => {
        const rest = path.slice(name.length + 1);
        const inner = membersRead([rest]);
        return { n: names.indexOf(name), scan: recordScanner(bytes, [], inner), rest: new PathReader(bytes, rest, inner) };
      });
  }

  find(members: ScannedRecord['members']): Span | undefined {
    const whole = members[this.#whole];
    if (whole !== undefined) return whole;
    for (const { n, scan, rest } of this.#through) {
      const holder = members[n];
      if (holder === undefined || this.#bytes[holder.start] !== OPEN_BRACE) continue;
      const found = rest.find(scan(holder.start)?.members ?? []);
      if (found !== undefined) return found;
    }
    return undefined;
  }
}

/** The names with which a dot path may begin, the shortest first: of `a.b.c` a, a.b and a.b.c. */
function beginningsOf(path: string): string[] {
  const names = path.split('.');
  return names.map((_, n) => names.slice(0, n + 1).join('.'));
}
