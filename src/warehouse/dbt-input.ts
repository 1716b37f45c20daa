/** A column of a view in schema `warehouse`. */
export interface DbtColumn {
  readonly name: string;
  /** The type's name in PostgreSQL. */
  readonly type: string;
  readonly description: string;
  /** The key in the record, or in the element of an array; undefined for columns that Muster adds to every view. */
  readonly path?: readonly string[];
}

/** A view in schema `warehouse`. */
export interface DbtView {
  readonly name: string;
  readonly description: string;
  readonly columns: readonly DbtColumn[];
}

/** A view that gets a staging model. */
export interface DbtRecords extends DbtView {
  readonly references: readonly DbtReference[];
  /** Columns that only repeat the record's id. */
  readonly repeated: readonly string[];
}

/** The views of a list. A view that does not exist is undefined. */
export interface DbtList {
  readonly resource: string;
  readonly living: DbtRecords;
  readonly history: DbtView | undefined;
  readonly changes: DbtView | undefined;
  /** The views of array elements. */
  readonly elements: readonly DbtRecords[];
}

/** The input for a dbt package. */
export interface DbtInput {
  readonly lists: readonly DbtList[];
  /** The views of facts about runs and lists. */
  readonly facts: readonly DbtView[];
  /** References that the catalogue declares and that have no column with ids: `employees.manager.id`. */
  readonly missing: readonly string[];
}

/** A reference of a view's records to the records of a list, of the same company. */
export interface DbtReference {
  /** The name of the column of the staging model with the key of the record there. */
  readonly key: string;
  /** The column that refers, for people. */
  readonly column: string;
  /** The dot path in the record. */
  readonly path: string;
  /** SQL over the view's columns: the id of the record there, a text. */
  readonly value: string;
  readonly resource: string;
  /** The catalogue says so; otherwise the column's name and its values do. */
  readonly isDeclared: boolean;
}

/** The files of a package, by their path in it: SQL texts, and objects that are written as YAML. */
export type DbtFiles = readonly (readonly [path: string, content: string | object])[];
