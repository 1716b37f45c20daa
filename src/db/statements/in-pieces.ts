import { Prisma } from '../../generated/prisma/client.js';
import type { Transaction } from '../connection/transaction.js';
import { BY_INDEX } from './by-index.js';

/** Rows of a piece at most. The time and the memory that a statement takes for a piece do not grow with the company. */
export const PIECE_ROWS = 10_000;

const FETCH = Prisma.raw(`FETCH ${PIECE_ROWS} FROM piece`);

/** Has every statement that follows in the transaction go by indexes. Without, a piece might look through the tables of all companies. */
export async function goByIndex(tx: Transaction): Promise<void> {
  await tx.$queryRaw`SELECT ${BY_INDEX}`;
}

/**
 * Executes a query once, with a cursor, and gives its rows in pieces, in the order of the query. The query sees what stood in the database
 * when it began, whatever is written between two pieces. A transaction reads one such query at a time, to its end.
 */
export async function* inPieces<Row>(tx: Transaction, query: Prisma.Sql): AsyncGenerator<Row[]> {
  await tx.$executeRaw`DECLARE piece NO SCROLL CURSOR FOR ${query}`;
  for (let rows: Row[] | undefined; rows === undefined || rows.length === PIECE_ROWS; ) {
    rows = await tx.$queryRaw<Row[]>(FETCH);
    if (rows.length > 0) yield rows;
  }
  await tx.$executeRaw`CLOSE piece`;
}
