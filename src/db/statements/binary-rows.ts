import type pg from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { MusterError } from '../../core/errors.js';
import { freeBuffers } from '../../core/free-buffers.js';

/** The bytes of each column as the server sends them: a bytea as it is, an int4 as four bytes; null for NULL. */
export type BinaryRow = readonly (Buffer | null)[];

/** "PGCOPY", eleven bytes with what protects it, flags, and the length of an extension, which is absent. */
const HEADER_BYTES = 19;
/** In the place of a number of columns: no row follows. */
const END = -1;

/**
 * The rows of a query without parameters, in the binary format of COPY. The driver's own way is to read every value as text, bytes
 * as hexadecimal digits. Values are views of memory that is given back when the next row is asked for. Throws `database_unavailable`
 * when the connection ends before the last row: fewer rows must never look like all of them.
 */
export async function* binaryRows(pool: Pick<pg.Pool, 'connect'>, query: string): AsyncGenerator<BinaryRow, void, undefined> {
  const client = await pool.connect();
  let isRead = false;
  try {
    yield* copiedRows(client, query);
    isRead = true;
  } finally {
    // On a connection that was left early, the rest is still to come.
    client.release(!isRead);
  }
}

/** Reads such rows on a connection of the caller's, in its transaction. The caller closes the connection unless every row was read. */
export async function* copiedRows(
  client: Pick<pg.ClientBase, 'query'>,
  query: string,
): AsyncGenerator<BinaryRow, void, undefined> {
  let whole: Buffer = Buffer.alloc(0);
  let unread = whole;
  let at = HEADER_BYTES;
  for await (const part of client.query(copyTo(`COPY (${query}) TO STDOUT (FORMAT binary)`)) as AsyncIterable<Buffer>) {
    // Rows that stood there have been read, and the one that was cut is copied.
    const before = whole;
    whole = unread.length === 0 ? part : Buffer.concat([unread, part]);
    freeBuffers(whole === part ? [before] : [before, part]);
    unread = whole;
    for (let read = readRow(unread, at); read; read = readRow(unread, at)) {
      at = read.end;
      yield read.row;
    }
    const taken = Math.min(at, unread.length);
    unread = unread.subarray(taken);
    at -= taken;
  }
  if (unread.length < at + 2 || unread.readInt16BE(at) !== END) {
    throw new MusterError('database_unavailable', 'The database closed the connection before the last row came; try again');
  }
  freeBuffers([whole]);
}

/** The row that begins at `at`, and where the next one does. Undefined where not all of it has come, and where there is none. */
function readRow(bytes: Buffer, at: number): { readonly row: BinaryRow; readonly end: number } | undefined {
  if (bytes.length < at + 2) return undefined;
  const columns = bytes.readInt16BE(at);
  if (columns === END) return undefined;
  const row: (Buffer | null)[] = [];
  let end = at + 2;
  for (let n = 0; n < columns; n += 1) {
    if (bytes.length < end + 4) return undefined;
    const length = bytes.readInt32BE(end);
    end += 4;
    if (length >= 0) {
      if (bytes.length < end + length) return undefined;
      row.push(bytes.subarray(end, end + length));
      end += length;
    } else row.push(null);
  }
  return { row, end };
}
