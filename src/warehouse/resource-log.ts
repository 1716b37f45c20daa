import type { Endpoint } from '../catalogue/endpoint.js';
import { type ArrayView, MOST_ARRAYS } from '../db/tables/schema-arrays.js';
import { type ColumnRow, type Due, type KeyRow, MOST_KEYS } from '../db/tables/schema-columns.js';
import type { Sighting, TypeMismatches } from '../db/tables/schema-sightings.js';
import { ColumnLog } from './column-log.js';
import { nameArrayView } from './column-names.js';
import type { LogView } from './log-keys.js';

/** The state of the log that concerns one resource. */
interface Known {
  readonly resource: string;
  readonly keys: readonly KeyRow[];
  readonly arrays: readonly ArrayView[];
  /** Names that no further view may have. */
  readonly taken: readonly string[];
  /** The resource's entry in the catalogue; undefined if the catalogue has it no more. */
  readonly endpoint: Endpoint | undefined;
}

/** The log of one resource: the keys of its list, and those of the elements of its arrays. */
export class ResourceLog {
  readonly #resource: string;
  readonly #endpoint: Endpoint | undefined;
  readonly #taken: Set<string>;
  readonly #logs = new Map<string, ColumnLog>();
  readonly #arrays: ArrayView[];
  readonly #newArrays: ArrayView[] = [];
  readonly #removedArrays: string[] = [];
  #leftOut = false;
  #wantsRebuild = false;

  constructor({ resource, keys, arrays, taken, endpoint }: Known) {
    this.#resource = resource;
    this.#endpoint = endpoint;
    this.#taken = new Set(taken);
    this.#arrays = [...arrays];
    const views: readonly LogView[] = [
      { resource, view: resource, arrays: [] },
      ...arrays.map((array) => ({ resource, view: array.view, arrays: pathsOf(array) })),
    ];
    for (const view of views)
      this.#logs.set(
        view.view,
        new ColumnLog(
          view,
          keys.filter((row) => row.view === view.view),
          endpoint,
        ),
      );
  }

  /** Whether no record had any of the keys: they were only declared. */
  get isUnseen(): boolean {
    return [...this.#logs.values()].every((log) => log.isUnseen);
  }

  /** Takes over what the catalogue declares. */
  declare(at: Date): void {
    for (const log of this.#logs.values()) log.declare(at);
  }

  /** Starts counting again; decisions stay. */
  forgetCounts(): void {
    for (const log of this.#logs.values()) log.forgetCounts();
  }

  /** Outer keys first: the elements in a map have no view. */
  count(all: readonly Sighting[]): void {
    const room = MOST_KEYS - this.#size;
    const [sightings, others] = partition(all, ({ isKnown, rank }) => isKnown || rank <= room);
    const inList = sightings.filter(({ arrayPath }) => arrayPath === null);
    this.#countIn(this.#resource, inList);
    const inArrays = sightings.filter(({ arrayPath, innerPath }) => arrayPath !== null && innerPath === null);
    this.#countElements(this.#resource, inArrays, null);
    const inner = sightings.filter(({ innerPath }) => innerPath !== null);
    for (const { view, path } of this.#arrays.filter(({ innerPath }) => innerPath === null)) {
      this.#countElements(
        view,
        inner.filter(({ arrayPath }) => isSame(arrayPath!, path)),
        path,
      );
    }
    this.#removeEmptyArrays();
    this.#leftOut ||= others.some((seen) => !this.#isInMap(seen));
  }

  /** Gives columns to keys with enough values. */
  decide(due: readonly Pick<Due, 'view' | 'path' | 'isWhole'>[]): void {
    for (const [view, log] of this.#logs) log.decide(due.filter((key) => key.view === view));
  }

  /** Gives columns to all keys with values. */
  decideAll(): void {
    for (const log of this.#logs.values()) log.decide(log.inside([]).map(({ path }) => ({ path, isWhole: true })));
  }

  /** The rows to write. */
  get changed(): KeyRow[] {
    return this.#collect((log) => log.changed);
  }

  /** Keys that left the log. */
  get removed(): KeyRow[] {
    return this.#collect((log) => log.removed);
  }

  get newArrays(): readonly ArrayView[] {
    return this.#newArrays.filter(({ view }) => !this.#removedArrays.includes(view));
  }

  /** Views of arrays that left the log. */
  get removedArrays(): readonly string[] {
    return this.#removedArrays;
  }

  /** Columns that were added. */
  get added(): ColumnRow[] {
    return this.#collect((log) => log.added);
  }

  /** Names of existing columns with their first value of another type. */
  get mismatching(): string[] {
    return this.#collect((log) => log.mismatching);
  }

  /** A number that grows with each added column. */
  get lastPosition(): number {
    return this.#collect((log) => [log.lastPosition]).reduce((sum, position) => sum + position, 0);
  }

  /** Whether there was no room for a key, or for the view of an array. */
  get hasLeftOut(): boolean {
    return this.#leftOut || [...this.#logs.values()].some((log) => log.hasLeftOut);
  }

  /**
   * Whether objects were counted in place of an array before it was known: they are its elements, too. Or whether values were counted as misfits that now
   * are none.
   */
  get wantsRebuild(): boolean {
    return this.#wantsRebuild || [...this.#logs.values()].some((log) => log.isOutdated);
  }

  /** Counts of values of another type that deserve an issue. */
  get mismatches(): TypeMismatches[] {
    return this.#collect((log) => log.mismatches);
  }

  #collect<T>(each: (log: ColumnLog) => readonly T[]): T[] {
    return [...this.#logs.values()].flatMap(each);
  }

  #countIn(view: string, sightings: readonly Sighting[]): void {
    this.#logs.get(view)!.count(sightings);
  }

  get #size(): number {
    return this.#collect((log) => [log.size]).reduce((sum, size) => sum + size, 0);
  }

  /** Counts the elements of the arrays that are in a view's records, or in its elements. */
  #countElements(view: string, elements: readonly Sighting[], outer: readonly string[] | null): void {
    this.#addArrays(view, this.#logs.get(view)!, elements, outer);
    const isOurs = (array: ArrayView) =>
      outer === null ? array.innerPath === null : array.innerPath !== null && isSame(array.path, outer);
    for (const array of this.#arrays.filter(isOurs)) {
      const seen = elements.filter((each) =>
        isSame(outer === null ? each.arrayPath! : each.innerPath!, array.innerPath ?? array.path),
      );
      if (seen.length > 0) this.#countIn(array.view, seen);
    }
  }

  /** Names the views of arrays that were not known. The order depends only on the records. */
  #addArrays(view: string, log: ColumnLog, elements: readonly Sighting[], outer: readonly string[] | null): void {
    const first = new Map<string, { path: readonly string[]; at: number }>();
    for (const seen of elements) {
      const path = outer === null ? seen.arrayPath! : seen.innerPath!;
      const key = JSON.stringify(path);
      const at = Math.min(first.get(key)?.at ?? Infinity, seen.firstSeenAt.getTime());
      if (seen.view === null && !log.isInKeptWhole(path)) first.set(key, { path, at });
    }
    const inOrder = [...first].toSorted(([a, { at }], [b, other]) => at - other.at || (a < b ? -1 : 1));
    for (const [, { path }] of inOrder) {
      if (this.#arrays.length >= MOST_ARRAYS) {
        this.#leftOut = true;
        return;
      }
      this.#wantsRebuild ||= log.hasObjects(path);
      const array: ArrayView = {
        view: nameArrayView(view, path, this.#taken),
        resource: this.#resource,
        path: outer ?? path,
        innerPath: outer === null ? null : path,
      };
      this.#taken.add(array.view);
      this.#arrays.push(array);
      this.#newArrays.push(array);
      this.#logs.set(
        array.view,
        new ColumnLog({ resource: this.#resource, view: array.view, arrays: pathsOf(array) }, [], this.#endpoint),
      );
    }
  }

  /** An array that is in a map, as is known now, leaves the log if its view has no column. */
  #removeEmptyArrays(): void {
    for (const { view, path, innerPath } of this.#arrays) {
      const log = this.#logs.get(view)!;
      if (log.hasColumns || !this.#isInMap({ arrayPath: path, innerPath, path: [] })) continue;
      log.clear();
      this.#removedArrays.push(view);
    }
  }

  /** Whether an object around the key, or around the array with it, is kept whole. */
  #isInMap({ arrayPath, innerPath, path }: Pick<Sighting, 'arrayPath' | 'innerPath' | 'path'>): boolean {
    const [list, outer, inner] = [
      this.#logs.get(this.#resource)!,
      arrayPath && this.#viewOf(arrayPath, null),
      arrayPath && innerPath && this.#viewOf(arrayPath, innerPath),
    ];
    if (arrayPath === null) return list.isInKeptWhole(path);
    if (list.isInKeptWhole(arrayPath) || outer?.isInKeptWhole(innerPath ?? path)) return true;
    return inner?.isInKeptWhole(path) ?? false;
  }

  #viewOf(path: readonly string[], innerPath: readonly string[] | null): ColumnLog | undefined {
    const isIt = (array: ArrayView) =>
      isSame(array.path, path) &&
      (innerPath === null ? array.innerPath === null : array.innerPath !== null && isSame(array.innerPath, innerPath));
    const array = this.#arrays.find(isIt);
    return array && this.#logs.get(array.view);
  }
}

function partition<T>(all: readonly T[], isFirst: (each: T) => boolean): readonly [T[], T[]] {
  return [all.filter(isFirst), all.filter((each) => !isFirst(each))];
}

function pathsOf({ path, innerPath }: ArrayView): readonly (readonly string[])[] {
  return innerPath === null ? [path] : [path, innerPath];
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((key, n) => b[n] === key);
}
