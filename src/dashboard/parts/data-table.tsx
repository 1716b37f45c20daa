import type { ComponentChildren } from 'preact';

export interface Column<Row> {
  readonly head: ComponentChildren;
  /** The head as text, for the cards on a phone. */
  readonly label: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly numeric?: boolean;
}

export interface DataTableProps<Row> {
  /** A description of the table for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Shown if there is no row. */
  readonly empty: ComponentChildren;
}

/** A table whose rows become cards on a phone. The roles are explicit, since a style that changes a table's layout removes them. */
export function DataTable<Row>({ caption, columns, rows, keyOf, empty }: DataTableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <table role="table">
      <caption class="unseen">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map(({ head, label, numeric }) => (
            <th key={label} role="columnheader" scope="col" class={numeric ? 'numeric' : undefined}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody role="rowgroup">
        {rows.map((row) => (
          <tr key={keyOf(row)} role="row">
            {columns.map(({ label, cell, numeric }) => (
              <td key={label} role="cell" data-label={label} class={numeric ? 'numeric' : undefined}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A column whose head is its label. */
export function column<Row>(label: string, cell: Column<Row>['cell'], more: Partial<Column<Row>> = {}): Column<Row> {
  return { head: label, label, cell, ...more };
}
