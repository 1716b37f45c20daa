import type { Clock } from '../core/clock.js';
import { freeBuffers } from '../core/free-buffers.js';
import type { TextSlice } from '../core/text-slice.js';
import type { Reservation, ResponseMemory } from '../http/response-memory.js';
import type { OpenWalk } from './open-walk.js';
import { type ReceivedPage, recordsOf } from './received-page.js';
import type { WalkCheckpoint } from './walk-checkpoint.js';
import type { CountedPage, PagesToCommit, WalkStore } from './walk-store.js';

/** Pages and records that share a commit, and how long the first waits for it: what a crash makes the next worker ask for again. */
const PAGES_AT_ONCE = 256;
const RECORDS_AT_ONCE = 1_000;
/** A worker holds such a commit several times, and so does PostgreSQL. */
const BYTES_AT_ONCE = 16 * 1024 * 1024;
const WAIT_MS = 200;

export interface SharedCommitDependencies {
  readonly store: Pick<WalkStore, 'commitPages'>;
  readonly clock: Pick<Clock, 'monotonic'>;
  readonly answers: Pick<ResponseMemory, 'isShort'>;
}

/**
 * Pages on their way into the database. A page of which little is compared waits for the next ones: a commit each would take longer than
 * receiving them. A page that is compared in full waits only for what has come already. While the database works on a commit, the pages
 * of the next one are received and read.
 */
export class SharedCommit {
  readonly #walk: OpenWalk;
  readonly #deps: SharedCommitDependencies;
  #pages: CountedPage[] = [];
  /** The memory of these pages. */
  #memory: Pick<Reservation, 'release'>[] = [];
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
   * Takes a page with its memory and the checkpoint behind it, and whether the next one has come. Begins a commit when enough waits. The
   * memory is released once the page is committed, or nothing of the response need be.
   */
  async add(
    { page, number, newFrom }: CountedPage,
    memory: Pick<Reservation, 'release'>,
    checkpoint: WalkCheckpoint,
    nextHasCome: boolean,
  ): Promise<void> {
    const now = this.#deps.clock.monotonic();
    if (this.#pages.length === 0) this.#since = now;
    const waiting = withoutUnneededResponse(page);
    const { records, rejected, response } = recordsOf(waiting);
    this.#pages.push({ page: waiting, number, newFrom });
    if (response) this.#memory.push(memory);
    else memory.release();
    this.#records += records.length + rejected.length;
    this.#bytes += response?.length ?? sizeOf(records) + sizeOf(rejected);
    this.#checkpoint = checkpoint;
    const isEnough =
      this.#pages.length >= PAGES_AT_ONCE ||
      this.#records >= RECORDS_AT_ONCE ||
      this.#bytes >= BYTES_AT_ONCE ||
      now - this.#since >= WAIT_MS;
    // A commit fixes which member is the id; until then, pages may have been read by different ones.
    const mayWait = this.#walk.idField !== undefined && (page.ledger.kind !== 'new' || nextHasCome);
    if (isEnough || !mayWait) await this.#begin();
  }

  /** Begins a commit where memory is short: whoever waits for some must have none. */
  async makeRoom(): Promise<void> {
    if (this.#deps.answers.isShort) await this.#begin();
  }

  /** Commits what waits, to the end. */
  async now(): Promise<void> {
    await this.#begin();
    await this.#underWay;
  }

  /** Releases the memory of what is not committed any more. */
  close(): void {
    release(this.#memory);
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
    this.#underWay = this.#commit({ pages, checkpoint }).finally(() => release(memory));
    // The first page fixes which member is the id: the next ones are read by it.
    if (this.#walk.idField === undefined) await this.#underWay;
    // Its failure is seen by the next commit, or at the end.
    this.#underWay.catch(() => {});
  }

  async #commit(commit: PagesToCommit): Promise<void> {
    await this.#deps.store.commitPages(this.#walk, commit);
    freeBuffers(commit.pages.flatMap(({ page }) => recordsOf(page).response ?? []));
  }
}

function release(memory: readonly Pick<Reservation, 'release'>[]): void {
  for (const each of memory) each.release();
}

/** The page without its response, whose memory is given back, unless records that must be written stand in it. */
function withoutUnneededResponse(page: ReceivedPage): ReceivedPage {
  if (!('records' in page) || !page.response) return page;
  const { response, records, rejected } = page;
  const standsThere = ({ source }: TextSlice) => source.buffer === response.buffer;
  if (records.some(standsThere) || rejected.some(standsThere)) return page;
  freeBuffers([response]);
  return { ...page, response: undefined };
}

function sizeOf(texts: readonly TextSlice[]): number {
  return texts.reduce((bytes, { start, end }) => bytes + end - start, 0);
}
