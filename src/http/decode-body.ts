import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { Reservation } from './answer-memory.js';
import { tooLarge } from './exchange.js';
import { ServiceError } from './service-error.js';

const undoGzip = promisify(gunzip);

/**
 * The body with its gzip undone, of at most `maxOutputLength` bytes: what is counted is what fills the memory, for a small gzip can
 * become any size. Done here and not by undici, whose decompressing interceptor is experimental and leaves error answers encoded.
 * `memory`: where the decoded body has to fit in.
 */
export async function decodeBody(
  body: Buffer,
  encoding: string | undefined,
  maxOutputLength: number,
  memory?: Reservation,
): Promise<Buffer> {
  // No body has an encoding, whatever the header says.
  if (body.length === 0) return body;
  switch (encoding?.trim().toLowerCase() ?? 'identity') {
    case '':
    case 'identity':
      return body;
    case 'gzip':
    case 'x-gzip':
      return memory ? ungzipWithin(body, maxOutputLength, memory) : ungzip(body, maxOutputLength);
    default:
      throw malformed('has a content-encoding that was not asked for', undefined);
  }
}

/** A gzip ends with the length of what it holds (RFC 1952, 2.3.1). One of several members says that of the last, and others may lie. */
async function ungzipWithin(body: Buffer, maxOutputLength: number, memory: Reservation): Promise<Buffer> {
  const said = body.length < 4 ? 0 : body.readUInt32LE(body.length - 4);
  const expected = Math.min(Math.max(said, body.length), maxOutputLength);
  memory.fit(expected);
  try {
    return await ungzip(body, expected);
  } catch (error) {
    if (expected === maxOutputLength || !(error instanceof ServiceError) || error.code !== 'response_too_large') throw error;
  }
  memory.fit(maxOutputLength);
  return ungzip(body, maxOutputLength);
}

async function ungzip(body: Buffer, maxOutputLength: number): Promise<Buffer> {
  try {
    return await undoGzip(body, { maxOutputLength });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? tooLarge(maxOutputLength)
      : malformed('is no whole gzip', error);
  }
}

export function malformed(problem: string, cause: unknown): ServiceError {
  return new ServiceError('malformed_response', `The body of the response ${problem}`, { sent: true, cause });
}
