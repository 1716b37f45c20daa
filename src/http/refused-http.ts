import { errors } from 'undici';

/** Bytes of headers that an answer may have: some services send a kilobyte of policy for every cookie. */
export const MAX_HEADER_BYTES = 65_536;

/**
 * The fault of an answer that came and is no HTTP as RFC 9112 has it; undefined where the error is another. The parser's words are fixed
 * texts and quote nothing of the answer.
 */
export function refusedHttp(error: unknown): string | undefined {
  if (error instanceof errors.HeadersOverflowError) return `its headers are larger than ${MAX_HEADER_BYTES / 1024} KB`;
  if (error instanceof errors.ResponseContentLengthMismatchError)
    return 'its body has another length than its Content-Length says, or it has two of them';
  if (!(error instanceof errors.HTTPParserError)) return undefined;
  const reason = /\(([^()]*)\)$/.exec(error.message)?.[1];
  return `it breaks the rules of HTTP/1.1${reason ? `: ${reason}` : ''}`;
}
