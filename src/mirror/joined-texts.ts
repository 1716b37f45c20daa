import { bytesOf, type TextSlice } from '../core/text-slice.js';
import { eachInPortions } from '../core/turns.js';

export interface JoinedTexts {
  /** The texts in UTF-8, with the bytes that were between them where they were received. */
  readonly bytes: Buffer;
  /** The place of each text's first byte, counted from 1, and its length in bytes. */
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
}

/** Bytes between two texts that are taken along: a comma, and a new line with its indent. */
const GAP_BYTES = 16;

/** Joins texts into one value, in portions. Neighbours in what was received are taken together, so that a whole page is not copied. */
export function* joinTexts(texts: readonly TextSlice[]): Generator<void, JoinedTexts> {
  const parts: TextSlice[] = [];
  const starts: number[] = [];
  /** The place of the last part in the value. */
  let at = 1;
  const add = ({ source, start, end }: TextSlice) => {
    const last = parts.at(-1);
    const gap = last?.source === source ? start - last.end : -1;
    if (last && gap >= 0 && gap <= GAP_BYTES) parts[parts.length - 1] = { ...last, end };
    else {
      at += last ? lengthOf(last) : 0;
      parts.push({ source, start, end });
    }
    starts.push(at + start - parts.at(-1)!.start);
  };
  yield* eachInPortions(texts, add);
  const bytes = parts.length === 1 ? bytesOf(parts[0]!) : yield* copiesOf(parts);
  return { bytes, starts, lengths: texts.map(lengthOf) };
}

function* copiesOf(parts: readonly TextSlice[]): Generator<void, Buffer> {
  const bytes = Buffer.allocUnsafe(parts.reduce((sum, part) => sum + lengthOf(part), 0));
  let at = 0;
  const copy = (part: TextSlice) => {
    at += bytesOf(part).copy(bytes, at);
  };
  yield* eachInPortions(parts, copy, lengthOf);
  return bytes;
}

function lengthOf({ start, end }: TextSlice): number {
  return end - start;
}
