import { bytesOf, type TextSlice } from '../core/text-slice.js';

export interface JoinedTexts {
  /** The texts in UTF-8, and between them what stood there where they were received. */
  readonly bytes: Buffer;
  /** Where in it each text begins, its first byte being 1, and its length in bytes. */
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
}

/** Bytes between two texts that are taken along: a comma, and a new line with its indent. */
const GAP_BYTES = 16;

/** Puts texts into one value. Those that follow each other where they were received are taken together: a whole page is not copied. */
export function joinTexts(texts: readonly TextSlice[]): JoinedTexts {
  const parts: TextSlice[] = [];
  const starts: number[] = [];
  /** Where the last part begins in the value. */
  let at = 1;
  for (const { source, start, end } of texts) {
    const last = parts.at(-1);
    const gap = last?.source === source ? start - last.end : -1;
    if (last && gap >= 0 && gap <= GAP_BYTES) parts[parts.length - 1] = { ...last, end };
    else {
      at += last ? last.end - last.start : 0;
      parts.push({ source, start, end });
    }
    starts.push(at + start - parts.at(-1)!.start);
  }
  const [only, ...others] = parts;
  const bytes = only && others.length === 0 ? bytesOf(only) : Buffer.concat(parts.map(bytesOf));
  return { bytes, starts, lengths: texts.map(({ start, end }) => end - start) };
}
