import { MusterError } from '../core/errors.js';

/** An opaque cursor that stands for the last row of a page. */
export function pageCursor(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** The position that a cursor stands for; throws `invalid_request` when it is none of ours. */
export function readCursor(cursor: string, pattern: RegExp): string {
  const position = Buffer.from(cursor, 'base64url').toString();
  if (!pattern.test(position))
    throw new MusterError(
      'invalid_request',
      'The cursor is not one that this API gave: leave it out to start from the beginning.',
    );
  return position;
}

/** A page of a list; `nextCursor` is absent on the last one. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor?: string;
}

/** The `seq` of the last row of the page before; undefined on the first page. Throws `invalid_request`. */
export function readSeqCursor(cursor: string | undefined): bigint | undefined {
  return cursor === undefined ? undefined : BigInt(readCursor(cursor, /^\d{1,18}$/));
}

/** `rows` were asked for with `limit + 1`: the row too many says that another page follows. */
export function pageBySeq<T extends { readonly seq: bigint }>(rows: readonly T[], limit: number): Page<T> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  return { data, ...(rows.length > limit && last && { nextCursor: pageCursor(String(last.seq)) }) };
}
