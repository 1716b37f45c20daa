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
 * Makes a JSON array of JSON texts. Texts that stand behind each other in memory with nothing but a comma between them, as those of a
 * response do, are taken together; where their brackets stand around them too, nothing is copied.
 */
export function joinTexts(texts: readonly Buffer[]): JoinedTexts {
  const starts: number[] = [];
  const parts: Buffer[] = [];
  let next = 2;
  for (let n = 0; n < texts.length; ) {
    const first = texts[n]!;
    let last = first;
    for (; n < texts.length && (texts[n] === first || isNextTo(texts[n]!, last)); n += 1) {
      last = texts[n]!;
      starts.push(next + last.byteOffset - first.byteOffset);
    }
    const length = last.byteOffset + last.length - first.byteOffset;
    parts.push(Buffer.from(first.buffer, first.byteOffset, length));
    next += length + 1;
  }
  const bytes =
    withBrackets(parts) ?? Buffer.concat([OPEN, ...parts.flatMap((part, n) => (n === 0 ? [part] : [COMMA, part])), CLOSE]);
  return { bytes, starts, lengths: texts.map(({ length }) => length) };
}

/** Whether a comma, and white space at most, is all that stands between two texts. */
function isNextTo({ buffer, byteOffset }: Buffer, before: Buffer): boolean {
  const end = before.byteOffset + before.length;
  if (buffer !== before.buffer || byteOffset <= end || isShared(buffer)) return false;
  const between = new Uint8Array(buffer, end, byteOffset - end);
  return between.length === 1 ? between[0] === COMMA[0] : isSpacedComma(between);
}

/** Node gives small buffers slices of one: what stands around a text there may change. */
function isShared(buffer: ArrayBufferLike): boolean {
  return buffer.byteLength <= Buffer.poolSize;
}

function isSpacedComma(bytes: Uint8Array): boolean {
  let commas = 0;
  for (const byte of bytes) {
    if (byte === COMMA[0]) commas += 1;
    else if (!SPACES.has(byte)) return false;
  }
  return commas === 1;
}

function withBrackets([only, ...others]: readonly Buffer[]): Buffer | undefined {
  if (!only || others.length > 0 || only.byteOffset === 0) return undefined;
  const { buffer, byteOffset, length } = only;
  if (byteOffset + length === buffer.byteLength || isShared(buffer)) return undefined;
  const around = Buffer.from(buffer, byteOffset - 1, length + 2);
  return around[0] === OPEN[0] && around.at(-1) === CLOSE[0] ? around : undefined;
}
