/**
 * The value in the place of a response's array of records, where that is a spelling of "no records":
 * - `no-content`: the response has no body and says so (status 204).
 * - `null`, `empty`: null, or an object without a member.
 * - `missing`: the place is not there.
 */
export type NoRecords = 'no-content' | 'null' | 'empty' | 'missing';

/** A response whose records have been found: the values that say how the list goes on are read from it. */
export interface ParsedResponse {
  /** The parsed body, with an empty array in the place of its records. */
  readonly rest: unknown;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** The address that was asked. */
  readonly url: string;
  /** Records of the page. */
  readonly count: number;
  /** The value in the place of the array of records, where that is none. */
  readonly noRecords?: NoRecords | undefined;
  /** The last record, parsed; undefined on an empty page. Only pagers with `readsLastRecord` call it. */
  lastRecord(): unknown;
}
