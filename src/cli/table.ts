/** Headings in order, each with a function that makes its cells. Numbers are aligned to the right. */
export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;
type Cell = string | number | null | undefined;

/** A column for each member, named after it. */
export function members<const Name extends string>(...names: Name[]): Columns<Readonly<Record<Name, Cell>>> {
  return Object.fromEntries(names.map((name) => [name.toUpperCase(), (item) => item[name]]));
}

/** The columns that name a company. */
export const COMPANY: Columns<{ readonly environment: string; readonly company_id: string }> = {
  ENVIRONMENT: ({ environment }) => environment,
  COMPANY: ({ company_id }) => company_id,
};

/** The columns, followed by those of `rare` that have a value for one of the items. */
export function withFilled<T>(items: readonly T[], columns: Columns<T>, rare: Columns<T>): Columns<T> {
  const filled = Object.entries(rare).filter(([, cell]) => items.some((item) => cell(item) != null));
  return { ...columns, ...Object.fromEntries(filled) };
}

/** Prints items: a table for people, or one JSON object a line for programs. */
export function print<T extends object>(
  items: readonly T[],
  columns: Columns<T>,
  { json }: { readonly json?: boolean | undefined },
): void {
  const lines = json ? items.map((item) => JSON.stringify(item)) : tableLines(items, columns);
  for (const line of lines) console.log(line);
}

export function tableLines<T>(items: readonly T[], columns: Columns<T>): string[] {
  const cells = items.map((item) => Object.values(columns).map((cell) => cell(item) ?? '-'));
  const rows = [Object.keys(columns), ...cells];
  const widths = Object.keys(columns).map((_, column) => Math.max(...rows.map((row) => [...String(row[column])].length)));
  const isNumber = widths.map(
    (_, column) => cells.length > 0 && cells.every((row) => typeof row[column] === 'number' || row[column] === '-'),
  );
  return rows.map((row) =>
    row
      .map((cell, column) => {
        const padding = ' '.repeat(widths[column]! - [...String(cell)].length);
        return isNumber[column] ? padding + cell : cell + padding;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** A time for people: UTC, to the second. */
export function time(iso: string | null | undefined): string | undefined {
  return iso ? iso.replace('T', ' ').replace(/\.\d+Z$/, 'Z') : undefined;
}
