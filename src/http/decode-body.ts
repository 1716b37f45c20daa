import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { tooLarge } from './exchange.js';
import { ServiceError } from './service-error.js';

const undoGzip = promisify(gunzip);

/**
 * The body with its gzip undone, of at most `maxOutputLength` bytes: what is counted is what fills the memory, for a small gzip can
 * become any size. Done here and not by undici, whose decompressing interceptor is experimental and leaves error answers encoded.
 */
export async function decodeBody(body: Buffer, encoding: string | undefined, maxOutputLength: number): Promise<Buffer> {
  // No body has an encoding, whatever the header says.
  if (body.length === 0) return body;
  switch (encoding?.trim().toLowerCase() ?? 'identity') {
    case '':
    case 'identity':
      return body;
    case 'gzip':
    case 'x-gzip':
      try {
        return await undoGzip(body, { maxOutputLength });
      } catch (error) {
        throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
          ? tooLarge(maxOutputLength)
          : malformed('is no whole gzip', error);
      }
    default:
      throw malformed('has a content-encoding that was not asked for', undefined);
  }
}

export function malformed(problem: string, cause: unknown): ServiceError {
  return new ServiceError('malformed_response', `The body of the response ${problem}`, { sent: true, cause });
}
