import { stringify } from 'csv-stringify/sync';
import pg from 'pg';
import type { BinaryRow } from '../../db/statements/binary-rows.js';
import type { Column, Source } from './source.js';

/** A file format: the query whose rows it takes, and how it encodes them. Bytes are valid until the next ones are asked for. */
export interface Encoding {
  readonly query: string;
  encode(rows: AsyncIterable<BinaryRow>): AsyncGenerator<Uint8Array, void, undefined>;
}

const CHUNK_BYTES = 1 << 20;

/** NDJSON: PostgreSQL writes each line, with every digit of its numbers. */
export function ndjson({ columns, from, order }: Source): Encoding {
  const selected = columns.map(({ name }) => `r.${pg.escapeIdentifier(name)}`).join(', ');
  return {
    // With `.*`, which is never a column: a record may have a key of any name, that of an alias too.
    query: `SELECT row_to_json(line.*)::text FROM (SELECT ${selected} FROM ${from} ORDER BY ${order}) AS line`,
    encode: (rows) => lines(rows, '', '\n'),
  };
}

/** Kinds whose texts never hold a quote, a comma or the end of a line. */
const UNQUOTED = new Set(['boolean', 'numeric', 'date', 'timestamp', 'timestamptz', 'bigint', 'double']);

/**
 * CSV as RFC 4180 has it, with a header, each line written by PostgreSQL. Texts are always quoted, so that an empty one ("") is none that is
 * missing (nothing at all).
 */
export function csv({ columns, from, order }: Source): Encoding {
  const cells = columns.map(cellOf).join(', ');
  const header = stringify([columns.map(({ name }) => name)], { record_delimiter: 'windows' });
  return {
    query: `SELECT array_to_string(ARRAY[${cells}], ',', '') FROM ${from} ORDER BY ${order}`,
    encode: (rows) => lines(rows, header, '\r\n'),
  };
}

function cellOf({ name, kind }: Column): string {
  const text = `r.${pg.escapeIdentifier(name)}::text`;
  return UNQUOTED.has(kind) ? text : `'"' || replace(${text}, '"', '""') || '"'`;
}

/** Gathers the rows, which have one column, into large pieces, one line for each. */
async function* lines(rows: AsyncIterable<BinaryRow>, head: string, end: string): AsyncGenerator<Uint8Array, void, undefined> {
  const ending = Buffer.from(end);
  let chunk = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  let used = chunk.write(head);
  for await (const [line] of rows) {
    const size = line!.length + ending.length;
    if (used + size > chunk.length) {
      yield chunk.subarray(0, used);
      used = 0;
      if (size > chunk.length) chunk = Buffer.allocUnsafeSlow(size);
    }
    used += line!.copy(chunk, used);
    used += ending.copy(chunk, used);
  }
  if (used > 0) yield chunk.subarray(0, used);
}
