import type { Clock } from '../core/clock.js';
import type { TextSlice } from '../core/text-slice.js';
import type { Reservation, ResponseMemory } from '../http/response-memory.js';
import type { PageSpan } from '../observability/tracing.js';
import type { OpenWalk } from './open-walk.js';
import type { CountedPage, PagesToCommit } from './pages-to-commit.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';
import type { WalkStore } from './walk-store.js';

/** Most pages and records that share a commit, and how long the first page waits for it: after a crash the next worker asks for these again. */
const PAGES_AT_ONCE = 256;
const RECORDS_AT_ONCE = 1_000;
/** A worker holds such a commit several times, and so does PostgreSQL. */
const BYTES_AT_ONCE = 16 * 1024 * 1024;
const WAIT_MS = 200;

interface TracedPage extends CountedPage {
  /** Ends once the page is committed. */
  readonly span?: PageSpan | undefined;
}

export interface SharedCommitDependencies {
  readonly store: Pick<WalkStore, 'commitPages'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly answers: Pick<ResponseMemory, 'isShort'>;
}

/**
 * Pages on their way into the database. A page with few compared records waits for the next ones: a commit for each would take longer than
 * receiving them. A page that is compared in full waits only for pages that have come already. While the database works on a commit, the pages
 * of the next one are received and read.
 */
export class SharedCommit {
  readonly #walk: OpenWalk;
  readonly #deps: SharedCommitDependencies;
  #pages: TracedPage[] = [];
  /** Owners of the responses in which records of these pages stand. */
  #memory: Reservation[] = [];
  #records = 0;
  #bytes = 0;
  #checkpoint: WalkCheckpoint | undefined;
  #since = 0;
  #underWay: Promise<void> = Promise.resolve();

  constructor(walk: OpenWalk, deps: SharedCommitDependencies) {
    this.#walk = walk;
    this.#deps = deps;
  }

  /**
   * Takes a page with the owner of its response, the checkpoint that follows it, and whether the next page has come. Begins a commit when enough waits.
   * The response is freed once the page is committed, or at once if no record that is written is part of it.
   */
  async add(counted: TracedPage, memory: Reservation, checkpoint: WalkCheckpoint, nextHasCome: boolean): Promise<void> {
    const { page } = counted;
    const now = this.#deps.clock.monotonic();
    if (this.#pages.length === 0) this.#since = now;
    const texts = [...page.records, ...page.rejected];
    this.#pages.push(counted);
    this.#records += texts.length;
    if (texts.some((text) => memory.holds(text))) {
      this.#memory.push(memory);
      this.#bytes += memory.bytes;
    } else {
      memory.free();
      this.#bytes += sizeOf(texts);
    }
    this.#checkpoint = checkpoint;
    const isEnough =
      this.#pages.length >= PAGES_AT_ONCE ||
      this.#records >= RECORDS_AT_ONCE ||
      this.#bytes >= BYTES_AT_ONCE ||
      now - this.#since >= WAIT_MS;
    // The first commit fixes which member is the id; before it, two pages may have been read by two members.
    const mayWait = this.#walk.idField !== undefined && (page.ledger.kind !== 'new' || nextHasCome);
    if (isEnough || !mayWait) await this.#begin();
  }

  /** Begins a commit where memory is short: a list that waits for memory must hold none. */
  async makeRoom(): Promise<void> {
    if (this.#deps.answers.isShort) await this.#begin();
  }

  /** Commits what waits, to the end. */
  async now(): Promise<void> {
    await this.#begin();
    await this.#underWay;
  }

  /** Releases the memory of pages that will not be committed. */
  close(): void {
    for (const each of this.#memory) each.release();
  }

  /** Commits of one walk follow each other. Returns once the one before has ended, and this one is under way. */
  async #begin(): Promise<void> {
    await this.#underWay;
    const [pages, memory, checkpoint] = [this.#pages, this.#memory, this.#checkpoint];
    if (!checkpoint || pages.length === 0) return;
    this.#pages = [];
    this.#memory = [];
    this.#records = 0;
    this.#bytes = 0;
    this.#underWay = this.#commit({ pages, checkpoint }, memory);
    // The first page fixes which member is the id: the next ones are read by it.
    if (this.#walk.idField === undefined) await this.#underWay;
    // Its failure is seen by the next commit, or at the end.
    this.#underWay.catch(() => {});
  }

  async #commit(
    commit: PagesToCommit & { readonly pages: readonly TracedPage[] },
    memory: readonly Reservation[],
  ): Promise<void> {
    try {
      await this.#deps.store.commitPages(this.#walk, commit);
    } catch (error) {
      // The driver may still read the responses.
      for (const each of memory) each.release();
      for (const { span } of commit.pages) span?.fail(error);
      throw error;
    }
    for (const each of memory) each.free();
    for (const each of commit.pages) endSpan(each, this.#walk);
  }
}

function endSpan({ page, number, span }: TracedPage, { pass }: OpenWalk): void {
  const { kind, count } = page;
  span?.end({
    'muster.page.pass': pass,
    'muster.page.number': number + 1,
    'muster.page.kind': kind,
    'muster.page.records': count,
  });
}

function sizeOf(texts: readonly TextSlice[]): number {
  return texts.reduce((bytes, { start, end }) => bytes + end - start, 0);
}
