import { isState, stateColour } from './state-colours.js';
import { columnsOf, cut, pairLines, plain, styled } from './terminal.js';

export type Cell = string | number | null | undefined | NamedId;

/** Something with a name for people: a table that fits a terminal shows the name, every other one the id and the name. */
export interface NamedId {
  readonly id: string;
  readonly name: string | undefined;
}

/** A column with the cells of every row. */
export interface Filled {
  readonly heading: string;
  /** Whether the table may do without it. */
  readonly isSpare: boolean;
  readonly cells: readonly Cell[];
}

/** A cell as it is shown. Text for people may be cut; numbers, states and whatever a person must copy may not. */
interface Shown {
  readonly text: string;
  readonly isNumber: boolean;
  readonly mayBeCut: boolean;
}

interface Column {
  readonly heading: string;
  readonly isSpare: boolean;
  readonly cells: readonly Shown[];
}

const GAP = '  ';
/** A text is cut to so many columns at first, and to fewer only if the table would not fit otherwise. */
const READABLE = 24;
const LEAST = 8;
/** Enough of an id to tell companies of one name apart. */
const ID_START = 8;

const TIME = /^(\d{4}-\d\d-\d\d \d\d:\d\d):\d\dZ$/;

/** A table as wide as it needs to be: ids are whole, and a column of names follows them. */
export function wholeLines(filled: readonly Filled[], inColour: boolean): string[] {
  const columns = filled.flatMap((column): Column[] => {
    const ids = { ...column, cells: column.cells.map((cell) => shown(isNamed(cell) ? cell.id : cell)) };
    const names = column.cells.map((cell) => (isNamed(cell) ? cell.name : undefined));
    return names.some((name) => name !== undefined) ? [ids, { ...column, heading: 'NAME', cells: names.map(shown) }] : [ids];
  });
  return drawn(columns, inColour);
}

/** A table that fits, and what it does not show: headings that were left out, and the columns that have one text in every row. */
export interface Fitted {
  readonly lines: readonly string[];
  readonly left: readonly string[];
  readonly inEveryRow: readonly string[];
}

/**
 * A table in at most `width` columns. Columns with one text in every row are taken out first, which loses nothing. Then texts are cut, then spare
 * columns are left out, then texts are cut further; a table that is still too wide is printed as one block for each row. So is a single row.
 */
export function fittedLines(filled: readonly Filled[], width: number, inColour: boolean): Fitted {
  let columns: readonly Column[] = filled.map((column) => ({ ...column, cells: byName(column.cells) }));
  const inEveryRow: string[] = [];
  const left: string[] = [];
  for (let least = Infinity; ; ) {
    const fitted = fit(columns, width, least);
    if (fitted) return { lines: drawn(fitted, inColour), left, inEveryRow };
    if (filled[0]?.cells.length === 1) return { lines: blockLines(filled, width, inColour), left: [], inEveryRow: [] };
    const constant = columns.slice(1).find(isConstant);
    const spare = columns.findLast(({ isSpare }) => isSpare);
    if (constant) {
      inEveryRow.push(`${constant.heading} ${constant.cells[0]!.text}`);
      columns = columns.filter((column) => column !== constant);
    } else if (least > READABLE) least = READABLE;
    else if (spare) {
      left.unshift(spare.heading);
      columns = columns.filter((column) => column !== spare);
    } else if (least > LEAST) {
      columns = columns.map(withoutSeconds);
      least = LEAST;
    } else return { lines: blockLines(filled, width, inColour), left: [], inEveryRow: [] };
  }
}

/** A state is compared from row to row even where all rows have the same. */
function isConstant({ heading, cells }: Column): boolean {
  return cells.length > 1 && !isState(heading) && cells.every(({ text }) => text === cells[0]!.text);
}

/** The columns with texts cut so that a row takes at most `width` columns; undefined if that takes texts below `least`. */
function fit(columns: readonly Column[], width: number, least: number): Column[] | undefined {
  const widths = columns.map(widthOf);
  const needed = columns.map((column, n) => Math.min(widths[n]!, neededBy(column, least)));
  let excess = widths.reduce((sum, each) => sum + each + GAP.length, -GAP.length) - width;
  for (; excess > 0; excess--) {
    // The widest text gives way first.
    const [widest] = widths
      .map((_, n) => n)
      .filter((n) => widths[n]! > needed[n]!)
      .toSorted((a, b) => widths[b]! - widths[a]!);
    if (widest === undefined) return undefined;
    widths[widest]!--;
  }
  return columns.map((column, n) => ({
    ...column,
    cells: column.cells.map((cell) => (cell.mayBeCut ? { ...cell, text: cut(cell.text, widths[n]!) } : cell)),
  }));
}

function neededBy({ heading, cells }: Column, least: number): number {
  return Math.max(
    columnsOf(heading),
    ...cells.map(({ text, mayBeCut }) => (mayBeCut ? Math.min(least, columnsOf(text)) : columnsOf(text))),
  );
}

function widthOf({ heading, cells }: Column): number {
  return Math.max(columnsOf(heading), ...cells.map(({ text }) => columnsOf(text)));
}

function withoutSeconds(column: Column): Column {
  return { ...column, cells: column.cells.map((cell) => ({ ...cell, text: cell.text.replace(TIME, '$1Z') })) };
}

function drawn(columns: readonly Column[], inColour: boolean): string[] {
  const widths = columns.map(widthOf);
  const line = (texts: readonly string[], style: (text: string, n: number) => string, toTheRight: readonly boolean[]) =>
    texts
      .map((text, n) => {
        const padding = ' '.repeat(widths[n]! - columnsOf(text));
        const last = n === texts.length - 1;
        return toTheRight[n] ? padding + style(text, n) : style(text, n) + (last ? '' : padding);
      })
      .join(GAP)
      .trimEnd();
  const toTheRight = columns.map(
    ({ cells }) => cells.some(({ isNumber }) => isNumber) && cells.every(({ text, isNumber }) => isNumber || text === '-'),
  );
  const bold = (text: string) => (inColour ? styled('bold', text) : text);
  const inState = (text: string, n: number) => (inColour ? coloured(columns[n]!.heading, text) : text);
  const rows = (columns[0]?.cells ?? []).map((_, row) => columns.map(({ cells }) => cells[row]!.text));
  return [
    line(
      columns.map(({ heading }) => heading),
      bold,
      toTheRight,
    ),
    ...rows.map((row) => line(row, inState, toTheRight)),
  ];
}

/** Each row as lines of a heading and a cell, with an empty line between the rows. */
function blockLines(filled: readonly Filled[], width: number, inColour: boolean): string[] {
  return (filled[0]?.cells ?? []).flatMap((_, row) => {
    const pairs = filled.map(({ heading, cells }) => {
      const cell = cells[row];
      return [
        heading,
        isNamed(cell) && cell.name !== undefined
          ? `${plain(cell.name)} (${cell.id})`
          : shown(isNamed(cell) ? cell.id : cell).text,
      ] as const;
    });
    // An empty text repeats that of the row above.
    const lines = pairLines(
      pairs.filter(([, text]) => text !== ''),
      width,
    );
    return [
      ...(row === 0 ? [] : ['']),
      ...(inColour
        ? lines.map((line) => line.replace(/^[A-Z][A-Z ]*[A-Z](?= {2}|$)/, (heading) => styled('bold', heading)))
        : lines),
    ];
  });
}

function coloured(heading: string, text: string): string {
  const colour = stateColour(heading, text);
  return colour === undefined ? text : styled(colour, text);
}

function isNamed(cell: Cell): cell is NamedId {
  return typeof cell === 'object' && cell !== null;
}

function shown(cell: Exclude<Cell, NamedId>): Shown {
  const text = plain(String(cell ?? '-'));
  return { text, isNumber: typeof cell === 'number', mayBeCut: text.includes(' ') && !TIME.test(text) };
}

/** Names in place of ids. The beginning of the id tells two of the same name apart. */
function byName(cells: readonly Cell[]): Shown[] {
  const idsOf = new Map<string, Set<string>>();
  for (const cell of cells)
    if (isNamed(cell) && cell.name !== undefined) idsOf.set(cell.name, (idsOf.get(cell.name) ?? new Set()).add(cell.id));
  return cells.map((cell) => {
    if (!isNamed(cell)) return shown(cell);
    if (cell.name === undefined || cell.name.trim() === '') return shown(cell.id);
    const isShared = idsOf.get(cell.name)!.size > 1;
    return isShared
      ? { text: `${cut(plain(cell.name), LEAST * 2)} ${cell.id.slice(0, ID_START)}…`, isNumber: false, mayBeCut: false }
      : { text: plain(cell.name), isNumber: false, mayBeCut: true };
  });
}
