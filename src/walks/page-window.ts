import { setMaxListeners } from 'node:events';
import type { JsonObject, PageInput, Pager } from '../pagers/pager.js';
import type { ReceivedPage } from './received-page.js';

/** Asks the service for one page. */
export type FetchPage = (input: PageInput, signal: AbortSignal) => Promise<UnreadPage>;

/** A page as it was received, read once its turn has come: a page that waits takes the memory of its bytes, and not that of its records. */
export interface UnreadPage {
  /** `idField`: the record member that is the id, once a page has shown it. Throws as readPage does. */
  read(idField: string | undefined): Promise<ReceivedPage>;
}

/** Pages of one list under way at once: what keeps a near service busy, and the most that a distant one is asked for. */
const NARROWEST = 4;
const WIDEST = 16;

interface PageUnderWay {
  readonly page: Promise<UnreadPage>;
  arrival: 'coming' | 'here' | 'failed';
}

/**
 * The requests of one pass that are under way: the page that is wanted next, and those that will be wanted if the list
 * stays as it is. They are taken in the walk's order, whatever order the answers come in. A guess that proves wrong is
 * dropped and its answer never looked at, so the window only ever saves time. It grows while pages are waited for, and
 * shrinks while they wait: an answer that nobody has time for only takes memory.
 */
export class PageWindow {
  readonly #pager: Pager;
  readonly #fetch: FetchPage;
  readonly #signal: AbortSignal;
  #width = NARROWEST;
  /** By their request; the one that is wanted next, and those that follow it. */
  readonly #underWay = new Map<string, PageUnderWay>();
  /** Drops all that are under way. */
  #drop = dropper();
  #last: { readonly state: JsonObject; readonly key: string } | undefined;
  /** What was aimed at since a page was taken. */
  #aimedAt: JsonObject | undefined;

  constructor(pager: Pager, fetch: FetchPage, signal: AbortSignal) {
    this.#pager = pager;
    this.#fetch = fetch;
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
      this.#start(this.#pager.request(state));
    }
    const { size } = this.#underWay;
    for (const input of this.#pager.ahead(state, size - 1, this.#width - size)) this.#start(input);
  }

  /** The page that the state asks for. */
  async take(state: JsonObject): Promise<UnreadPage> {
    this.aim(state);
    const key = this.#keyOf(state);
    const { page, arrival } = this.#underWay.get(key)!;
    this.#width = arrival !== 'coming' ? Math.max(NARROWEST, this.#width - 1) : Math.min(WIDEST, this.#width * 3);
    try {
      return await page;
    } finally {
      this.#aimedAt = undefined;
      this.#underWay.delete(key);
    }
  }

  /** Whether the page that the state asks for is there already. */
  hasCome(state: JsonObject): boolean {
    return this.#underWay.get(this.#keyOf(state))?.arrival === 'here';
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.drop);
    this.drop();
  }

  #start(input: PageInput): void {
    const underWay: PageUnderWay = { page: this.#fetch(input, this.#drop.signal), arrival: 'coming' };
    // Its failure is seen where the page is taken, or nowhere.
    underWay.page.then(
      () => (underWay.arrival = 'here'),
      () => (underWay.arrival = 'failed'),
    );
    this.#underWay.set(keyOf(input), underWay);
  }

  readonly drop = (): void => {
    if (this.#underWay.size === 0) return;
    this.#drop.abort();
    this.#drop = dropper();
    this.#underWay.clear();
  };

  /** Asked several times for each state. */
  #keyOf(state: JsonObject): string {
    if (this.#last?.state !== state) this.#last = { state, key: keyOf(this.#pager.request(state)) };
    return this.#last.key;
  }
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
