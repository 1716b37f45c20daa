import { ByteWriter, ParquetWriter } from 'hyparquet-writer';
import type { BinaryRow } from '../../db/statements/binary-rows.js';
import { ColumnBytes } from './column-bytes.js';
import type { Source } from './source.js';
import type { StoredColumn } from './stored-columns.js';
import type { StoredType } from './stored-types.js';
import type { Encoding } from './text-lines.js';
import type { Compress } from './zstd.js';

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]['schema'][number];
type Value = string | number | bigint | boolean | Uint8Array;

/**
 * A row group is held as bytes, then encoded at once. Many rows make a small file that is read quickly. The bytes, those of the values as PostgreSQL
 * sends them and what a cell takes by itself, bound the memory where rows are wide.
 */
const GROUP = { rows: 128_000, bytes: 24 << 20 };
const CELL_BYTES = 4;

const DAYS_TO_2000 = 10_957;
const MICROS_TO_2000 = 946_684_800_000_000n;

/** Parquet, compressed with zstd. */
export function parquet({ from, order }: Source, columns: readonly StoredColumn[], compress: Compress): Encoding {
  const schemaWith = (elementOf: (column: StoredColumn) => SchemaElement): SchemaElement[] => [
    { name: 'root', num_children: columns.length },
    ...columns.map(elementOf),
  ];
  return {
    query: `SELECT ${columns.map(selected).join(', ')} FROM ${from} ORDER BY ${order}`,
    async *encode(rows) {
      const writer = new ByteWriter();
      // The writer would encode a text of JSON as JSON once more. So it writes texts, and the file's footer, written last, calls them JSON.
      const file = new ParquetWriter({
        writer,
        schema: schemaWith(({ name, type }) => element(name, type.kind === 'json' ? { kind: 'text' } : type)),
        codec: 'ZSTD',
        compressors: { ZSTD: compress },
        createdBy: 'muster',
      });
      const cells = columns.map(({ type }) => new ColumnBytes(readerOf(type)));
      const columnData = columns.map(({ name, type }, n) => ({
        name,
        statistics: type.kind !== 'json',
        // The writer takes one column after the other, so that the values of only one are in memory.
        get data() {
          return cells[n]!.values();
        },
      }));
      for await (const rowGroupSize of groupsOf(rows, cells)) {
        // Without a promise: the writer has no flush of its own.
        void file.write({ columnData, rowGroupSize });
        yield takeBytes(writer);
      }
      file.schema = schemaWith(({ name, type }) => element(name, type));
      void file.finish();
      yield takeBytes(writer);
    },
  };
}

/** Gathers the rows in the columns, and returns their number with each group that is full, and with the last one. */
async function* groupsOf(
  rows: AsyncIterable<BinaryRow>,
  columns: readonly ColumnBytes<Value>[],
): AsyncGenerator<number, void, undefined> {
  let [count, size] = [0, 0];
  for await (const row of rows) {
    row.forEach((cell, n) => {
      columns[n]!.append(cell);
      size += CELL_BYTES + (cell?.length ?? 0);
    });
    count += 1;
    if (count < GROUP.rows && size < GROUP.bytes) continue;
    yield count;
    for (const column of columns) column.clear();
    [count, size] = [0, 0];
  }
  if (count > 0) yield count;
}

/** The expression for each value that PostgreSQL sends, so that little is left to do here. */
function selected({ value, type }: StoredColumn): string {
  switch (type.kind) {
    case 'text':
    case 'json':
      return `(${value})::text`;
    case 'bigint':
      return `(${value})::bigint`;
    case 'double':
      return `(${value})::float8`;
    case 'decimal': {
      // Without its point. Nothing is rounded: a value with more decimal places is null here.
      const unscaled = `((${value}) * 1${'0'.repeat(type.scale)})`;
      return isShort(type) ? `${unscaled}::bigint` : `trunc(${unscaled})::text`;
    }
    case 'uuid':
    case 'boolean':
    case 'date':
    case 'timestamp':
    case 'timestamptz':
      return value;
  }
}

/** Whether 64 bits hold the decimals; 128 bits otherwise. */
function isShort({ precision }: { readonly precision: number }): boolean {
  return precision <= 18;
}

/** Reads the writer's form of a value from the bytes that PostgreSQL sends for `selected`. */
function readerOf(type: StoredType): (bytes: Buffer) => Value {
  switch (type.kind) {
    case 'text':
    case 'json':
      return (bytes) => bytes.toString();
    case 'uuid':
      return (bytes) => new Uint8Array(bytes);
    case 'boolean':
      return (bytes) => bytes[0] === 1;
    case 'date':
      return (bytes) => bytes.readInt32BE() + DAYS_TO_2000;
    case 'timestamp':
    case 'timestamptz':
      return (bytes) => bytes.readBigInt64BE() + MICROS_TO_2000;
    case 'bigint':
      return (bytes) => bytes.readBigInt64BE();
    case 'double':
      return (bytes) => bytes.readDoubleBE();
    case 'decimal':
      return isShort(type) ? (bytes) => bytes.readBigInt64BE() : (bytes) => BigInt(bytes.toString('latin1'));
  }
}

function element(name: string, type: StoredType): SchemaElement {
  const column = { name, repetition_type: 'OPTIONAL' } as const;
  switch (type.kind) {
    case 'text':
      return { ...column, type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } };
    case 'json':
      return { ...column, type: 'BYTE_ARRAY', converted_type: 'JSON', logical_type: { type: 'JSON' } };
    case 'uuid':
      return { ...column, type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16, logical_type: { type: 'UUID' } };
    case 'boolean':
      return { ...column, type: 'BOOLEAN' };
    case 'date':
      return { ...column, type: 'INT32', converted_type: 'DATE', logical_type: { type: 'DATE' } };
    case 'timestamp':
      // Without a converted type: each of those means UTC.
      return { ...column, type: 'INT64', logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' } };
    case 'timestamptz':
      return {
        ...column,
        type: 'INT64',
        converted_type: 'TIMESTAMP_MICROS',
        logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
      };
    case 'bigint':
      return { ...column, type: 'INT64' };
    case 'double':
      return { ...column, type: 'DOUBLE' };
    case 'decimal': {
      const { precision, scale } = type;
      const decimal = {
        ...column,
        converted_type: 'DECIMAL',
        precision,
        scale,
        logical_type: { type: 'DECIMAL', precision, scale },
      } as const;
      return isShort(type) ? { ...decimal, type: 'INT64' } : { ...decimal, type: 'FIXED_LEN_BYTE_ARRAY', type_length: 16 };
    }
  }
}

/** The bytes that were written since the last call. Their memory is used again. */
function takeBytes(writer: ByteWriter): Uint8Array {
  const bytes = writer.getBytes();
  writer.index = 0;
  return bytes;
}
