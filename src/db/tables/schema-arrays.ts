// muster.schema_arrays: the views of array elements. A name is decided when the first element is seen, and never changed. The lock of the log is that of this table.
import type { Transaction } from '../connection/transaction.js';

/** A view of the elements of an array, or of an array in an element of it. */
export interface ArrayView {
  readonly view: string;
  readonly resource: string;
  /** The array in the record. */
  readonly path: readonly string[];
  /** The array in an element of that array; null where the view has the elements of the outer one. */
  readonly innerPath: readonly string[] | null;
}

/** Views of array elements that a resource has at most. The elements of other arrays are in the column of the array. */
export const MOST_ARRAYS = 50;

export async function readArrays(tx: Pick<Transaction, '$queryRaw'>, resources: readonly string[]): Promise<ArrayView[]> {
  return await tx.$queryRaw<ArrayView[]>`
    SELECT view, resource, path, inner_path AS "innerPath" FROM muster.schema_arrays WHERE resource = ANY(${[...resources]}::text[]) ORDER BY view`;
}

/** Names in schema warehouse that are taken: those of its views, of the views of arrays, and of tables whose views are still to be made. */
export async function takenViewNames(tx: Transaction): Promise<string[]> {
  const rows = await tx.$queryRaw<{ name: string }[]>`
    SELECT relname::text AS name FROM pg_class WHERE relnamespace IN ('warehouse'::regnamespace, 'mirror'::regnamespace)
    UNION SELECT view FROM muster.schema_arrays ORDER BY 1`;
  return rows.map(({ name }) => name);
}

export async function addArrays(tx: Transaction, arrays: readonly ArrayView[]): Promise<void> {
  if (arrays.length === 0) return;
  await tx.$executeRaw`
    INSERT INTO muster.schema_arrays (view, resource, path, inner_path)
    SELECT view, resource, ARRAY(SELECT jsonb_array_elements_text(path)),
      CASE WHEN jsonb_typeof("innerPath") = 'array' THEN ARRAY(SELECT jsonb_array_elements_text("innerPath")) END
    FROM jsonb_to_recordset(${JSON.stringify(arrays)}::jsonb) AS r(view text, resource text, path jsonb, "innerPath" jsonb)`;
}

/** Forgets arrays whose views have no column. */
export async function removeArrays(tx: Transaction, views: readonly string[]): Promise<void> {
  if (views.length > 0) await tx.$executeRaw`DELETE FROM muster.schema_arrays WHERE view = ANY(${[...views]}::text[])`;
}
