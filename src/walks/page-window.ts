import { setMaxListeners } from 'node:events';
import { MemoryShort, type Reservation, type ResponseMemory } from '../http/response-memory.js';
import type { JsonObject, PageInput, Pager } from '../pagers/pager.js';
import type { ReceivedPage } from './received-page.js';

/** Asks the service for one page, for which this memory is reserved. Throws MemoryShort where it proves too little. */
export type FetchPage = (input: PageInput, signal: AbortSignal, memory: Reservation) => Promise<UnreadPage>;

/** A page as it was received, read once its turn has come: a page that waits takes the memory of its bytes, and not that of its records. */
export interface UnreadPage {
  /** `idField`: the record member that is the id, once a page has shown it. Throws as readPage does. */
  read(idField: string | undefined): Promise<ReceivedPage>;
  /** Gives its memory back: nobody will look at it, or at what was read of it. */
  drop(): void;
  /** Of its body; 0 where none was sent. */
  readonly bytes: number;
}

/** A page that has come, and the memory that is reserved for it until it is committed or dropped. */
export interface TakenPage extends UnreadPage {
  readonly memory: Reservation;
}

/** Pages of one list under way at once: what keeps a near service busy, and the most that a distant one is asked for. */
const NARROWEST = 4;
const WIDEST = 16;
/** Bytes of a page of a list of which none has come yet: several times those of an ordinary one. */
const FIRST_PAGE_BYTES = 1024 * 1024;

interface PageUnderWay {
  page?: Promise<TakenPage>;
  memory: Reservation;
  arrival: 'coming' | 'here' | 'failed';
  /** Resolves when the page needs more memory than was reserved for it, and waits for it. */
  readonly short: Promise<void>;
  readonly fellShort: () => void;
}

/**
 * The requests of one pass that are under way: the page that is wanted next, and those that will be wanted if the list
 * stays as it is. They are taken in the walk's order, whatever order the answers come in. A guess that proves wrong is
 * dropped and its answer never looked at, so the window only ever saves time. It grows while pages are waited for, and
 * shrinks while they wait: an answer that nobody has time for only takes memory. The wanted page waits for memory; guesses are only
 * made as long as there is some.
 */
export class PageWindow {
  readonly #pager: Pager;
  readonly #fetch: FetchPage;
  readonly #answers: ResponseMemory;
  readonly #signal: AbortSignal;
  #width = NARROWEST;
  /** Bytes of the last page that came. */
  #expected = FIRST_PAGE_BYTES;
  /** Bytes of heap for what is made of a page, where its bytes do not stand for that: 0 for ordinary records. */
  #heap = 0;
  /** By their request; the one that is wanted next, and those that follow it. */
  readonly #underWay = new Map<string, PageUnderWay>();
  /** Drops all that are under way. */
  #drop = dropper();
  #last: { readonly state: JsonObject; readonly key: string } | undefined;
  /** What was aimed at since a page was taken. */
  #aimedAt: JsonObject | undefined;

  constructor(pager: Pager, fetch: FetchPage, answers: ResponseMemory, signal: AbortSignal) {
    this.#pager = pager;
    this.#fetch = fetch;
    this.#answers = answers;
    this.#signal = signal;
    // One listener a window, and not AbortSignal.any a request: those stay with a signal that lives as long as a run.
    signal.addEventListener('abort', this.drop);
  }

  /** Starts what the state asks for and what will follow it; drops what was guessed when that is something else. */
  aim(state: JsonObject): void {
    this.#signal.throwIfAborted();
    if (this.#aimedAt === state) return;
    this.#aimedAt = state;
    if (!this.#underWay.has(this.#keyOf(state))) {
      this.drop();
      this.#start(this.#pager.request(state), this.#answers.reserve(this.#expected, this.#heap));
    }
    const { size } = this.#underWay;
    for (const input of this.#pager.ahead(state, size - 1, this.#width - size)) {
      const memory = this.#answers.reserveIfFree(this.#expected, this.#heap);
      if (!memory) return;
      this.#start(input, memory);
    }
  }

  /**
   * The page that the state asks for. Its memory is the caller's to release. `makeRoom` is called once where the page waits for memory: the caller may have some, and nobody else
   * would tell it.
   */
  async take(state: JsonObject, makeRoom: () => Promise<void>): Promise<TakenPage> {
    this.aim(state);
    const key = this.#keyOf(state);
    const { page, arrival, short } = this.#underWay.get(key)!;
    this.#width = arrival !== 'coming' ? Math.max(NARROWEST, this.#width - 1) : Math.min(WIDEST, this.#width * 3);
    const isShort = await Promise.race([
      page!.then(
        () => false,
        () => false,
      ),
      short.then(() => true),
    ]);
    // Where that fails, the page is under way still, and dropped when the window is closed.
    if (isShort) await makeRoom();
    try {
      return await page!;
    } finally {
      this.#aimedAt = undefined;
      this.#underWay.delete(key);
    }
  }

  /** The page taken last proved too large for its memory when it was read: it is asked for again once there is more. */
  takeAgain(error: MemoryShort): void {
    this.drop();
    this.#expected = Math.max(error.bytes, this.#expected);
    this.#heap = 2 * error.heap;
  }

  /** Whether the page that the state asks for is there already. */
  hasCome(state: JsonObject): boolean {
    return this.#underWay.get(this.#keyOf(state))?.arrival === 'here';
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.drop);
    this.drop();
  }

  #start(input: PageInput, memory: Reservation): void {
    let fellShort = () => {};
    const short = new Promise<void>((resolve) => (fellShort = resolve));
    const underWay: PageUnderWay = { memory, arrival: 'coming', short, fellShort };
    underWay.page = this.#ask(input, underWay, this.#drop.signal);
    // Its failure is seen where the page is taken, or nowhere.
    underWay.page.then(
      () => (underWay.arrival = 'here'),
      () => (underWay.arrival = 'failed'),
    );
    this.#underWay.set(keyOf(input), underWay);
  }

  /** Asks for the wanted page again where it needs more memory than was left, once there is enough; a guess is given up. */
  async #ask(input: PageInput, underWay: PageUnderWay, signal: AbortSignal): Promise<TakenPage> {
    let expected = this.#expected;
    for (;;) {
      const { memory } = underWay;
      try {
        if (memory.granted) await memory.granted;
        signal.throwIfAborted();
        const { read, drop, bytes } = await this.#fetch(input, signal, memory);
        if (bytes > 0) this.#expected = bytes;
        return { read, drop, bytes, memory };
      } catch (error) {
        memory.release();
        if (!(error instanceof MemoryShort)) throw error;
        const isWanted = this.#underWay.values().next().value === underWay;
        this.#dropBehind(underWay);
        if (!isWanted) throw error;
        expected = this.#expectAfter(error, expected);
        underWay.memory = this.#answers.reserve(expected, this.#heap);
        underWay.fellShort();
      }
    }
  }

  /** Bytes of a body of unknown length, and of the heap that it takes: twice as much each time. */
  #expectAfter({ bytes, heap }: MemoryShort, expected: number): number {
    if (heap > this.#heap) {
      this.#heap = 2 * heap;
      return Math.max(bytes, expected);
    }
    return Math.max(bytes, 2 * expected);
  }

  readonly drop = (): void => {
    if (this.#underWay.size === 0) return;
    this.#drop.abort();
    this.#drop = dropper();
    for (const underWay of this.#underWay.values()) giveBack(underWay);
    this.#underWay.clear();
  };

  /** Drops the guesses behind a page, and the page where it is one itself. An answer that is coming finds that it has no memory any more. */
  #dropBehind(short: PageUnderWay): void {
    let isBehind = false;
    for (const [n, [key, underWay]] of [...this.#underWay].entries()) {
      isBehind ||= underWay === short;
      if (!isBehind || n === 0) continue;
      giveBack(underWay);
      this.#underWay.delete(key);
    }
  }

  /** Asked several times for each state. */
  #keyOf(state: JsonObject): string {
    if (this.#last?.state !== state) this.#last = { state, key: keyOf(this.#pager.request(state)) };
    return this.#last.key;
  }
}

function giveBack({ memory, page }: PageUnderWay): void {
  memory.release();
  page!.then(
    ({ drop }) => drop(),
    () => {},
  );
}

/** One for all requests: of its own, each would take 5 µs longer. */
function dropper(): AbortController {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  return abort;
}

function keyOf(input: PageInput): string {
  return JSON.stringify(input);
}
