import { Readable } from 'node:stream';
import { nextTurn, portionsOf } from '../../core/turns.js';

/** Rows that are sent as one text. */
interface RowsAsText<Row> {
  readonly rows: readonly Row[];
  readonly present: (row: Row) => string;
  /** Estimates the bytes of a row's text. */
  readonly sizeOf: (row: Row) => number;
  readonly before?: string;
  readonly between?: string;
  readonly after?: string;
}

/** Yields the text in parts, each of one portion of work. */
export function* textParts<Row>({
  rows,
  present,
  sizeOf,
  before = '',
  between = '',
  after = '',
}: RowsAsText<Row>): Generator<string, void> {
  const portions = [...portionsOf(rows, sizeOf)];
  for (const [n, portion] of portions.entries())
    yield `${n === 0 ? before : between}${portion.map(present).join(between)}${n === portions.length - 1 ? after : ''}`;
}

/** Returns the text for a reply: as a string where it has one part, as most have, otherwise as a stream that lets other work run after each part. */
export function textOf<Row>(texts: RowsAsText<Row>): string | Readable {
  const parts = textParts(texts);
  const first = parts.next().value ?? '';
  const second = parts.next();
  return second.done ? first : Readable.from(inTurn([first, second.value], parts));
}

async function* inTurn(begun: readonly string[], rest: Iterable<string>): AsyncGenerator<string> {
  for (const parts of [begun, rest])
    for (const part of parts) {
      yield part;
      await nextTurn();
    }
}
