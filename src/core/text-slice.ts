/** A text in UTF-8 where it was received: the bytes of `source` from `start` to before `end`. */
export interface TextSlice {
  readonly source: Buffer;
  readonly start: number;
  readonly end: number;
}

/** The text's bytes, not copied. */
export function bytesOf({ source, start, end }: TextSlice): Buffer {
  return source.subarray(start, end);
}
