/** A UTF-8 text in the buffer that received it: the bytes of `source` from `start` up to, not including, `end`. */
export interface TextSlice {
  readonly source: Buffer;
  readonly start: number;
  readonly end: number;
}

/** The text's bytes, not copied. */
export function bytesOf({ source, start, end }: TextSlice): Buffer {
  return source.subarray(start, end);
}
