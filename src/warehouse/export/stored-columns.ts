import pg from 'pg';
import { textColumn } from '../column-names.js';
import type { Column, Source } from './source.js';
import { fittingCondition, type StoredType, storedType } from './stored-types.js';

/** A column of a Parquet file. `value` is the expression over a row of the source. */
export interface StoredColumn extends Column {
  readonly type: StoredType;
  readonly value: string;
}

export interface StoredColumns {
  readonly columns: readonly StoredColumn[];
  /** The number of values that Parquet lacks, for each column that has any. */
  readonly misfits: Readonly<Record<string, number>>;
}

/**
 * The columns of a Parquet file. A value that Parquet lacks is null, and its text is in the column's text column, which the source has, or which is appended.
 * The values are counted first, in the snapshot that the export reads, since all row groups have the same columns.
 */
export async function storedColumns(client: pg.ClientBase, source: Source): Promise<StoredColumns> {
  const columns = source.columns.map((column): StoredColumn => {
    return { ...column, type: storedType(column), value: `r.${pg.escapeIdentifier(column.name)}` };
  });
  const misfits = await countMisfits(client, source.from, columns);
  const texts = new Map(
    columns
      .filter(({ name }) => misfits.has(name))
      .map(({ name, value, type }) => [
        textColumn(name),
        `CASE WHEN NOT ${fittingCondition(value, type)!} THEN ${value}::text END`,
      ]),
  );
  const written = columns.map((column): StoredColumn => {
    const { name, kind, type, value } = column;
    if (misfits.has(name)) return { ...column, value: `CASE WHEN ${fittingCondition(value, type)!} THEN ${value} END` };
    const text = kind === 'text' ? texts.get(name) : undefined;
    return text === undefined ? column : { ...column, value: `COALESCE(${value}, ${text})` };
  });
  const present = new Set(columns.map(({ name }) => name));
  const appended = [...texts].filter(([name]) => !present.has(name));
  return {
    columns: [
      ...written,
      ...appended.map(([name, value]): StoredColumn => ({ name, kind: 'text', type: { kind: 'text' }, value })),
    ],
    misfits: Object.fromEntries(misfits),
  };
}

async function countMisfits(
  client: pg.ClientBase,
  from: string,
  columns: readonly StoredColumn[],
): Promise<ReadonlyMap<string, number>> {
  const counted = columns.flatMap(({ name, value, type }) => {
    const condition = fittingCondition(value, type);
    return condition === undefined ? [] : [{ name, count: `count(*) FILTER (WHERE NOT ${condition})` }];
  });
  if (counted.length === 0) return new Map();
  // One array: a view may have more of these columns than a row may have.
  const { rows } = await client.query<{ counts: string[] }>(
    `SELECT ARRAY[${counted.map(({ count }) => count).join(', ')}]::bigint[] AS counts FROM ${from}`,
  );
  const counts = counted.map(({ name }, n): [string, number] => [name, Number(rows[0]!.counts[n])]);
  return new Map(counts.filter(([, count]) => count > 0));
}
