import { errors } from 'undici';

/** Limit for the headers of a response. It is high because some services send a kilobyte of policy for every cookie. */
export const MAX_HEADER_BYTES = 65_536;

/**
 * Says how a response breaks HTTP (RFC 9112); undefined for any other error. The parser's messages are fixed texts that quote nothing of
 * the response.
 */
export function refusedHttp(error: unknown): string | undefined {
  if (error instanceof errors.HeadersOverflowError) return `its headers are larger than ${MAX_HEADER_BYTES / 1024} KB`;
  if (error instanceof errors.ResponseContentLengthMismatchError)
    return 'its body has another length than its Content-Length says, or it has two of them';
  if (!(error instanceof errors.HTTPParserError)) return undefined;
  const reason = /\(([^()]*)\)$/.exec(error.message)?.[1];
  return `it breaks the rules of HTTP/1.1${reason ? `: ${reason}` : ''}`;
}
