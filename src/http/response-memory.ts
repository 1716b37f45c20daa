import { totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { ServiceError } from './service-error.js';

const MEGABYTE = 1024 * 1024;

/**
 * What a page takes for each byte of its body: received in parts, or encoded, it stands in memory up to three times while it is put
 * together, and later on its way into the database, with what the driver makes of it.
 */
const COPIES = 3;
/** More than four lists of ordinary pages ever take, and less than anybody misses. */
const MOST = 512 * MEGABYTE;
/** What a worker takes beside answers. */
const REST = 128 * MEGABYTE;
const LEAST = 16 * MEGABYTE;

/** Not as much is left as the answer needs: it is to be asked for again, once there is. */
export class MemoryShort extends Error {
  /** `bytes` of its body, and of the heap for what was made of it: as far as either is known. */
  constructor(
    readonly bytes: number,
    readonly heap: number,
  ) {
    super(`no memory is left for an answer of ${bytes} bytes, and ${heap} of heap`);
    this.name = 'MemoryShort';
  }
}

/**
 * The memory that one process has for answers under way, waiting, and being written. A page that a list takes next waits for its
 * share, in turn; one that is only guessed at is not asked for while there is none. Who waits for memory holds none: the pages of a list
 * get theirs in the list's order, its commits end by themselves, and an answer for which too little was reserved either gets more
 * at once, or is given up with what it had. So nobody waits in a circle, and the sum never exceeds the budget.
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

  /** Whether somebody waits: then nothing may be kept that could be finished. */
  get isShort(): boolean {
    return this.#waiting.length > 0;
  }

  /** Memory for an answer of so many bytes, and so much heap for what is made of it; it is there once `granted` has resolved. */
  reserve(bytes: number, heap = 0): Reservation {
    const reservation = new Reservation(this, this.#costOf(bytes, heap), Math.min(heap, this.budget));
    this.#waiting.push(reservation);
    this.#grant();
    return reservation;
  }

  /** The same at once, or not at all: for an answer that nobody waits for yet. */
  reserveIfFree(bytes: number, heap = 0): Reservation | undefined {
    return this.isShort || this.#used + this.#costOf(bytes, heap) > this.budget ? undefined : this.reserve(bytes, heap);
  }

  /** Called by a reservation with its share before and after. */
  change(from: number, to: number): void {
    this.#used += to - from;
    if (to < from) this.#grant();
  }

  /** Called by a reservation that is not waited for any more. */
  leave(reservation: Reservation): void {
    const place = this.#waiting.indexOf(reservation);
    if (place >= 0) this.#waiting.splice(place, 1);
    this.#grant();
  }

  /** What an answer of so many bytes takes; for one that is only expected, all there is at most. */
  #costOf(bytes: number, heap: number): number {
    return Math.min(bytes * COPIES + heap, this.budget);
  }

  /** In turn, so that a large answer gets its share, too. */
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

/** The share of one answer. */
export class Reservation {
  readonly #memory: ResponseMemory;
  #share: number;
  /** Bytes of the body, once it is there. */
  #body = 0;
  /** Bytes that stay reserved for what will be made of it. */
  readonly #heap: number;
  #state: 'waiting' | 'granted' | 'released' = 'waiting';
  #granted: { readonly promise: Promise<void>; readonly resolve: () => void } | undefined;

  /** ResponseMemory makes them. */
  constructor(memory: ResponseMemory, share: number, heap: number) {
    this.#memory = memory;
    this.#share = share;
    this.#heap = heap;
  }

  /** Bytes that are reserved, or waited for. */
  get share(): number {
    return this.#share;
  }

  /** Undefined where there is nothing to wait for. A reservation that is released resolves it, too. */
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
   * Sees that an answer of so many bytes fits. Throws ServiceError `response_too_large` where it never will, and MemoryShort where
   * it does not while others have theirs.
   */
  fit(bytes: number): void {
    this.#fit(bytes, 0);
  }

  /** Sees that what is made of the answer fits: so many bytes of heap, and of text that it grows by. Throws as `fit` does. */
  fitMade(heap: number, growth: number): void {
    this.#fit(this.#body + growth, heap);
  }

  /** The answer is there, and has so many bytes. */
  settle(bytes: number): void {
    this.#body = bytes;
    if (this.#state === 'granted') this.#setShare(Math.min(bytes * COPIES + this.#heap, this.#share));
  }

  /** The memory is free again, or nobody waits for it any more. May be called twice. */
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
 * Bytes for answers where nobody has set them: at most the heap's limit, which says how much a person wants to give to the process, and
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
