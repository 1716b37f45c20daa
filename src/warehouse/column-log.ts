import type { Endpoint } from '../catalogue/endpoint.js';
import { type ColumnRow, type Due, isColumn, type KeyRow, type Kind, MOST_COLUMNS } from '../db/tables/schema-columns.js';
import type { Sighting, TypeMismatches } from '../db/tables/schema-sightings.js';
import { nameColumn } from './column-names.js';
import { decideType, mismatchesOf } from './column-types.js';
import { findMaps } from './maps.js';

/** A view of a resource whose columns are logged. */
export interface LogView {
  readonly resource: string;
  readonly view: string;
  /** The arrays around its keys, outermost first: the array in the record, and the array in an element of that. */
  readonly arrays: readonly (readonly string[])[];
}

/** The keys of one view in the log, with the changes that sightings and decisions make. */
export class ColumnLog {
  readonly #of: LogView;
  readonly #flatten: number;
  readonly #rows: Map<string, KeyRow>;
  readonly #changed = new Set<string>();
  readonly #added: string[] = [];
  readonly #mismatching: string[] = [];
  /** Counts made by this instance, by key. */
  readonly #found = new Map<string, Set<Kind>>();
  /** Names of the columns, and the position of the last one. */
  readonly #names: string[];
  #lastPosition: number;
  #leftOut = false;
  readonly #removed: KeyRow[] = [];

  /** `endpoint`: the resource's entry in the catalogue; undefined if the catalogue has it no more. */
  constructor(of: LogView, rows: readonly KeyRow[], endpoint?: Endpoint) {
    this.#of = of;
    this.#flatten = endpoint?.flatten ?? 1;
    this.#rows = new Map(rows.map((row) => [keyOf(row.path), row]));
    const columns = rows.filter(isColumn);
    this.#names = columns.map(({ name }) => name);
    this.#lastPosition = columns.reduce((last, { position, textPosition }) => Math.max(last, position, textPosition ?? 0), 0);
  }

  /** Starts counting again; decisions stay. */
  forgetCounts(): void {
    for (const [key, row] of this.#rows) this.#put(key, { ...row, kinds: {}, values: 0, nulls: 0, misfits: 0 });
  }

  /** Counts, and recognizes maps: their members leave the log, except those with a column. */
  count(sightings: readonly Sighting[]): void {
    // The order depends only on the records, so names do not depend on how a statement was executed.
    const inOrder = sightings.map((seen) => ({ key: keyOf(seen.path), seen })).toSorted(byFirstSight);
    for (const { key, seen } of inOrder) {
      const { kind, count, firstSeenAt, lastSeenAt } = seen;
      const row = this.#rows.get(key) ?? newKey(this.#of, seen);
      const kinds = { ...row.kinds, [kind]: (row.kinds[kind] ?? 0) + count };
      this.#put(key, {
        ...row,
        kinds,
        values: row.values + (kind === 'null' ? 0 : count),
        nulls: row.nulls + (kind === 'null' ? count : 0),
        firstSeenAt: earlier(row.firstSeenAt, firstSeenAt),
        lastSeenAt: earlier(lastSeenAt, row.lastSeenAt) === lastSeenAt ? row.lastSeenAt : lastSeenAt,
      });
      const found = this.#found.get(key) ?? new Set();
      this.#found.set(key, found.add(kind));
    }
    this.#keepMapsWhole(sightings);
  }

  /** Forgets every key without a column. */
  clear(): void {
    for (const [key, row] of this.#rows) if (!isColumn(row)) this.#remove(key, row);
  }

  /** Gives a column to each key with enough values, and a text column to each column with values of another type. */
  decide(due: readonly Pick<Due, 'path' | 'isWhole'>[]): void {
    const known = new Map(due.map(({ path, isWhole }) => [keyOf(path), isWhole]));
    for (const [key, row] of this.#rows) if (!isColumn(row)) this.#nameIfKnown(key, row, known);
    for (const [key, row] of this.#rows) {
      if (!isColumn(row)) continue;
      const mismatches = mismatchesOf(row.type, row.kinds).reduce((sum, kind) => sum + (row.kinds[kind] ?? 0), 0);
      const wantsText = mismatches > 0 && row.textPosition === null;
      // A new column has its type mismatches from the start: nothing about it has changed.
      if (wantsText && !this.#added.includes(row.name)) this.#mismatching.push(row.name);
      if (mismatches === row.misfits && !wantsText) continue;
      this.#put(key, { ...row, misfits: mismatches, ...(wantsText && { textPosition: (this.#lastPosition += 1) }) });
    }
  }

  get size(): number {
    return this.#rows.size;
  }

  has(path: readonly string[]): boolean {
    return this.#rows.has(keyOf(path));
  }

  get hasColumns(): boolean {
    return this.#names.length > 0;
  }

  /** Whether the key is inside an object that is kept whole. */
  isInKeptWhole(path: readonly string[]): boolean {
    return path.some((_key, n) => n > 0 && this.#rows.get(keyOf(path.slice(0, n)))?.isKeptWhole);
  }

  /** The keys inside the objects of a key. */
  inside(path: readonly string[]): KeyRow[] {
    return [...this.#rows.values()].filter((row) => isInside(row.path, path));
  }

  /** Keys that left the log. */
  get removed(): readonly KeyRow[] {
    return this.#removed;
  }

  /** The rows to write. */
  get changed(): KeyRow[] {
    return [...this.#changed].map((key) => this.#rows.get(key)!);
  }

  /** Columns that were added. */
  get added(): ColumnRow[] {
    const names = new Set(this.#added);
    return [...this.#rows.values()].filter(isColumn).filter(({ name }) => names.has(name));
  }

  /** Names of existing columns with their first value of another type. */
  get mismatching(): readonly string[] {
    return this.#mismatching;
  }

  /** The position of the newest column. */
  get lastPosition(): number {
    return this.#lastPosition;
  }

  /** Whether there was no room for a key. */
  get hasLeftOut(): boolean {
    return this.#leftOut;
  }

  /** Counts of values of another type that deserve an issue: a day or moment that means "forever" does not. */
  get mismatches(): TypeMismatches[] {
    return [...this.#found].flatMap(([key, found]) => {
      const row = this.#rows.get(key);
      const kinds =
        row && isColumn(row)
          ? mismatchesOf(
              row.type,
              Object.fromEntries([...found].filter((kind) => !kind.endsWith('_beyond')).map((kind) => [kind, 1])),
            )
          : [];
      return !row || kinds.length === 0 ? [] : [{ ...this.#of, path: row.path, kinds }];
    });
  }

  /** A key deeper than objects are flattened now is in the column of the object around it. */
  #nameIfKnown(key: string, row: KeyRow, due: ReadonlyMap<string, boolean>): void {
    if (row.path.length > this.#flatten + 1) return;
    const isWhole = due.get(key);
    const evidence = {
      kinds: row.kinds,
      isFlattened: this.#isFlattened(row),
      isDue: isWhole !== undefined,
      isWhole: isWhole ?? false,
    };
    const type = decideType(evidence);
    if (type === undefined) return;
    if (this.#names.length >= MOST_COLUMNS) {
      this.#leftOut = true;
      return;
    }
    const name = nameColumn(row.path, this.#names);
    this.#put(key, { ...row, name, type, position: (this.#lastPosition += 1) });
    this.#names.push(name);
    this.#added.push(name);
  }

  /** Whether objects of the key are flattened into the columns of their members. */
  #isFlattened({ path, isKeptWhole }: KeyRow): boolean {
    return path.length <= this.#flatten && !isKeptWhole;
  }

  #keepMapsWhole(sightings: readonly Sighting[]): void {
    const newKeys = new Map(sightings.map(({ path, siblings }) => [keyOf(path.slice(0, -1)), siblings]));
    for (const map of findMaps(this.#rows.values(), (path) => newKeys.get(keyOf(path)) ?? 0)) {
      this.#put(keyOf(map.path), { ...map, isKeptWhole: true });
      for (const row of this.inside(map.path)) if (!isColumn(row)) this.#remove(keyOf(row.path), row);
    }
  }

  #remove(key: string, row: KeyRow): void {
    this.#rows.delete(key);
    this.#changed.delete(key);
    this.#removed.push(row);
  }

  #put(key: string, row: KeyRow): void {
    this.#rows.set(key, row);
    this.#changed.add(key);
  }
}

function keyOf(path: readonly string[]): string {
  return JSON.stringify(path);
}

/** Whether a key is inside the objects of another key. */
export function isInside(path: readonly string[], around: readonly string[]): boolean {
  return path.length > around.length && around.every((key, n) => path[n] === key);
}

function newKey({ resource, view }: LogView, { path, environment, runId, firstSeenAt, lastSeenAt }: Sighting): KeyRow {
  const undecided = { name: null, type: null, position: null, textPosition: null, declared: null };
  const untwinned = { twins: [], twinDue: null, twinAnswer: null };
  const counts = { kinds: {}, values: 0, nulls: 0, misfits: 0 };
  return {
    resource,
    view,
    path: [...path],
    isKeptWhole: false,
    ...undecided,
    ...untwinned,
    ...counts,
    environment,
    firstRunId: runId,
    firstSeenAt,
    lastSeenAt,
  };
}

interface KeyedSighting {
  readonly key: string;
  readonly seen: Sighting;
}

function byFirstSight(a: KeyedSighting, b: KeyedSighting): number {
  return a.seen.firstSeenAt.getTime() - b.seen.firstSeenAt.getTime() || (a.key < b.key ? -1 : 1);
}

function earlier(a: Date, b: Date): Date {
  return a.getTime() <= b.getTime() ? a : b;
}
