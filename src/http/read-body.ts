import { isUtf8 } from 'node:buffer';
import { pipeline, type Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { ServiceError } from './service-error.js';

/**
 * The whole body, which is UTF-8, gzip undone, at most `maxBytes` once decoded: what is counted is what fills the memory, for a
 * small gzip can become any size. Done here and not by undici, whose own limit counts compressed bytes and whose
 * decompressing interceptor is experimental and leaves error answers encoded. It is the caller's own: nobody else has its memory.
 */
export async function readBody(body: Readable, encoding: string | undefined, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of decoded(body, encoding) as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxBytes) {
        throw new ServiceError(
          'response_too_large',
          `The response is larger than ${maxBytes} bytes; lower the page size in the catalogue`,
          { sent: true },
        );
      }
      chunks.push(chunk);
    }
    const bytes = Buffer.concat(chunks, size);
    if (!isUtf8(bytes)) throw malformed('is not UTF-8', undefined);
    return bytes;
  } catch (error) {
    body.on('error', () => {}).destroy();
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (code.startsWith('Z_')) throw malformed('is no whole gzip', error);
    throw error;
  }
}

function decoded(body: Readable, encoding: string | undefined): Readable {
  switch (encoding?.trim().toLowerCase() ?? 'identity') {
    case '':
    case 'identity':
      return body;
    case 'gzip':
    case 'x-gzip':
      // The iteration below sees every error; the callback only keeps it from being thrown a second time.
      return pipeline(body, createGunzip(), () => {});
    default:
      throw malformed('has a content-encoding that was not asked for', undefined);
  }
}

function malformed(problem: string, cause: unknown): ServiceError {
  return new ServiceError('malformed_response', `The body of the response ${problem}`, { sent: true, cause });
}
