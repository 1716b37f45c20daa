import { promisify } from 'node:util';
import { brotliDecompress, gunzip, inflate, inflateRaw } from 'node:zlib';
import { type EncodedResponse, tooLarge } from './exchange.js';
import type { Reservation } from './response-memory.js';
import { ServiceError } from './service-error.js';

type Undo = (body: Buffer, limit: { readonly maxOutputLength: number }) => Promise<Buffer>;

const undoGzip: Undo = promisify(gunzip);
const undoBrotli: Undo = promisify(brotliDecompress);
const undoZlib: Undo = promisify(inflate);
const undoDeflate: Undo = promisify(inflateRaw);

/** Codings that are undone. `deflate` is the zlib format (RFC 9110, 8.4.1.2); some servers send the raw one. */
const UNDONE: ReadonlyMap<string, Undo> = new Map([
  ['gzip', undoGzip],
  ['x-gzip', undoGzip],
  ['br', undoBrotli],
  ['deflate', (body, limit) => (beginsZlib(body) ? undoZlib : undoDeflate)(body, limit)],
]);
/** Codings that the oldest supported Node cannot undo: the others of the IANA registry, and some that are in use. */
const NOT_UNDONE =
  /^(x-)?(zstd|compress|dcb|dcz|exi|aes128gcm|pack200-gzip|lzma|xz|lz4|bzip2|bz2|snappy|sdch|zip|lzw|brotli|zlib)$/;
/** No server applies more than two codings in a row; each one costs a body's memory and time. */
const MOST_CODINGS = 4;
/** How many times its length a compressed body is expected to have, where it does not say its length itself. */
const USUAL_GROWTH = 8;

export interface DecodeOptions {
  /** Names the request in errors. */
  readonly what: string;
  /** The most bytes of a body once decoded. */
  readonly maxBytes: number;
  /** Where the decoded body has to fit in. */
  readonly memory?: Reservation | undefined;
}

/**
 * The body with its codings undone, the one applied last first, of at most `maxBytes` decoded bytes, since a
 * small body can become any size. Servers also write other things than codings into the header, such as a charset; they change nothing.
 * undici's decompressing interceptor is not used: it is experimental and leaves error responses encoded.
 * Throws ServiceError `malformed_response` and `response_too_large`, and MemoryShort.
 */
export async function decodeBody(
  { body, headers }: Pick<EncodedResponse, 'body' | 'headers'>,
  { what, maxBytes, memory }: DecodeOptions,
): Promise<Buffer> {
  const encoding = headers['content-encoding'];
  // No body has an encoding, whatever the header says.
  if (body.length === 0 || encoding === undefined) return body;
  const names = encoding.split(',').map((name) => name.trim().toLowerCase());
  const refused = names.find((name) => NOT_UNDONE.test(name));
  if (refused !== undefined)
    throw malformed(
      `to ${what} has the content-encoding ${refused}, which cannot be undone. Muster asks for gzip: have the service, or the proxy before it, send that or none`,
    );
  const codings = names.filter((name) => UNDONE.has(name));
  if (codings.length > MOST_CODINGS)
    throw malformed(`to ${what} has ${codings.length} content-encodings; at most ${MOST_CODINGS} are undone`);
  let decoded = body;
  for (const coding of codings.toReversed()) decoded = await undoWithin(decoded, coding, maxBytes, memory);
  return decoded;
}

/** Undoes one coding. Memory for the length that is expected is taken first, and for the longest where that was not enough. */
async function undoWithin(body: Buffer, coding: string, maxOutputLength: number, memory?: Reservation): Promise<Buffer> {
  if (!memory) return undo(body, coding, maxOutputLength);
  const expected = Math.min(Math.max(expectedLength(body, coding), body.length), maxOutputLength);
  memory.fit(expected);
  try {
    return await undo(body, coding, expected);
  } catch (error) {
    if (expected === maxOutputLength || !(error instanceof ServiceError) || error.code !== 'response_too_large') throw error;
  }
  memory.fit(maxOutputLength);
  return undo(body, coding, maxOutputLength);
}

/** A gzip ends with the length of its content (RFC 1952, 2.3.1). One of several members says that of the last, and others may lie. */
function expectedLength(body: Buffer, coding: string): number {
  if (!coding.endsWith('gzip')) return body.length * USUAL_GROWTH;
  return body.length < 4 ? 0 : body.readUInt32LE(body.length - 4);
}

async function undo(body: Buffer, coding: string, maxOutputLength: number): Promise<Buffer> {
  try {
    return await UNDONE.get(coding)!(body, { maxOutputLength });
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
      ? tooLarge(maxOutputLength)
      : malformed(`says that it is ${coding}, and is not, or not to its end`, error);
  }
}

/** A zlib header: method 8, and a checksum over its two bytes (RFC 1950, 2.2). No raw deflate that an encoder makes begins like that. */
function beginsZlib(body: Buffer): boolean {
  return body.length >= 2 && (body[0]! & 0x0f) === 8 && body.readUInt16BE(0) % 31 === 0;
}

export function malformed(problem: string, cause?: unknown): ServiceError {
  return new ServiceError('malformed_response', `The body of the response ${problem}`, { sent: true, cause });
}
