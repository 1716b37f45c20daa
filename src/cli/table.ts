import { type Cell, type Filled, type Fitted, fittedLines, wholeLines } from './table-layout.js';
import { hasColour, widthOf, wrap } from './terminal.js';

/** Headings in order, each with a function that makes its cells. Numbers are aligned to the right. */
export type Columns<T> = Readonly<Record<string, CellOf<T> | SpareColumn<T>>>;
type CellOf<T> = (item: T) => Cell;
interface SpareColumn<T> {
  readonly spare: CellOf<T>;
}

/** These options decide the form of the output. */
export interface PrintOptions {
  readonly json?: boolean | undefined;
  /** Tables with every column and every id, whatever the terminal's width. */
  readonly wide?: boolean | undefined;
}

/** A column for each member, named after it. */
export function members<const Name extends string>(
  ...names: Name[]
): Readonly<Record<string, CellOf<Readonly<Record<Name, string | number | null | undefined>>>>> {
  return Object.fromEntries(names.map((name) => [name.toUpperCase(), (item) => item[name]]));
}

/** Marks columns as spare: a table leaves them out, the last one first, where the terminal has no room for them. */
export function spare<T>(columns: Columns<T>): Columns<T> {
  return Object.fromEntries(Object.entries(columns).map(([heading, column]) => [heading, { spare: cellOf(column) }]));
}

/** An item that may concern a company. */
interface OfCompany {
  readonly environment?: string | undefined;
  readonly company_id?: string | null | undefined;
  readonly company_name?: string | undefined;
}

/** The columns that name a company. */
export const COMPANY: Columns<OfCompany> = {
  ...spare({ ENVIRONMENT: ({ environment }: OfCompany) => environment }),
  COMPANY: ({ company_id: id, company_name: name }) => (id == null ? undefined : { id, name }),
};

/** The columns, followed by those of `rare` that have a value for one of the items. */
export function withFilled<T>(items: readonly T[], columns: Columns<T>, rare: Columns<T>): Columns<T> {
  const filled = Object.entries(rare).filter(([, column]) => items.some((item) => cellOf(column)(item) != null));
  return { ...columns, ...Object.fromEntries(filled) };
}

/** Prints items: a table for people, or one JSON object a line for programs. `none` says that there are none, for people alone. */
export function print<T extends object>(
  items: readonly T[],
  columns: Columns<T>,
  { json, wide }: PrintOptions,
  none = 'There are none.',
): void {
  if (json) {
    for (const item of items) console.log(JSON.stringify(item));
    return;
  }
  if (items.length === 0) {
    console.error(none);
    return;
  }
  const width = wide ? undefined : widthOf();
  const { lines, left, inEveryRow } = linesOf(items, columns, width);
  for (const line of lines) console.log(line);
  const notes = [
    ...(inEveryRow.length > 0 ? [`In every row: ${inEveryRow.join(', ')}.`] : []),
    ...(left.length > 0 ? [`Left out for want of room: ${left.join(', ')} (--wide shows all).`] : []),
  ];
  for (const line of notes.flatMap((note) => wrap(note, width ?? Infinity))) console.error(line);
}

/** The lines of a table, of at most `width` columns where that is given. */
export function tableLines<T>(items: readonly T[], columns: Columns<T>, width?: number): readonly string[] {
  return linesOf(items, columns, width).lines;
}

function linesOf<T>(items: readonly T[], columns: Columns<T>, width: number | undefined): Fitted {
  const filled: Filled[] = Object.entries(columns).map(([heading, column]) => {
    const cell = cellOf(column);
    return { heading, isSpare: typeof column !== 'function', cells: items.map((item) => cell(item)) };
  });
  const inColour = hasColour();
  return width === undefined
    ? { lines: wholeLines(filled, inColour), left: [], inEveryRow: [] }
    : fittedLines(filled, width, inColour);
}

function cellOf<T>(column: CellOf<T> | SpareColumn<T>): CellOf<T> {
  return typeof column === 'function' ? column : column.spare;
}

/** A time for people: UTC, to the second. */
export function time(iso: string | null | undefined): string | undefined {
  return iso ? iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z') : undefined;
}
