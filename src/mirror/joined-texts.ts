import { bytesOf, type TextSlice } from '../core/text-slice.js';

export interface JoinedTexts {
  /** The JSON array of the texts, in UTF-8. */
  readonly bytes: Buffer;
  /** Where in it each text begins, its first byte being 1, and its length. */
  readonly starts: readonly number[];
  readonly lengths: readonly number[];
}

const [OPEN, COMMA, CLOSE] = ['[', ',', ']'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
const SPACES = new Set(Buffer.from(' \t\n\r'));

/**
 * Makes a JSON array of JSON texts. Texts with nothing but a comma between them where they were received are taken together; where
 * brackets stand around all of them too, nothing is copied.
 */
export function joinTexts(texts: readonly TextSlice[]): JoinedTexts {
  const starts: number[] = [];
  const parts: TextSlice[] = [];
  let next = 2;
  for (let n = 0; n < texts.length; ) {
    const { source, start } = texts[n]!;
    let { end } = texts[n]!;
    do {
      starts.push(next + texts[n]!.start - start);
      ({ end } = texts[n]!);
      n += 1;
    } while (n < texts.length && isNextTo(texts[n]!, source, end));
    parts.push({ source, start, end });
    next += end - start + 1;
  }
  const bytes = withBrackets(parts) ?? Buffer.concat([OPEN, ...parts.flatMap((part, n) => separated(part, n)), CLOSE]);
  return { bytes, starts, lengths: texts.map(({ start, end }) => end - start) };
}

/** Whether a comma, and white space at most, is all that stands between the text and the one before, which ends at `end`. */
function isNextTo(text: TextSlice, source: Buffer, end: number): boolean {
  if (text.source !== source || text.start <= end) return false;
  return text.start === end + 1 ? source[end] === COMMA[0] : isSpacedComma(source.subarray(end, text.start));
}

function isSpacedComma(bytes: Buffer): boolean {
  let commas = 0;
  for (const byte of bytes) {
    if (byte === COMMA[0]) commas += 1;
    else if (!SPACES.has(byte)) return false;
  }
  return commas === 1;
}

function withBrackets([only, ...others]: readonly TextSlice[]): Buffer | undefined {
  if (!only || others.length > 0) return undefined;
  const { source, start, end } = only;
  return source[start - 1] === OPEN[0] && source[end] === CLOSE[0] ? source.subarray(start - 1, end + 1) : undefined;
}

function separated(part: TextSlice, n: number): Buffer[] {
  return n === 0 ? [bytesOf(part)] : [COMMA, bytesOf(part)];
}
