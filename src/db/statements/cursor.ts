import { MusterError } from '../../core/errors.js';

/** A page of a list; `nextCursor` is absent on the last one. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor?: string;
}

export interface PageQuery {
  readonly limit: number;
  /** `nextCursor` of the page before. */
  readonly cursor?: string | undefined;
}

/** The position that a cursor of `pageOf` stands for; throws `invalid_request` when it is none of ours. */
export function readCursor(cursor: string, pattern: RegExp): string {
  const position = Buffer.from(cursor, 'base64url').toString();
  if (!pattern.test(position))
    throw new MusterError(
      'invalid_request',
      'The cursor is not one that this API gave: leave it out to start from the beginning.',
    );
  return position;
}

/** `rows` were asked for with `limit + 1`: the row too many says that another page follows. The cursor stands for the last row. */
export function pageOf<T>(rows: readonly T[], limit: number, positionOf: (row: T) => string): Page<T> {
  const data = rows.slice(0, limit);
  const last = data.at(-1);
  return { data, ...(rows.length > limit && last && { nextCursor: cursorAt(positionOf(last)) }) };
}

/** The cursor that stands for a position. */
export function cursorAt(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** Prisma's arguments for a page of `pageBySeq`, newest first. Throws `invalid_request` for a cursor that no answer gave. */
export function newestFirst<F extends PageQuery>({ cursor, limit, ...filter }: F) {
  const before = cursor === undefined ? undefined : BigInt(readCursor(cursor, /^\d{1,18}$/));
  const where = { ...filter, ...(before !== undefined && { seq: { lt: before } }) };
  return { where, orderBy: { seq: 'desc' }, take: limit + 1 } as const;
}

/** A page of rows that come newest first. */
export function pageBySeq<T extends { readonly seq: bigint }>(rows: readonly T[], limit: number): Page<T> {
  return pageOf(rows, limit, ({ seq }) => String(seq));
}
