import type { ComponentChildren } from 'preact';
import { Link } from './shown-values.js';

export interface Column<Row> {
  readonly head: ComponentChildren;
  /** The head as text, for the cards on a phone. */
  readonly label: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly numeric?: boolean;
  /** The order of the list by this column, if its heading is a link. */
  readonly sort?: string;
  /** Whether the heading begins with the largest values. */
  readonly isLargestFirst?: boolean;
}

/** The order of the rows, and the addresses of others. */
export interface Sorting {
  readonly by: string | undefined;
  readonly isDescending: boolean;
  readonly addressOf: (by: string, isDescending: boolean) => string;
}

export interface DataTableProps<Row> {
  /** A description of the table for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Shown if there is no row. */
  readonly empty: ComponentChildren;
  readonly sorting?: Sorting;
}

/** A table whose rows become cards on a phone. The roles are explicit, since a style that changes a table's layout removes them. */
export function DataTable<Row>({ caption, columns, rows, keyOf, empty, sorting }: DataTableProps<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  return (
    <table role="table">
      <caption class="unseen">{caption}</caption>
      <thead role="rowgroup">
        <tr role="row">
          {columns.map((shown) => (
            <Heading key={shown.label} {...shown} sorting={sorting} />
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

type HeadingProps = Pick<Column<never>, 'head' | 'numeric' | 'sort' | 'isLargestFirst'> & {
  readonly sorting: Sorting | undefined;
};

/** The heading of a column. A link orders the list by it, and a second time the other way round. */
function Heading({ head, numeric, sort, isLargestFirst = false, sorting }: HeadingProps) {
  const isSorted = sort !== undefined && sorting?.by === sort;
  const order = sorting?.isDescending ? 'descending' : 'ascending';
  return (
    <th role="columnheader" scope="col" class={numeric ? 'numeric' : undefined} aria-sort={isSorted ? order : undefined}>
      {sort !== undefined && sorting ? (
        <Link to={sorting.addressOf(sort, isSorted ? !sorting.isDescending : isLargestFirst)}>{head}</Link>
      ) : (
        head
      )}
    </th>
  );
}

/** A column whose head is its label. */
export function column<Row>(label: string, cell: Column<Row>['cell'], more: Partial<Column<Row>> = {}): Column<Row> {
  return { head: label, label, cell, ...more };
}
