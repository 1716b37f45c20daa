import type { Dispatcher } from 'undici';
import { freeMemory } from '../core/free-buffers.js';
import type { Reservation } from './response-memory.js';
import { ServiceError } from './service-error.js';

/** A response as it was received, the body still encoded. */
export interface EncodedResponse {
  readonly status: number;
  /** Names in lower case; repeated headers joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** No other buffer shares its memory. */
  readonly body: Buffer;
}

/** Parts that are given back together: one by one takes half as long again. */
const PARTS_AT_ONCE = 4;

/**
 * A request on its way and its response as it comes, told by undici's dispatcher: without a stream in between, which costs a
 * fifth of the worker's time for a request. Ends at once when it is aborted, even before it has a connection, when undici would not end it.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  /** Rejects with undici's error, with that of `abort`, with ServiceError `response_too_large` or with MemoryShort. */
  readonly response: Promise<EncodedResponse>;
  readonly #maxBytes: number;
  readonly #memory: Reservation | undefined;
  #resolve!: (response: EncodedResponse) => void;
  #reject!: (error: unknown) => void;
  #controller: Dispatcher.DispatchController | undefined;
  #aborted: { readonly reason: Error } | undefined;
  #head: Omit<EncodedResponse, 'body'> = { status: 0, headers: {} };
  /** The whole body, where its length was said. */
  #whole: Buffer | undefined;
  /** Parts of the body that have come, without parts that were copied to `#whole` and freed. */
  readonly #parts: Buffer[] = [];
  #size = 0;

  /** `maxBytes`: of the body as sent. `memory`: where it has to fit in. */
  constructor(maxBytes: number, memory?: Reservation) {
    this.#maxBytes = maxBytes;
    this.#memory = memory;
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  /** Whether it has had a connection: before, nothing of it was sent. */
  get hasBegun(): boolean {
    return this.#controller !== undefined;
  }

  abort(reason: Error): void {
    this.#aborted ??= { reason };
    this.#reject(reason);
    this.#controller?.abort(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#aborted) controller.abort(this.#aborted.reason);
  }

  onResponseStart(_: unknown, status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    if (status < 200) return;
    this.#head = { status, headers: joinHeaders(headers) };
    // These have none, whatever encoding and length they speak of (RFC 9110, 8.6); undici takes such a length for a broken connection.
    if (status === 204 || status === 304) this.#resolve({ body: Buffer.alloc(0), ...this.#head });
    const length = Number(this.#head.headers['content-length']);
    if (length > 0 && this.#fits(length)) this.#whole = Buffer.allocUnsafe(length);
  }

  onResponseData(_: unknown, part: Buffer): void {
    this.#parts.push(part);
    if (this.#whole) {
      part.copy(this.#whole, this.#size);
      if (this.#parts.length === PARTS_AT_ONCE) freeLater(this.#parts.splice(0));
    }
    this.#size += part.length;
    this.#fits(this.#size);
  }

  onResponseEnd(): void {
    const body = this.#whole ?? Buffer.concat(this.#parts);
    if (body.length === this.#size) this.#resolve({ body, ...this.#head });
    else this.#reject(new Error('The body has another length than its header said.'));
    freeLater(this.#parts);
  }

  onResponseError(_: unknown, error: Error): void {
    this.#reject(error);
  }

  /** Ends the exchange where so many bytes are too many. */
  #fits(bytes: number): boolean {
    try {
      if (bytes > this.#maxBytes) throw tooLarge(this.#maxBytes);
      this.#memory?.fit(bytes);
      return true;
    } catch (error) {
      this.abort(error as Error);
      return false;
    }
  }
}

/** Giving back smaller reads costs more than leaving them to the garbage collector. */
const WORTH_FREEING = 8_192;

/**
 * A socket reads every 64 KB into new memory: left to the garbage collector, it takes a third of the time of receiving. Over
 * HTTP/1.1 every read has its own, apart from small ones, which may share Node's pool; and in the next turn undici's parser has left it.
 */
function freeLater(parts: readonly Buffer[]): void {
  const memory = parts.map(({ buffer }) => buffer).filter(({ byteLength }) => byteLength > WORTH_FREEING);
  if (memory.length > 0) queueMicrotask(() => freeMemory(memory));
}

export function tooLarge(maxBytes: number): ServiceError {
  return new ServiceError(
    'response_too_large',
    `The response is larger than ${maxBytes} bytes; lower the page size in the catalogue`,
    { sent: true },
  );
}

function joinHeaders(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value = '']) => [name.toLowerCase(), [value].flat().join(', ')]));
}
