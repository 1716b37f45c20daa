import { MusterError } from '../../core/errors.js';

/** A page of a list; `nextCursor` is absent on the last one, `previousCursor` on the first. */
export interface Page<T> {
  readonly data: readonly T[];
  readonly nextCursor?: string;
  /** Absent in lists that are read forward alone, too. */
  readonly previousCursor?: string;
}

export interface PageQuery {
  readonly limit: number;
  /** `nextCursor` or `previousCursor` of another page. */
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

/** Where a page of a list that is read in both directions begins. */
export interface Start {
  /** The position of the row that the page is next to. */
  readonly position: string;
  /** Whether the page ends before that row; otherwise it begins after it. */
  readonly isBefore: boolean;
}

/** The start that the cursor stands for; undefined without one. Throws as `readCursor` does. */
export function readStart(cursor: string | undefined, pattern: RegExp): Start | undefined {
  if (cursor === undefined) return undefined;
  const text = readCursor(cursor, new RegExp(`^<?${pattern.source.slice(1)}`, pattern.flags));
  const isBefore = text.startsWith('<');
  return { position: isBefore ? text.slice(1) : text, isBefore };
}

/** `readStart` for lists whose rows have a number. */
export function readNumberedStart(cursor: string | undefined) {
  const start = readStart(cursor, /^\d{1,18}$/);
  return start && { position: BigInt(start.position), isBefore: start.isBefore };
}

/**
 * `rows` are in the order of the list and were asked for with `limit + 1`: the row too many says that the list goes on in the direction of reading.
 * `start` is that of the page, or null on the first; without it, the list is read forward alone.
 */
export function pageOf<T>(
  rows: readonly T[],
  limit: number,
  positionOf: (row: T) => string,
  start?: { readonly isBefore: boolean } | null,
): Page<T> {
  const isBefore = start?.isBefore === true;
  const data = isBefore ? rows.slice(-limit) : rows.slice(0, limit);
  const [first, last] = [data[0], data.at(-1)];
  const hasMore = rows.length > limit;
  return {
    data,
    ...((hasMore || isBefore) && last && { nextCursor: cursorAt(positionOf(last)) }),
    ...((isBefore ? hasMore : start) && first && { previousCursor: cursorAt(`<${positionOf(first)}`) }),
  };
}

/** The cursor that stands for a position. */
export function cursorAt(position: string): string {
  return Buffer.from(position).toString('base64url');
}

/** Prisma's arguments for a page of `pageBySeq`. Throws `invalid_request` for a cursor that no answer gave. */
export function newestFirst<F extends PageQuery>({ cursor, limit, ...filter }: F) {
  const start = readNumberedStart(cursor);
  const seq = start && (start.isBefore ? { gt: start.position } : { lt: start.position });
  return {
    where: { ...filter, ...(seq && { seq }) },
    orderBy: { seq: start?.isBefore ? 'asc' : 'desc' },
    take: limit + 1,
  } as const;
}

/** A page of rows, newest first, whatever their order here. `cursor`: that of the page. */
export function pageBySeq<T extends { readonly seq: bigint }>(rows: readonly T[], { limit, cursor }: PageQuery): Page<T> {
  const ordered = rows.toSorted((one, other) => Number(other.seq - one.seq));
  return pageOf(ordered, limit, ({ seq }) => String(seq), readNumberedStart(cursor) ?? null);
}
