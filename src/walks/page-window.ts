import { setMaxListeners } from 'node:events';
import { MemoryShort, type Reservation, type ResponseMemory } from '../http/response-memory.js';
import type { ListSpan, PageSpan } from '../observability/tracing.js';
import type { JsonObject, PageInput, Pager } from '../pagers/pager.js';
import type { FetchedPage, PageSource } from './page-source.js';

/** A page that has come, and the owner of its response until it is committed or dropped. */
export interface TakenPage {
  readonly fetched: FetchedPage;
  readonly memory: Reservation;
  readonly span: PageSpan | undefined;
}

/** Pages of one list under way at once: what keeps a near service busy, and the most that a distant one is asked for. */
const NARROWEST = 4;
const WIDEST = 16;
/** Expected bytes of the first page of a list: several times an ordinary page. */
const FIRST_PAGE_BYTES = 1024 * 1024;

interface PageUnderWay {
  page?: Promise<TakenPage>;
  memory: Reservation;
  arrival: 'coming' | 'here' | 'failed';
  /** Ended once the walk has taken the page; never, where the page is dropped. */
  readonly span: PageSpan | undefined;
  /** Resolves when the page needs more memory than was reserved for it, and waits for it. */
  readonly short: Promise<void>;
  readonly fellShort: () => void;
}

/**
 * The requests of one pass that are under way: the page that is wanted next, and the pages that will be wanted if the list
 * stays as it is. The walk takes them in its own order, whatever order the responses come in. A guess that proves wrong is
 * dropped and its response never read, so the window only ever saves time. It grows while the walk waits for pages, and
 * shrinks while pages wait for the walk: a response that waits only takes memory. The wanted page waits for memory; guesses are only
 * made while there is some.
 */
export class PageWindow {
  readonly #pager: Pager;
  readonly #source: Pick<PageSource, 'fetch'>;
  readonly #answers: ResponseMemory;
  readonly #signal: AbortSignal;
  readonly #list: ListSpan | undefined;
  #width = NARROWEST;
  /** Bytes of the last page that came. */
  #expected = FIRST_PAGE_BYTES;
  /** Bytes of heap for the records of a page beyond what its bytes stand for: 0 for ordinary records. */
  #heap = 0;
  /** Keyed by request: the page that is wanted next, and the guesses that follow it. */
  readonly #underWay = new Map<string, PageUnderWay>();
  /** Drops all that are under way. */
  #drop = dropper();
  #last: { readonly state: JsonObject; readonly key: string } | undefined;
  /** The state that was aimed at since a page was taken. */
  #aimedAt: JsonObject | undefined;

  constructor(pager: Pager, source: Pick<PageSource, 'fetch'>, answers: ResponseMemory, signal: AbortSignal, list?: ListSpan) {
    this.#pager = pager;
    this.#source = source;
    this.#answers = answers;
    this.#signal = signal;
    this.#list = list;
    // One listener a window, and not AbortSignal.any for each request: those would stay with a signal that lives as long as a run.
    signal.addEventListener('abort', this.drop);
  }

  /** Starts the request of the state and the requests that will follow it; drops guesses where the state asks for another page. */
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
   * Gives the page that the state asks for, whose memory the caller must release. Where the page waits for memory, it calls `makeRoom` once: the caller may hold some
   * that it can give back.
   */
  async take(state: JsonObject, makeRoom: () => Promise<void>): Promise<TakenPage> {
    this.aim(state);
    const key = this.#keyOf(state);
    const { page, arrival, short, span } = this.#underWay.get(key)!;
    this.#width = arrival !== 'coming' ? Math.max(NARROWEST, this.#width - 1) : Math.min(WIDEST, this.#width * 3);
    const isShort = await Promise.race([
      page!.then(
        () => false,
        () => false,
      ),
      short.then(() => true),
    ]);
    // Where that fails, the page is still under way, and dropped when the window is closed.
    if (isShort) await makeRoom();
    try {
      return await page!;
    } catch (error) {
      if (!this.#signal.aborted) span?.fail(error);
      throw error;
    } finally {
      this.#aimedAt = undefined;
      this.#underWay.delete(key);
    }
  }

  /** The page taken last proved too large for its memory when it was read: it is asked for again once more is free. */
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
    const underWay: PageUnderWay = { memory, arrival: 'coming', short, fellShort, span: this.#list?.startPage() };
    underWay.page = this.#ask(input, underWay, this.#drop.signal);
    // `take` reports a failure; that of a dropped guess is of no interest.
    underWay.page.then(
      () => (underWay.arrival = 'here'),
      () => (underWay.arrival = 'failed'),
    );
    this.#underWay.set(keyOf(input), underWay);
  }

  /** Asks for the wanted page again where it needs more memory than was left, once there is enough; a guess is given up. */
  async #ask(input: PageInput, underWay: PageUnderWay, signal: AbortSignal): Promise<TakenPage> {
    const { span } = underWay;
    let expected = this.#expected;
    for (;;) {
      const { memory } = underWay;
      try {
        if (memory.granted) await memory.granted;
        signal.throwIfAborted();
        const fetched = await this.#source.fetch(input, signal, memory, span);
        if (memory.bytes > 0) this.#expected = memory.bytes;
        return { fetched, memory, span };
      } catch (error) {
        memory.release();
        if (!(error instanceof MemoryShort)) throw error;
        const isWanted = this.#underWay.values().next().value === underWay;
        this.#dropAfter(underWay);
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

  /** Drops the guesses that follow a page, and the page where it is one itself. A response that is coming finds that it has no memory any more. */
  #dropAfter(short: PageUnderWay): void {
    let isAfter = false;
    for (const [n, [key, underWay]] of [...this.#underWay].entries()) {
      isAfter ||= underWay === short;
      if (!isAfter || n === 0) continue;
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
  // Only once nothing reads it any more.
  page!.then(
    () => memory.free(),
    () => {},
  );
}

/** One controller for all requests: each would take 5 µs longer with its own. */
function dropper(): AbortController {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  return abort;
}

function keyOf(input: PageInput): string {
  return JSON.stringify(input);
}
