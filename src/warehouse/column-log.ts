import { typeOfDeclared } from '../catalogue/declared-columns.js';
import type { Endpoint } from '../catalogue/endpoint.js';
import {
  type ColumnRow,
  type ColumnType,
  type Due,
  isColumn,
  type KeyRow,
  type Kind,
  MOST_COLUMNS,
  MOST_TWINS,
  type TwinAnswer,
} from '../db/tables/schema-columns.js';
import type { Sighting, TypeMismatches } from '../db/tables/schema-sightings.js';
import { nameColumn, nameTwin } from './column-names.js';
import { decideType, kindsOfIssue, kindToAsk, mismatchesOf } from './column-types.js';
import { withConversion } from './conversions.js';
import { DeclaredKeys } from './declared-keys.js';
import { byFirstSight, earlier, isInside, keyOf, type LogView, newKey, unseenKey } from './log-keys.js';
import { findMaps } from './maps.js';

/** The keys of one view in the log, with the changes that sightings and decisions make. */
export class ColumnLog {
  readonly #of: LogView;
  readonly #flatten: number;
  readonly #declared: DeclaredKeys;
  readonly #rows: Map<string, KeyRow>;
  readonly #changed = new Set<string>();
  readonly #added: string[] = [];
  readonly #mismatching: string[] = [];
  /** Counts made by this instance, by key. */
  readonly #found = new Map<string, Set<Kind>>();
  /** Names of the columns and their twins, how many columns there are, and the position of the last one. */
  readonly #names: string[];
  #columns: number;
  #lastPosition: number;
  #leftOut = false;
  /** Keys whose counts are older than the conversion of their column. */
  readonly #outdated = new Set<string>();
  readonly #removed: KeyRow[] = [];

  /** `endpoint`: the resource's entry in the catalogue; undefined if the catalogue has it no more. */
  constructor(of: LogView, rows: readonly KeyRow[], endpoint?: Endpoint) {
    this.#of = of;
    this.#flatten = endpoint?.flatten ?? 1;
    this.#declared = new DeclaredKeys(endpoint?.columns, of.arrays.flat());
    this.#rows = new Map(rows.map((row) => [keyOf(row.path), row]));
    const columns = rows.filter(isColumn);
    this.#names = columns.flatMap(({ name, twins }) => [name, ...twins.map((twin) => twin.name)]);
    this.#columns = columns.length;
    this.#lastPosition = Math.max(
      0,
      ...columns.flatMap(({ position, textPosition, twins }) => [
        position,
        textPosition ?? 0,
        ...twins.map((twin) => twin.position),
      ]),
    );
  }

  /** Starts counting again; decisions stay. */
  forgetCounts(): void {
    for (const [key, row] of this.#rows)
      this.#put(key, { ...row, kinds: {}, values: 0, nulls: 0, misfits: 0, twinDue: null, twinAnswers: {} });
  }

  /** Counts, and recognizes maps: their members leave the log, except those with a column. */
  count(sightings: readonly Sighting[]): void {
    // The order depends only on the records, so names do not depend on how a statement was executed.
    const inOrder = sightings.map((seen) => ({ key: keyOf(seen.path), seen })).toSorted(byFirstSight);
    for (const { key, seen } of inOrder) {
      const { kind, count, firstSeenAt, lastSeenAt } = seen;
      const known = this.#rows.get(key);
      if (!known && this.isInKeptWhole(seen.path)) continue;
      const row = known ?? this.#declared.declare(newKey(this.#of, seen));
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
      // The counts of a column that converts only now say nothing of its misfits: the mirror is counted next.
      if (!isColumn(row) || this.#outdated.has(key)) continue;
      const twinDue = kindToAsk(row, this.#found.get(key));
      const mismatches = mismatchesOf(row.type, row.kinds).reduce((sum, kind) => sum + (row.kinds[kind] ?? 0), 0);
      const wantsText = mismatches > 0 && row.textPosition === null;
      // A new column has its type mismatches from the start: nothing about it has changed.
      if (wantsText && !this.#added.includes(row.name)) this.#mismatching.push(row.name);
      if (mismatches === row.misfits && !wantsText && twinDue === row.twinDue) continue;
      this.#put(key, { ...row, twinDue, misfits: mismatches, ...(wantsText && { textPosition: (this.#lastPosition += 1) }) });
    }
  }

  /**
   * Takes over what the catalogue declares: a column for each declared key, also for one that no record has had, and a twin for each column with another
   * type. What was declared earlier keeps its column. Keys within one that is kept whole leave the log.
   */
  declare(at: Date): void {
    for (const path of this.#declared.paths) {
      const key = keyOf(path);
      if (!this.#rows.has(key) && this.#isPathOfView(path)) this.#put(key, this.#declared.declare(unseenKey(this.#of, path, at)));
    }
    for (const [key, row] of this.#rows) {
      const declared = this.#declared.declare(row);
      if (declared.declared !== row.declared) this.#put(key, declared);
    }
    for (const [key, row] of this.#rows) {
      if (row.declared === null || row.path.length > this.#flatten + 1) continue;
      const type = typeOfDeclared(row.declared);
      if (!isColumn(row)) this.#name(key, row, type);
      else if (row.type !== type && !row.twins.some((twin) => twin.type === type)) this.addTwin(row.path, type);
      this.#convert(key, type);
    }
    for (const [key, row] of this.#rows) if (!isColumn(row) && this.isInKeptWhole(row.path)) this.#remove(key, row);
  }

  /** Adds a further column of the type to a key that has a column, if there is room. */
  addTwin(path: readonly string[], type: ColumnType): void {
    const key = keyOf(path);
    const row = this.#rows.get(key) as ColumnRow;
    if (!this.hasRoomForTwin) {
      this.#leftOut = true;
      return;
    }
    const twin = { name: nameTwin(row.name, type, this.#names), type, position: (this.#lastPosition += 1) };
    const twinned = { ...row, twins: [...row.twins, twin] };
    this.#put(key, { ...twinned, twinDue: kindToAsk(twinned, this.#found.get(key)) });
    this.#names.push(twin.name);
  }

  /** Whether values were counted as misfits that now are none. */
  get isOutdated(): boolean {
    return this.#outdated.size > 0;
  }

  get hasRoomForTwin(): boolean {
    return this.#names.length - this.#columns < MOST_TWINS;
  }

  /** Records that the mirror has no reason for a twin of the kind, now. */
  answerTwin(path: readonly string[], kind: Kind, answer: TwinAnswer): void {
    const key = keyOf(path);
    const row = this.#rows.get(key) as ColumnRow;
    const answered = { ...row, twinDue: answer.waits ? kind : null, twinAnswers: { ...row.twinAnswers, [kind]: answer } };
    this.#put(key, { ...answered, twinDue: kindToAsk(answered, this.#found.get(key)) });
  }

  get size(): number {
    return this.#rows.size;
  }

  /** Whether no record had any of the keys: they were only declared. */
  get isUnseen(): boolean {
    return [...this.#rows.values()].every(({ values, nulls }) => values + nulls === 0);
  }

  /** Whether the key had objects. */
  hasObjects(path: readonly string[]): boolean {
    return (this.#rows.get(keyOf(path))?.kinds.object ?? 0) > 0;
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

  /** Counts of values of another type that deserve an issue. */
  get mismatches(): TypeMismatches[] {
    return [...this.#found].flatMap(([key, found]) => {
      const row = this.#rows.get(key);
      const kinds = row && isColumn(row) ? kindsOfIssue(row.type, found) : [];
      return !row || kinds.length === 0
        ? []
        : [{ ...this.#of, path: row.path, kinds, converting: row.converts ? row.type : null }];
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
    const type = row.declared === null ? decideType(evidence) : typeOfDeclared(row.declared);
    if (type !== undefined) this.#name(key, row, type);
  }

  #name(key: string, row: KeyRow, type: ColumnType): void {
    if (this.#columns >= MOST_COLUMNS) {
      this.#leftOut = true;
      return;
    }
    const name = nameColumn(row.path, this.#names);
    this.#put(key, { ...row, name, type, position: (this.#lastPosition += 1) });
    if (row.declared !== null) this.#convert(key, type);
    this.#names.push(name);
    this.#columns += 1;
    this.#added.push(name);
  }

  #convert(key: string, type: ColumnType): void {
    const row = this.#rows.get(key)!;
    const converting = withConversion(row, type);
    if (converting !== row) this.#put(key, converting);
    if (converting.converts && !row.converts && row.values > 0) this.#outdated.add(key);
  }

  /** Whether the path leads through objects that are flattened: not through an array, nor deeper. */
  #isPathOfView(path: readonly string[]): boolean {
    const around = path.map((_key, n) => this.#rows.get(keyOf(path.slice(0, n)))?.kinds ?? {});
    return path.length <= this.#flatten + 1 && !around.some((kinds) => kinds.array && !kinds.object);
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
