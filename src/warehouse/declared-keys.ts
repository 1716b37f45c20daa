import type { DeclaredColumns } from '../catalogue/declared-columns.js';
import type { KeyRow } from '../db/tables/schema-columns.js';

/** The types that the catalogue declares for the keys of one view. */
export class DeclaredKeys {
  readonly #types: ReadonlyMap<string, string>;
  readonly #around: readonly string[];

  /** `around`: the keys of the arrays around those of the view. */
  constructor(columns: DeclaredColumns | undefined, around: readonly string[]) {
    this.#types = new Map(Object.entries(columns ?? {}));
    this.#around = around;
  }

  /** The paths within the view that are declared, if no name in them has a dot. */
  get paths(): string[][] {
    return [...this.#types.keys()]
      .map((dotPath) => dotPath.split('.'))
      .filter((path) => path.length > this.#around.length && this.#around.every((key, n) => path[n] === key))
      .map((path) => path.slice(this.#around.length));
  }

  /** Records what is declared of a key. A key that is declared jsonb is kept whole. */
  declare(row: KeyRow): KeyRow {
    // A dot may also be part of a name, as in the paths of privacy rules.
    const declared = this.#types.get([...this.#around, ...row.path].join('.')) ?? null;
    return { ...row, declared, isKeptWhole: row.isKeptWhole || declared === 'jsonb' };
  }
}
