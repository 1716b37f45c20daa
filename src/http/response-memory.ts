import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { freeBuffers } from '../core/free-buffers.js';
import type { TextSlice } from '../core/text-slice.js';
import { ServiceError } from './service-error.js';

const MEGABYTE = 1024 * 1024;

/**
 * Bytes that a page takes for each byte of its body: received in parts, or encoded, it is in memory up to three times while it is put
 * together, and later on its way into the database, with the driver's copies.
 */
const COPIES = 3;
/** More than four lists of ordinary pages ever take, and little of a machine. */
const MOST = 512 * MEGABYTE;
/** The memory of a worker without its responses. */
const REST = 128 * MEGABYTE;
const LEAST = 16 * MEGABYTE;

/** Less memory is left than the response needs: the caller asks for it again, once there is enough. */
export class MemoryShort extends Error {
  /** Bytes of its body, and of the heap for its records, where they are known. */
  constructor(
    readonly bytes: number,
    readonly heap: number,
  ) {
    super(`no memory is left for an answer of ${bytes} bytes, and ${heap} of heap`);
    this.name = 'MemoryShort';
  }
}

/**
 * The memory that one process has for responses: on their way, waiting, and being written (docs/internals/memory.md). The page that a list takes next waits
 * for its share, in turn; a page that is only guessed at is not asked for while there is no memory. A list that waits for memory holds none: its pages
 * get theirs in the list's order, its commits end by themselves, and a response for which too little was reserved either gets more
 * at once, or is given up. Therefore lists never wait for each other in a circle, and the sum never exceeds the budget.
 */
export class ResponseMemory {
  /** Bytes. */
  readonly budget: number;
  #used = 0;
  readonly #waiting: Reservation[] = [];

  constructor(budget = defaultBudget()) {
    this.budget = budget;
  }

  /** Bytes that are reserved. */
  get used(): number {
    return this.#used;
  }

  /** Whether a list waits for memory: then the others finish what they hold. */
  get isShort(): boolean {
    return this.#waiting.length > 0;
  }

  /** Reserves memory for a response of so many bytes, and heap for its records; the memory is there once `granted` has resolved. */
  reserve(bytes: number, heap = 0): Reservation {
    const reservation = new Reservation(this, this.#costOf(bytes, heap), Math.min(heap, this.budget));
    this.#waiting.push(reservation);
    this.#grant();
    return reservation;
  }

  /** Reserves it at once, or not at all: for a response that is only guessed at. */
  reserveIfFree(bytes: number, heap = 0): Reservation | undefined {
    return this.isShort || this.#used + this.#costOf(bytes, heap) > this.budget ? undefined : this.reserve(bytes, heap);
  }

  /** Called by a reservation with its share before and after. */
  change(from: number, to: number): void {
    this.#used += to - from;
    if (to < from) this.#grant();
  }

  /** Called by a reservation that was released while it waited. */
  leave(reservation: Reservation): void {
    const place = this.#waiting.indexOf(reservation);
    if (place >= 0) this.#waiting.splice(place, 1);
    this.#grant();
  }

  /** The share of a response of so many bytes. The size is only expected, so it takes the whole budget at most. */
  #costOf(bytes: number, heap: number): number {
    return Math.min(bytes * COPIES + heap, this.budget);
  }

  /** In turn, so that a large response gets its share, too. */
  #grant(): void {
    for (;;) {
      const next = this.#waiting[0];
      if (!next || this.#used + next.share > this.budget) return;
      this.#waiting.shift();
      this.#used += next.share;
      next.begin();
    }
  }
}

/** The share of one response, and the owner of its body. */
export class Reservation {
  readonly #memory: ResponseMemory;
  #share: number;
  #body: Buffer | undefined;
  /** Bytes that stay reserved for the response's records. */
  readonly #heap: number;
  #state: 'waiting' | 'granted' | 'released' = 'waiting';
  #granted: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  /** Only ResponseMemory makes reservations. */
  constructor(memory: ResponseMemory, share: number, heap: number) {
    this.#memory = memory;
    this.#share = share;
    this.#heap = heap;
  }

  /** Bytes that are reserved, or that it waits for. */
  get share(): number {
    return this.#share;
  }

  /** Bytes of the body; 0 before it is there. */
  get bytes(): number {
    return this.#body?.length ?? 0;
  }

  /** Whether a text is part of the body itself, not of a copy. */
  holds({ source }: TextSlice): boolean {
    return source.buffer === this.#body?.buffer;
  }

  /** Undefined where the memory is there. A release resolves it, too. */
  get granted(): Promise<void> | undefined {
    if (this.#state !== 'waiting') return undefined;
    if (!this.#granted) {
      let resolve = () => {};
      const promise = new Promise<void>((done) => (resolve = done));
      this.#granted = { promise, resolve };
    }
    return this.#granted.promise;
  }

  /** Called by ResponseMemory: the memory is there. */
  begin(): void {
    this.#state = 'granted';
    this.#granted?.resolve();
  }

  /**
   * Takes what a response of so many bytes needs. Throws ServiceError `response_too_large` where that is more than the budget, and MemoryShort where
   * it is more than the others leave.
   */
  fit(bytes: number): void {
    this.#fit(bytes, 0);
  }

  /** Takes what the response's records need: bytes of heap, and bytes that privacy rules add to the body. Throws as `fit` does. */
  fitMade(heap: number, growth: number): void {
    this.#fit(this.bytes + growth, heap);
  }

  /** The response is there: the reservation owns the memory of its body, and keeps no more than it needs. */
  settle(body: Buffer): void {
    this.#body = body;
    if (this.#state === 'granted') this.#setShare(Math.min(body.length * COPIES + this.#heap, this.#share));
  }

  /** Another text takes the place of the body, whose memory is given back at once. */
  rewrite(body: Buffer): void {
    if (this.#body && this.#body !== body) freeBuffers([this.#body]);
    this.#body = body;
  }

  /** Gives the memory of the body back at once, and ends the reservation. Nothing may look at the response or at its records any more. */
  free(): void {
    if (this.#body) freeBuffers([this.#body]);
    this.#body = undefined;
    this.release();
  }

  /** Ends the reservation, or the wait for it. The garbage collector takes the body, which something may still read. May be called twice. */
  release(): void {
    if (this.#state === 'released') return;
    const wasGranted = this.#state === 'granted';
    this.#state = 'released';
    if (wasGranted) this.#setShare(0);
    else {
      this.#share = 0;
      this.#memory.leave(this);
    }
    this.#granted?.resolve();
  }

  #fit(bytes: number, heap: number): void {
    const needed = bytes * COPIES + heap;
    if (needed <= this.#share) return;
    const { budget, used } = this.#memory;
    if (needed > budget) throw largerThanAll(bytes, needed, budget);
    if (this.#state !== 'granted' || used + needed - this.#share > budget) throw new MemoryShort(bytes, heap);
    this.#setShare(needed);
  }

  #setShare(share: number): void {
    const before = this.#share;
    this.#share = share;
    this.#memory.change(before, share);
  }
}

/**
 * Bytes for responses without ANSWER_MEMORY_MB: at most the heap's limit, which says how much a person wants to give to the process, and
 * half of what the machine or the container has beside the rest of a worker.
 */
export function defaultBudget(
  heapLimit = getHeapStatistics().heap_size_limit,
  // Without a limit, Node says 0 or a number beyond any machine.
  memory = Math.min(totalmem(), process.constrainedMemory() || Infinity),
): number {
  return Math.max(LEAST, Math.floor(Math.min(MOST, heapLimit, (memory - REST) / 2)));
}

function largerThanAll(bytes: number, needed: number, budget: number): ServiceError {
  const [size, need, given] = [bytes, needed, budget].map((each) => Math.ceil(each / MEGABYTE));
  return new ServiceError(
    'response_too_large',
    `The response has ${size} MB or more, and needs ${need} MB of memory while it is read and written; this process keeps ${given} MB ` +
      `for answers. Lower the page size in the catalogue, or set ANSWER_MEMORY_MB to ${need} or more (unset, it follows from ` +
      "--max-old-space-size and the container's limit).",
    { sent: true },
  );
}
